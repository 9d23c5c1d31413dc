"""Does what operators, other systems and time do, until every process has ended."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from django.contrib.auth.models import User

from orchestrator import registry, send_event
from orchestrator.definition import ProcessManager
from orchestrator.engine import operations
from orchestrator.engine.loops.drain import drain
from orchestrator.models import ProcessInstance, Status, StepKind, StepRun, StepStatus
from orchestrator.testing import pass_time

ROUNDS = 12
QUEUES = ("default", "press")

ASKED: dict[str, str] = {"support-inquiry": "refund"}
"""What is decided where it is not yes."""

AWAITED: dict[str, dict[str, Any]] = {
    "Approved": {"by": "Ann"},
    "VisaGranted": {"number": "1"},
    "CustomerReplied": {"ticket": "", "reply": "Never mind."},
}
"""The events that workflows wait for."""

KEY = "the process's own key"
OWN_ORDER = {"order_id": KEY}
TOO_LATE = ("ExternalOrderRejected", {"reason": "too late"})

EVENTS: dict[tuple[str, str], tuple[str, dict[str, Any]]] = {
    ("shipping", "Packing"): ("ParcelPacked", {"weight": 3}),
    ("shipping", "OnTheWay"): ("ParcelDelivered", {"parcel_id": KEY}),
    ("shipping", "Missing"): ("ParcelDelivered", {"parcel_id": KEY}),
    ("order-listing", "AwaitingExternalCreation"): TOO_LATE,
    ("order-listing", "AwaitingExternalListing"): ("ListedOnExternal", OWN_ORDER),
    ("order-listing", "AwaitingInternalListing"): ("ListedOnInternal", OWN_ORDER),
}
"""What moves a process manager on from each step."""

HOPELESS: dict[tuple[str, str], Any] = {
    ("fail-fast", "risky"): "fine",
    ("two-that-fail", "risky"): "fine",
    ("two-that-fail", "careful"): "fine",
    ("fan-out", "square"): 4,
    ("starving", "first"): "joined",
    ("locked", "be_locked"): "step",
}
"""Steps that fail however often they are tried, each with the result that an operator gives in its place."""


def end_all() -> None:
    """Run everything that is ready, and do what it waits for."""
    for number in range(ROUNDS):
        run()
        if not ProcessInstance.objects.live().exists():
            return
        for process in ProcessInstance.objects.live().order_by("pk"):
            if process.paused_at is not None:
                operations.unpause(process.pk, request=asked())
                continue
            if process.status == Status.FAILED:
                see_to(process, tried=number > 0)
            tell(process, number)
        run()
        pass_time(timedelta(days=4))


def run() -> None:
    for queue in QUEUES:
        drain(queue)


def asked() -> operations.ActionRequest:
    operator = User.objects.get(username="operator")
    return operations.ActionRequest(operator, uuid4(), "it is to end")


def see_to(process: ProcessInstance, *, tried: bool) -> None:
    """Try what has failed again; what has failed once more and is hopeless is passed over."""
    for run in process.step_runs.filter(status=StepStatus.FAILED, finished_at=None):
        known = (process.name, run.node)
        if tried and known in HOPELESS:
            operations.skip(process.pk, run.pk, HOPELESS[known], request=asked())
            return
    operations.retry(process.pk, request=asked())


def tell(process: ProcessInstance, number: int) -> None:
    """Decide what a process asks, and send it the events that it waits for."""
    definition = registry.find_definition(process.name)
    if issubclass(definition, ProcessManager):
        event, data = EVENTS[process.name, process.step]
        send(process, f"{number}", event, data)
        return
    for run in process.step_runs.filter(status=StepStatus.WAITING):
        if run.kind == StepKind.ASK:
            choice = ASKED.get(process.name, "yes")
            operations.decide(process.pk, run.pk, choice, request=asked())
        elif run.kind == StepKind.WAIT:
            event = next(name for name in definition.events if name in AWAITED)
            send(process, f"{number} {run.pk}", event, AWAITED[event])


def send(
    process: ProcessInstance, place: str, event: str, data: dict[str, Any]
) -> None:
    given = {
        name: process.correlation_key if value == KEY else value
        for name, value in data.items()
    }
    send_event(event, given, id=f"{process.pk} {place}", process_id=process.pk)


def not_ended() -> list[str]:
    """Return what has not ended, with the errors of its steps."""
    return [
        f"{process.name} is {process.status} in {process.step}: "
        + ", ".join(
            f"{run.node} {run.status} {run.error[-200:]}"
            for run in StepRun.objects.filter(instance=process, finished_at=None)
        )
        for process in ProcessInstance.objects.live()
    ]
