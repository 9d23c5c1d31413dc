"""Sub-processes: a step starts a process of its own, waits for its end, and takes over its result."""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError
from uuid6 import uuid7

from orchestrator.definition import Workflow
from orchestrator.definition.codec import encode
from orchestrator.definition.workflow.plan import Vertex
from orchestrator.engine.change.workflows import retrying, starting
from orchestrator.engine.change.workflows.child_failure import failure_of
from orchestrator.engine.sql.batch import send
from orchestrator.engine.sql.tables import instances, step_runs
from orchestrator.engine.steps.known_process import KnownProcess
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.results import Results, decode_result, seal_result
from orchestrator.engine.work import releasing
from orchestrator.exceptions import (
    CorruptInput,
    HandlerMissing,
    InvalidMessage,
    Permanent,
)
from orchestrator.models import ProcessInstance, StepRun, StepStatus
from orchestrator.text import Text


def child_definition(vertex: Vertex) -> type[Workflow]:
    """Return the workflow that a step runs.

    Raises:
        HandlerMissing: the step runs none in the running code.
    """
    if vertex.step.definition is None:
        raise HandlerMissing(
            "%(name)s is no sub-process in the running code", vertex.name
        )
    return vertex.step.definition


def child_input(definition: type[Workflow], arguments: dict[str, Any]) -> Any:
    """Return the input of a sub-process.

    Raises:
        InvalidMessage: its class refuses the arguments, or they are not of the declared types.
    """
    try:
        given = definition.Input(**arguments)
        encode(given)
    except BaseException as error:
        raise InvalidMessage(
            Text("the input of %(name)s: %(why)s", definition.name, error)
        ) from error
    return given


def run_child(process: KnownProcess, run: StepRun, vertex: Vertex) -> StepRun | None:
    """Start the sub-process of a visit, or settle the visit when the sub-process has ended.

    Returns:
        The visit that this worker goes on with.
    """
    if run.child_id is None:
        _start(process, run, vertex)
        return None
    child = completed_child(run)
    if child is None or run.status == StepStatus.FAILED:
        with process.committing():
            what = ("wait", run.attempt, process.instance.revision)
            change = process.lock(run, *what)
            retrying.wait_for_child(change, run)
            change.write()
        return None
    body = child_result(child)
    with process.committing():
        result = read_child_result(run, vertex, body)
        return process.store(process.lock(run), run, result, seal_result(body))


def _start(process: KnownProcess, run: StepRun, vertex: Vertex) -> None:
    """Start the sub-process of a visit, which then waits for its end.

    Raises:
        KeyTaken: another live process has the sub-process's key.
    """
    definition = child_definition(vertex)
    arguments = process.results.arguments(vertex.bindings, run, None)
    given, pk = child_input(definition, arguments), uuid7()
    pin = definitions.make_pin(definition, given)
    try:
        with process.committing():
            change = process.lock(run, "child", pk)
            if change.paused:  # in the meantime: nothing new starts
                send([releasing.suspend(run)])
                return
            starting.begin_process(pin, process_id=pk, parent=change.instance)
            waiting = {**retrying.WAITS_FOR_CHILD, "child": pk}
            change.mark(step_runs.update(waiting, run.fence))
            change.touch(run, StepStatus.WAITING)
            change.write()
    except IntegrityError:
        instances.check_free(definition.name, definition.correlation_key(given))
        raise


def completed_child(run: StepRun) -> ProcessInstance | None:
    """Return the sub-process of a visit if it has completed; None as long as it goes on.

    Raises:
        ChildCancelled: the sub-process was cancelled.
        SubprocessFailed: the sub-process has failed, and has not ended.
    """
    child = ProcessInstance.objects.get(parent_runs=run.pk)
    if (error := failure_of(child)) is not None:
        raise error
    return child if child.finished_at is not None else None


def read_child_result(run: StepRun, vertex: Vertex, body: Any) -> Any:
    """Return the result of a sub-process as the type of the step that runs it.

    Raises:
        UnreadableValue: the running code cannot read it.
    """
    return decode_result(vertex.returns, body, run.node)


def child_result(child: ProcessInstance) -> Any:
    """Return the result of an ended process as JSON values: that of its last step, or a dict of several.

    Raises:
        Permanent: a stored result does not match its checksum, and its step cannot be redone any more.
    """
    plan = definitions.plan_of(child)
    try:
        found = Results(child, plan).results(plan.ends())
    except CorruptInput as corrupt:  # of a step of the ended process
        raise Permanent(
            "the sub-process %(name)s %(process)s has lost its result: %(why)s",
            child.name,
            child.pk,
            corrupt,
        ) from corrupt
    if len(plan.ends()) == 1:
        return next(iter(found.values()), None)
    return found
