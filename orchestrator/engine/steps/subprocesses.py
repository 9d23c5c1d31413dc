"""Sub-processes: a step that starts a process of its own, waits for its end, and takes over its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import IntegrityError, transaction
from uuid6 import uuid7

from orchestrator.definition import Workflow
from orchestrator.definition.codec import decode, encode, seal
from orchestrator.definition.workflow.advance import Settled
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change import maps, redoing, starting, undoing
from orchestrator.engine.failures import of_work
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
from orchestrator.models import ProcessInstance, Status, StepKind, StepRun, StepStatus

if TYPE_CHECKING:
    from orchestrator.engine.steps.session import Session

ASLEEP: dict[str, Any] = {
    "status": StepStatus.WAITING,
    "wake_at": None,
    "owner": "",
    "attempt": 0,
}
"""A visit that waits for the end of its sub-process."""


def run(session: Session, run: StepRun, vertex: Vertex) -> StepRun | None:
    """Starts the sub-process of a visit, or settles the visit when the sub-process has ended.

    Raises:
        ChildCancelled: it was cancelled.
        Permanent: its result cannot be read any more.
    """
    if run.child_id is None:
        _start(session, run, vertex)
        return None
    child = ProcessInstance.objects.get(pk=run.child_id)
    if child.finished_at is None:
        _wait_on(session, run)
        return None
    if child.status == Status.CANCELLED:
        raise ChildCancelled(f"the sub-process {child.name} {child.pk} was cancelled")
    try:
        body = result_of(child)
    except CorruptInput as corrupt:  # a step of that process, which has ended
        raise Permanent(
            f"the sub-process {child.name} {child.pk} has lost its result: {corrupt}"
        ) from corrupt
    with transaction.atomic(durable=True):
        flow = session.lock(run)
        flow.close(run, StepStatus.DONE, result=body, checksum=seal(body))
        if run.redo:
            redoing.finished(flow, run)
        elif run.kind == StepKind.ITEM:
            maps.count(flow, run, failed=False)
        else:
            result = decode(vertex.result_type, body)
            flow.go_on(Settled(run.node, run.visit, "done", result))
        return session.commit(flow, run, body)


def _wait_on(session: Session, run: StepRun) -> None:
    """Has a visit wait whose worker was called too early; its sub-process, if it ends just now, is heard."""
    with transaction.atomic(durable=True):
        flow = session.lock(run, "wait", run.attempt, session.instance.revision)
        child = undoing.locked_child(run)
        if child is None or child.finished_at is not None:
            awake = {"wake_at": flow.now, "owner": "", "attempt": run.attempt - 1}
            flow.mark(step_runs.update(awake, of_work.fence(run)))
        else:
            flow.mark(step_runs.update(ASLEEP, of_work.fence(run)))
        flow.touch(run, StepStatus.WAITING)
        flow.write()


def _start(session: Session, run: StepRun, vertex: Vertex) -> None:
    definition = vertex.step.definition
    if definition is None:
        raise HandlerMissing(f"{run.node} is no sub-process in the running code")
    arguments = session.results.arguments(vertex.bindings, run, None)
    given = _input(definition, arguments)
    try:
        with transaction.atomic(durable=True):
            pk = uuid7()
            flow = session.lock(run, "child", pk)
            starting.begin(definition, given, process_id=pk, parent=flow.instance)
            waiting = {**ASLEEP, "child": pk}
            flow.mark(step_runs.update(waiting, of_work.fence(run)))
            flow.touch(run, StepStatus.WAITING)
            flow.write()
    except IntegrityError:
        _explain(definition, given)
        raise


def _input(definition: type[Workflow], arguments: dict[str, Any]) -> Any:
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


def _explain(definition: type[Workflow], given: Any) -> None:
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


def result_of(child: ProcessInstance) -> Any:
    """The result of a process that has ended, as JSON values: that of its last step, or a dict of several.

    Raises:
        CorruptInput: a stored result does not match its checksum.
    """
    plan = definitions.plan_of(child)
    found = Results(child, plan).results(plan.ends())
    if len(plan.ends()) == 1:
        return next(iter(found.values()), None)
    return found
