"""Sub-processes: a step that starts a process of its own, waits for its end, and takes over its result."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from orchestrator.definition import Workflow
from orchestrator.definition.codec import decode, encode
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change import retrying, starting
from orchestrator.engine.change.child_failure import failure_of
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.storage import definitions, keys
from orchestrator.engine.storage.definitions import Pin
from orchestrator.engine.storage.results import Results
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import (
    CorruptInput,
    HandlerMissing,
    InvalidMessage,
    Permanent,
)
from orchestrator.models import ProcessInstance, StepRun, StepStatus
from orchestrator.text import Text


def definition_of(vertex: Vertex) -> type[Workflow]:
    """The workflow that a step runs.

    Raises:
        HandlerMissing: the running code has none there.
    """
    if vertex.step.definition is None:
        raise HandlerMissing(
            "%(name)s is no sub-process in the running code", vertex.name
        )
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
        raise InvalidMessage(
            Text("the input of %(name)s: %(why)s", definition.name, error)
        ) from error
    return given


def start(
    change: WorkflowChange,
    run: StepRun,
    pin: Pin,
    process_id: UUID,
) -> None:
    """Starts the sub-process of a visit, which waits for its end."""
    starting.begin(pin, process_id=process_id, parent=change.instance)
    waiting = {**retrying.WAITS_FOR_CHILD, "child": process_id}
    change.mark(step_runs.update(waiting, run.fence))
    change.touch(run, StepStatus.WAITING)


def explain(definition: type[Workflow], given: Any) -> None:
    """Says why a sub-process could not be stored, if it is for its key: that becomes free some time.

    Raises:
        KeyTaken: another live process has it.
    """
    keys.check_free(definition.name, definition.correlation_key(given))


def ended(run: StepRun) -> ProcessInstance | None:
    """The sub-process of a visit, if it has completed; None as long as it goes on.

    Raises:
        ChildCancelled: it was cancelled.
        SubprocessFailed: it has failed, and stands so.
    """
    child = ProcessInstance.objects.get(parent_runs=run.pk)
    if (error := failure_of(child)) is not None:
        raise error
    return child if child.finished_at is not None else None


def read(run: StepRun, vertex: Vertex, body: Any) -> Any:
    """The result of a sub-process as the type of the step that runs it.

    Raises:
        InvalidMessage: it is not of that type.
    """
    try:
        return decode(vertex.returns, body)
    except InvalidMessage as bad:
        raise InvalidMessage(
            Text("the result of %(step)s: %(why)s", run.node, bad)
        ) from None


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
            "the sub-process %(name)s %(process)s has lost its result: %(why)s",
            child.name,
            child.pk,
            corrupt,
        ) from corrupt
    if len(plan.ends()) == 1:
        return next(iter(found.values()), None)
    return found
