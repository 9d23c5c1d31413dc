"""Starts workflows and runs what is ready; the engine runs in this process."""

from datetime import timedelta
from time import sleep
from typing import Any

from django.db.models import F
from django.utils import timezone

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.engine.drain import drain
from orchestrator.models import Incident, ProcessInstance, StepKind, StepRun


def launch(definition: type[Workflow], *given: Any, id: str = "") -> ProcessInstance:
    """Start a process with these fields of its input; nothing has run yet."""
    receipt = start_process(definition, definition.Input(*given), id=id)
    return ProcessInstance.objects.get(pk=receipt.process_id)


def finished(definition: type[Workflow], *given: Any) -> ProcessInstance:
    """Start a process and run it as far as it goes without waiting."""
    process = launch(definition, *given)
    return go_on(process)


def go_on(process: ProcessInstance, queue: str = "default") -> ProcessInstance:
    """Run whatever is ready, and what is put off for a moment."""
    drain(queue)
    soon = timedelta(seconds=0.6)
    while StepRun.objects.filter(
        queue=queue, wake_at__lt=timezone.now() + soon
    ).exists():
        sleep(0.02)
        drain(queue)
    process.refresh_from_db()
    return process


def let_pass(time: timedelta) -> None:
    """Let everything that is due later be due earlier, and run it."""
    StepRun.objects.filter(wake_at__isnull=False).update(wake_at=F("wake_at") - time)
    drain()


def insist(process: ProcessInstance, times: int = 10) -> ProcessInstance:
    """Let all pauses between attempts pass."""
    for _ in range(times):
        let_pass(timedelta(minutes=10))
    return go_on(process)


def visits(process: ProcessInstance, node: str) -> list[StepRun]:
    """Return all visits of a node, its elements too."""
    return list(process.step_runs.filter(node=node).order_by("pk"))


def visit(process: ProcessInstance, node: str) -> StepRun:
    """Return the one visit of a node."""
    (run,) = visits(process, node)
    return run


def results(process: ProcessInstance) -> dict[str, Any]:
    """Return the results of the nodes that are done, their last ones; maps have none of their own."""
    runs = process.step_runs.filter(status__in=["done", "skipped"], item=None)
    runs = runs.exclude(kind=StepKind.MAP).order_by("visit", "round")
    return {run.node: run.result for run in runs}


def statuses(process: ProcessInstance) -> dict[str, str]:
    """Return the status of each node's last visit."""
    runs = process.step_runs.filter(item=None).order_by("visit", "round")
    return {run.node: run.status for run in runs}


def complaint(process: ProcessInstance) -> Incident:
    """Return the one incident that is open about a process."""
    incident: Incident = Incident.objects.open().get(instance=process)
    return incident
