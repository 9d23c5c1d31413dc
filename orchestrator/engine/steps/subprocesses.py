"""Sub-processes: a step that starts a process of its own, waits for its end, and takes over its result."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from orchestrator.definition import Workflow
from orchestrator.definition.codec import encode
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change import starting
from orchestrator.engine.change.workflow import WorkflowChange, locked_child
from orchestrator.engine.claims.fence import fence
from orchestrator.engine.claims.give_back import given_back
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.results import Results
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import (
    ChildCancelled,
    CorruptInput,
    HandlerMissing,
    InvalidMessage,
    KeyTaken,
    Permanent,
)
from orchestrator.models import ProcessInstance, Status, StepRun, StepStatus

ASLEEP: dict[str, Any] = {
    "status": StepStatus.WAITING,
    "wake_at": None,
    "owner": "",
    "attempt": 0,
}
"""A visit that waits for the end of its sub-process."""


def definition_of(vertex: Vertex) -> type[Workflow]:
    """The workflow that a step runs.

    Raises:
        HandlerMissing: the running code has none there.
    """
    if vertex.step.definition is None:
        raise HandlerMissing(f"{vertex.name} is no sub-process in the running code")
    return vertex.step.definition


def input_of(definition: type[Workflow], arguments: dict[str, Any]) -> Any:
    """The input of a sub-process.

    Raises:
        InvalidMessage: its class refuses the arguments, or they are not of the declared types.
    """
    try:
        given = definition.Input(**arguments)
        encode(given)
    except Exception as error:
        raise InvalidMessage(f"the input of {definition.name}: {error}") from error
    return given


def start(
    change: WorkflowChange,
    run: StepRun,
    definition: type[Workflow],
    given: Any,
    process_id: UUID,
) -> None:
    """Starts the sub-process of a visit, which waits for its end."""
    starting.begin(definition, given, process_id=process_id, parent=change.instance)
    waiting = {**ASLEEP, "child": process_id}
    change.mark(step_runs.update(waiting, fence(run)))
    change.touch(run, StepStatus.WAITING)


def explain(definition: type[Workflow], given: Any) -> None:
    """Says why a sub-process could not be stored, if it is for its key: that becomes free some time.

    Raises:
        KeyTaken: another live process has it.
    """
    key = definition.correlation_key(given)
    live = ProcessInstance.objects.live().filter(name=definition.name)
    if key and live.filter(correlation_key=key).exists():
        raise KeyTaken(
            f"there is already a live {definition.name} with the key {key!r}"
        )


def ended(run: StepRun) -> ProcessInstance | None:
    """The sub-process of a visit, if it has completed; None as long as it goes on.

    Raises:
        ChildCancelled: it was cancelled.
    """
    child = ProcessInstance.objects.get(parent_runs=run.pk)
    if child.finished_at is None:
        return None
    if child.status == Status.CANCELLED:
        raise ChildCancelled(f"the sub-process {child.name} {child.pk} was cancelled")
    return child


def wait_on(change: WorkflowChange, run: StepRun) -> None:
    """Has a visit wait whose worker was called too early; its sub-process, if it ends just now, is heard."""
    child = locked_child(run)
    if child is None or child.finished_at is not None:
        change.mark(given_back(run, change.now)._replace(rows=1))
    else:
        change.mark(step_runs.update(ASLEEP, fence(run)))
    change.touch(run, StepStatus.WAITING)


def result_of(child: ProcessInstance) -> Any:
    """The result of a process that has ended, as JSON values: that of its last step, or a dict of several.

    Raises:
        Permanent: a stored result does not match its checksum, and cannot be redone any more.
    """
    plan = definitions.plan_of(child)
    try:
        found = Results(child, plan).results(plan.ends())
    except CorruptInput as corrupt:  # a step of that process, which has ended
        raise Permanent(
            f"the sub-process {child.name} {child.pk} has lost its result: {corrupt}"
        ) from corrupt
    if len(plan.ends()) == 1:
        return next(iter(found.values()), None)
    return found
