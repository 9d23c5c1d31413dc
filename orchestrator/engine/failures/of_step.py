"""What a failed attempt of a step leads to: another attempt, another way, or a person.

In this order: the database refused (given back, so many times), the running code lacks something (held), an earlier
result is bad (redone), another attempt is due (backoff), an error link catches it, a map or a join puts up with it,
the process is undone because the step declined; else the step has failed and people are told.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any

from django.db import transaction

from orchestrator.definition.codec import digest
from orchestrator.definition.invalid import LONGEST
from orchestrator.definition.workflow.advance import Settled, catching
from orchestrator.definition.workflow.plan import Plan
from orchestrator.definition.workflow.steps import Policy
from orchestrator.definition.workflow.tolerance import tolerates_failure
from orchestrator.engine.change import (
    incidents,
    maps,
    redoing,
    retrying,
    secret_values,
    settling,
    visits,
)
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.change.application_code import is_engines
from orchestrator.engine.change.child_failure import failure_of
from orchestrator.engine.change.following import Following, go_on
from orchestrator.engine.change.workflow import (
    WorkflowChange,
    cancel_child,
    locked_child,
)
from orchestrator.engine.claims import give_back
from orchestrator.engine.failures import backoff, of_work
from orchestrator.engine.storage import definitions, idle_limit, uncertain
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.engine.storage.tables import instances, step_runs
from orchestrator.exceptions import (
    ChildCancelled,
    CorruptInput,
    Interrupted,
    LeaseLost,
    NoCase,
    Permanent,
    Retry,
    SubprocessFailed,
    TimedOut,
    WorkerDied,
)
from orchestrator.models import (
    Cause,
    CauseKind,
    Incident,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.text import Text, storable_text

log = logging.getLogger(__name__)

OF_CHILD = ChildCancelled | SubprocessFailed
FINAL = of_work.HOPELESS | Interrupted | NoCase | OF_CHILD | TimedOut
"""What another attempt of a step cannot change when the engine raises it: TimedOut when the attempts are used up."""


def of_step(run: StepRun, error: Exception, plan: Plan | None, policy: Policy) -> None:
    """Stores what a failed attempt leads to; without a plan the graph itself could not be had."""
    if is_engines(error, LeaseLost):
        log.info("%s is let go of: %s", run, error)
        return
    try:
        secret_values.note_of_work(error, run)
        if passes(error) and plan is None:
            give_back.refused(run, error)
            return
        if passes(error):
            if policy.idempotent and give_back.step_refused(run, error):
                return
            uncertain.note()
            error = error if policy.idempotent else give_back.unknown(run, error)
        missing = object if plan is None else of_work.MISSING
        waits = plan is None and run.kind in (StepKind.WAIT, StepKind.ASK)
        held = is_engines(error, missing) and not is_engines(error, WorkerDied)
        if waits or held:  # what waits for others goes on waiting
            with transaction.atomic(durable=True):
                of_work.hold(run, error)
        elif plan is None:
            of_work.of_work(run, error, policy.attempts(error))
        else:
            _settle_somehow(run, error, plan, policy)
    except LeaseLost:
        log.info("%s failed here but was taken over by another worker", run)


def _settle_somehow(run: StepRun, error: Exception, plan: Plan, policy: Policy) -> None:
    """Stores what follows; where that cannot be carried out either, people are told of both errors."""
    try:
        with transaction.atomic(durable=True):
            _settle(run, error, plan, policy)
    except Exception as worse:
        if is_engines(worse, LeaseLost):
            raise
        if passes(worse):
            if policy.idempotent and give_back.step_refused(run, worse):
                return
            uncertain.note()
        log.exception("what the failure of %s leads to failed too", run)
        worse.__context__ = error
        with transaction.atomic(durable=True):
            change = _change(run, plan)
            _stop(change, run, worse)
            _tell(change, run, worse)
            change.write()


def _settle(run: StepRun, error: Exception, plan: Plan, policy: Policy) -> None:
    change = _change(run, plan)
    if visits.is_undone_later(run, plan):
        change.close(run, StepStatus.CANCELLED, **incidents.kept(error))
        settling.came_to_its_end(change, run, StepStatus.CANCELLED)
        change.write()
        return
    if isinstance(error, OF_CHILD) and (child := locked_child(run)) is not None:
        found = failure_of(child)
        if found is None:  # it was retried a moment ago
            retrying.wait_on(change, run)
            change.write()
            return
        error = found
    if isinstance(error, CorruptInput):
        try:
            redoing.request(change, run, error.step, incidents.said(error))
            change.write()
            return
        except Permanent as hopeless:
            hopeless.__cause__ = error
            error = hopeless
    if _may_try_again(run, error, policy):
        _try_again(change, run, error, policy)
    else:
        _give_up(change, run, error, policy)


def _change(run: StepRun, plan: Plan) -> WorkflowChange:
    """A change of the locked process, caused by a failure of this visit.

    Raises:
        LeaseLost: the process is gone or has ended.
    """
    instance, now = instances.lock_live(run.instance_id)
    cause = Cause.of(CauseKind.STEP_FAILED, run.pk, instance.revision)
    queue = definitions.workflow_of(instance).queue
    return WorkflowChange(instance, cause, now, plan, queue)


def _may_try_again(run: StepRun, error: Exception, policy: Policy) -> bool:
    final = isinstance(error, Permanent) or is_engines(error, FINAL)
    return not final and run.attempt < policy.attempts(error)


def _try_again(
    change: WorkflowChange, run: StepRun, error: Exception, policy: Policy
) -> None:
    """Stores when the next attempt is due; the process shows that it is retrying."""
    pause = backoff.delay(run.attempt, policy.backoff)
    if isinstance(error, Retry) and error.after is not None:
        pause = min(max(error.after, timedelta(0)), LONGEST)
    values = {
        "status": StepStatus.RETRYING,
        **failed_attempt(error),
        "owner": "",
        "wake_at": change.now + pause,
    }
    mark = step_runs.update(values, run.fence)
    if change.instance.status in (Status.RETRYING, Status.FAILED):
        send([mark])
        announce(change.instance, {run.node: StepStatus.RETRYING}, "")
        return
    change.mark(mark)
    change.touch(run, StepStatus.RETRYING)
    change.instance.status = Status.RETRYING
    change.write()


def _give_up(
    change: WorkflowChange, run: StepRun, error: Exception, policy: Policy
) -> None:
    """The step has failed for good; whether that stops the process is for the definition to say."""
    undo = run.kind == StepKind.UNDO
    way = "" if undo or run.redo else _another_way(change, run, error, policy)
    if way:
        log.warning("%s failed, %s: %s", run, way, incidents.named(error))
        change.mark(
            incidents.resolved(Text("went another way"), change.now, step_run_id=run.pk)
        )
        change.write()
        return
    declined = declines(error) and not undo and not run.redo
    if declined and change.plan.undoable:
        log.warning("%s declined, its process is undone: %s", run, error)
        _undo(change, run, error)
    else:
        log.error("%s failed for good: %s", run, incidents.named(error))
        _stop(change, run, error, declined=declined)
        _tell(change, run, error)
    change.write()


def declines(error: Exception) -> bool:
    """Whether an error is the application's no, not something unexpected that people have to look at."""
    return isinstance(error, Permanent) and not isinstance(
        error.__cause__, CorruptInput
    )


def _undo(change: WorkflowChange, run: StepRun, error: Exception) -> None:
    """Has everything undone that was done; with nothing to undo the process ends at once."""
    _close(change, run, error, declined=True)
    _tell(change, run, error)
    change.undo()
    if change.instance.open_steps == 0:
        settling.all_is_undone(change)


def _another_way(
    change: WorkflowChange, run: StepRun, error: Exception, policy: Policy
) -> str:
    """Goes on where an error link catches it, or a map or a join puts up with it; says which, "" if none does."""
    item = run.kind == StepKind.ITEM
    caught = catching(change.plan, run.node, error)
    if caught is not None:
        _close(change, run, error)
        if item:
            _close_map(change, run, error)
        go_on(change, Settled(run.node, run.visit, "failed", caught=caught))
        return f"{caught.target} catches it"
    if item and _is_put_up_with(change, run, error, policy):
        _close(change, run, error)
        maps.count(change, run, {})
        return "its map puts up with it"
    if not item and tolerates_failure(change.plan, run.node, Following(change).look):
        _close(change, run, error)
        go_on(change, Settled(run.node, run.visit, "failed"))
        return "its join puts up with it"
    return ""


def _is_put_up_with(
    change: WorkflowChange, item: StepRun, error: Exception, policy: Policy
) -> bool:
    """Whether a map puts up with the failure of an element.

    Not if a worker was lost even in giving that up: the application may have been asked then what follows the map.
    """
    vertex = change.plan[item.node]
    died = is_engines(error, WorkerDied | TimedOut)
    if vertex.decides and died and item.attempt > policy.attempts(error) + 1:
        return False
    return maps.tolerates(change, item, vertex)


def _close(
    change: WorkflowChange, run: StepRun, error: Exception, *, declined: bool = False
) -> None:
    """Settles a visit that has failed, with its sub-process: the process goes on without it."""
    values = {**failed(run, error), "declined": declined}
    change.close(run, StepStatus.FAILED, **values)
    if run.child_id is not None:
        cancel_child(run, change)


def failed(run: StepRun, error: Exception) -> dict[str, Any]:
    """What is stored with a step that has failed for good and is settled: the step that catches it reads it."""
    told: dict[str, Any] = {
        "step": run.node,
        "type": type(error).__name__,
        "message": storable_text(incidents.said(error))[:2000],
        "attempts": run.attempt,
    }
    if isinstance(error, SubprocessFailed):
        told["child"] = {
            "process_id": str(error.process_id),
            "step": error.step,
            "type": error.error,
            "message": error.text,
        }
    return {
        "result": told,
        "checksum": digest(told),
        **failed_attempt(error),
    }


def failed_attempt(error: Exception) -> dict[str, Any]:
    """What a visit keeps of an attempt that came back with an error."""
    return {
        **incidents.kept(error),
        "declined": False,
        "lost": "",
        "given_back": 0,
    }


def _close_map(change: WorkflowChange, item: StepRun, error: Exception) -> None:
    """The map of an element whose failure is caught has failed; its other elements are cancelled."""
    head = maps.head_of(change, item)
    change.close_open(head, StepStatus.FAILED, **failed(item, error))
    rows = change.instance.step_runs.filter(
        node=item.node, kind=StepKind.ITEM, finished_at=None
    )
    others = list(rows.exclude(pk=item.pk))
    idle_limit.allow_rows(len(others))
    for other in others:
        change.close_open(other, StepStatus.CANCELLED)


def _stop(
    change: WorkflowChange, run: StepRun, error: Exception, *, declined: bool = False
) -> None:
    """The step stays open as failed, until a person retries, skips or cancels."""
    values = {
        "status": StepStatus.FAILED,
        **failed_attempt(error),
        "declined": declined,
        "owner": "",
        "wake_at": None,
    }
    change.mark(step_runs.update(values, run.fence))
    change.touch(run, StepStatus.FAILED)
    change.instance.status = Status.FAILED
    if run.kind == StepKind.UNDO:
        return
    change.failed = True
    for name in change.plan.failing_fast:
        region = change.plan.region(name)
        if run.node in region:
            change.give_up(sorted(region - {run.node}), because=run.node)


def _tell(change: WorkflowChange, run: StepRun, error: Exception) -> None:
    kind = Incident.Kind.STEP_FAILED
    if isinstance(error.__cause__, CorruptInput):
        kind = Incident.Kind.CORRUPTED_DATA
    change.instance.step = run.node
    change.mark(
        incidents.resolved(Text("failed again"), change.now, step_run_id=run.pk)
    )
    change.mark(
        *incidents.opened(
            kind,
            incidents.named(error),
            change.now,
            instance=change.instance,
            error=error,
            detail=incidents.trace(error),
            step_run_id=run.pk,
        )
    )
