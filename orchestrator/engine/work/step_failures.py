"""The consequence of a failed attempt of a step: another attempt, another way, or an incident.

The first that applies: the database refused (release, a few times); the running code lacks something (set aside); an
earlier result is bad (redo it); the step polls (call it later); another attempt is due (backoff); an error link catches
the failure; the step is optional (skip it); a map or a join tolerates the failure; the step declined (undo the
process). Else the step has failed, which opens an incident.
"""

from __future__ import annotations

import logging

from django.db import transaction

from orchestrator.definition.workflow.advance import (
    Settled,
    error_link,
    tolerates_failure,
)
from orchestrator.definition.workflow.plan import Plan
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import incidents, secret_values
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.change.workflows import redoing, retrying, settling, visits
from orchestrator.engine.change.workflows.child_failure import failure_of
from orchestrator.engine.change.workflows.following import Following, follow_settled
from orchestrator.engine.change.workflows.settling import (
    count_elements,
    hold_map,
    lookup_map_row,
    tolerates_element,
)
from orchestrator.engine.change.workflows.workflow_change import (
    WorkflowChange,
    cancel_child,
    lock_child,
)
from orchestrator.engine.sql.batch import send
from orchestrator.engine.sql.connection import (
    allow_idle_for_rows,
    passes,
)
from orchestrator.engine.sql.tables import instances, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.application_code.errors import as_failure, from_engine
from orchestrator.engine.storage.results import (
    drop_result,
    returned_columns,
    seal_result,
)
from orchestrator.engine.work import backoff, failures, releasing
from orchestrator.engine.work.keeping import store_outcome
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.exceptions import (
    CorruptInput,
    LeaseLost,
    Permanent,
    Poll,
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
from orchestrator.text import Text

log = logging.getLogger(__name__)


def fail_run(
    run: StepRun,
    error: BaseException,
    plan: Plan | None,
    policy: Policy,
    worker_slice: WorkerSlice | None = None,
) -> None:
    """Store the consequence of a failed attempt.

    Args:
        run: the claimed visit.
        error: of the attempt.
        plan: the process's plan; None where the graph itself could not be made.
        policy: of the step.
        worker_slice: of a worker that keeps the outcome while the database refuses; None to release the visit then.
    """
    error = as_failure(error, run.node)
    if from_engine(error, LeaseLost):
        log.info("%s is left to another worker: %s", run, error)
        return
    try:
        secret_values.attach_work(error, run)
        if passes(error):
            charged = releasing.release_or_charge(
                run, error, policy, is_begun=plan is not None
            )
            if charged is None:
                return
            error = charged
        if _is_set_aside(run, error, plan):
            with transaction.atomic(durable=True):
                failures.set_aside(run, error)
        elif plan is None:
            failures.fail_work(run, error, policy.attempts(error))
        else:
            _settle_somehow(run, error, plan, policy, worker_slice)
    except LeaseLost:
        log.info("%s failed here but was taken over by another worker", run)


def _is_set_aside(run: StepRun, error: Exception, plan: Plan | None) -> bool:
    """Whether a deploy will bring what a visit lacks; one that waits for something outside goes on waiting."""
    if plan is None and run.kind in (StepKind.WAIT, StepKind.ASK):
        return True
    missing = object if plan is None else failures.MISSING
    return from_engine(error, missing) and not from_engine(error, WorkerDied)


def _settle_somehow(
    run: StepRun,
    error: Exception,
    plan: Plan,
    policy: Policy,
    worker_slice: WorkerSlice | None,
) -> None:
    """Store the consequence; if that fails too, open an incident with both errors."""

    def store() -> None:
        with transaction.atomic(durable=True):
            settle_failure(run, error, plan, policy)

    try:
        store_outcome(run, worker_slice, store)
    except BaseException as unlike:
        worse = as_failure(unlike, run.node)
        if from_engine(worse, LeaseLost):
            raise
        if passes(worse) and releasing.release_or_charge(run, worse, policy) is None:
            return
        log.exception("what the failure of %s leads to failed too", run)
        worse.__context__ = error
        with transaction.atomic(durable=True):
            change = _change(run, plan)
            _stop(change, run, worse)
            _tell(change, run, worse)
            change.write()


def settle_failure(run: StepRun, error: Exception, plan: Plan, policy: Policy) -> None:
    """Store the consequence in the running transaction.

    Raises:
        LeaseLost: another worker has the visit, or the process has ended.
    """
    change = _change(run, plan)
    if visits.is_undone_later(run, plan):
        status = visits.status_at_end(run)
        told = {**returned_columns(run), **incidents.error_columns(error)}
        change.close(run, status, **told)
        settling.undo_after_end(change, run, status)
        change.write()
        return
    if isinstance(error, failures.OF_CHILD) and (child := lock_child(run)) is not None:
        found = failure_of(child)
        if found is None:  # the sub-process was retried a moment ago
            retrying.wait_for_child(change, run)
            change.write()
            return
        error = found
    if isinstance(error, CorruptInput | Poll):
        hopeless = _call_later(change, run, error)
        if hopeless is None:
            return
        error = hopeless
    if failures.may_try_again(run, error, policy):
        _try_again(change, run, error, policy)
    else:
        _give_up(change, run, error, policy)


def _call_later(
    change: WorkflowChange, run: StepRun, error: CorruptInput | Poll
) -> Permanent | TimedOut | None:
    """Let a step poll, or redo the step of a bad result. Return the error that forbids it, if there is one."""
    if isinstance(error, Poll):
        return releasing.release_polling(change, run, error)
    try:
        redoing.request_redo(change, run, error.step, incidents.error_text(error))
        change.write()
    except Permanent as hopeless:
        hopeless.__cause__ = error
        return hopeless
    return None


def _change(run: StepRun, plan: Plan) -> WorkflowChange:
    """A change of the locked process, caused by this visit's failure.

    Raises:
        LeaseLost: the process is gone or has ended.
    """
    instance, now = instances.lock_live(run.instance_id)
    cause = Cause.of(CauseKind.STEP_FAILED, run.pk, instance.revision)
    queue = definitions.workflow_of(instance).queue
    return WorkflowChange(instance, cause, now, plan, queue)


def _try_again(
    change: WorkflowChange, run: StepRun, error: Exception, policy: Policy
) -> None:
    """Store when the next attempt is due; the process shows that it is retrying."""
    pause = backoff.pause(run.attempt, error, policy.backoff)
    values = {"status": StepStatus.RETRYING, **failures.attempt_columns(error)}
    values |= {"owner": "", "wake_at": change.now + pause, **returned_columns(run)}
    values |= failures.note_calls(run)
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
    """Store that the step has failed for good; the definition decides whether that stops the process."""
    if policy.idempotent and from_engine(error, failures.UNFIT):
        drop_result(run)  # a retry calls the function again
    fails = run.kind != StepKind.UNDO and not failures.is_undecided(run, error)
    way = _another_way(change, run, error, policy) if fails else ""
    if way:
        log.warning("%s failed, %s: %s", run, way, incidents.named_error(error))
        change.mark(
            incidents.resolve(Text("went another way"), change.now, step_run_id=run.pk)
        )
        change.write()
        return
    declined = fails and not run.redo and failures.is_declined(error)
    if declined and change.plan.undoable:
        log.warning("%s declined, its process is undone: %s", run, error)
        _undo(change, run, error)
    else:
        log.error("%s failed for good: %s", run, incidents.named_error(error))
        _stop(change, run, error, declined=declined)
        _tell(change, run, error)
    change.write()


def _undo(change: WorkflowChange, run: StepRun, error: Exception) -> None:
    """Begin to undo the process; with nothing to undo it ends at once."""
    _close(change, run, error, declined=True)
    _tell(change, run, error)
    change.undo()
    if change.instance.open_steps == 0:
        settling.resolve_undone(change)


def _another_way(
    change: WorkflowChange, run: StepRun, error: Exception, policy: Policy
) -> str:
    """Go on where an error link catches the failure, the step is optional, or a map or a join tolerates the failure.

    Returns:
        Which; "" for none. A failed redo of a step that is not optional is for people.
    """
    optional = change.plan[run.node].step.optional
    if run.redo:
        return _skip(change, run, error) if optional else ""
    item = run.kind == StepKind.ITEM
    caught = error_link(change.plan, run.node, error)
    if caught is not None:
        _close(change, run, error)
        if item:
            _close_map(change, run, error)
        follow_settled(change, Settled(run.node, run.visit, "failed", caught=caught))
        return f"{caught.target} catches it"
    if optional:
        return _skip(change, run, error)
    if item and _is_put_up_with(change, run, error, policy):
        _close(change, run, error)
        count_elements(change, run, {})
        return "its map puts up with it"
    if not item and tolerates_failure(change.plan, run.node, Following(change).look):
        _close(change, run, error)
        follow_settled(change, Settled(run.node, run.visit, "failed"))
        return "its join puts up with it"
    return ""


def _is_put_up_with(
    change: WorkflowChange, item: StepRun, error: Exception, policy: Policy
) -> bool:
    """Whether a map tolerates the failure of an element.

    It does not where a worker was lost even while it settled the failure: the cause may be the application's predicate
    that decides what follows the map.
    """
    vertex = change.plan[item.node]
    died = from_engine(error, WorkerDied | TimedOut)
    if vertex.decides and died and item.attempt > policy.attempts(error) + 1:
        return False
    return tolerates_element(item, vertex)


def _close(
    change: WorkflowChange, run: StepRun, error: Exception, *, declined: bool = False
) -> None:
    """Settle a failed visit, and cancel its sub-process: the process goes on without it."""
    values = {**failures.failure_columns(run, error), "declined": declined}
    change.close(run, StepStatus.FAILED, **values)
    if run.child_id is not None:
        cancel_child(run, change)


def _skip(change: WorkflowChange, run: StepRun, error: Exception) -> str:
    """Settle a failed visit of an optional step, whose result is None, and go on. Return why."""
    change.close(
        run, StepStatus.SKIPPED, **failures.attempt_columns(error), **seal_result(None)
    )
    if run.child_id is not None:
        cancel_child(run, change)
    settling.follow(change, run, None, StepStatus.SKIPPED)
    return "it is optional"


def _close_map(change: WorkflowChange, item: StepRun, error: Exception) -> None:
    """Settle the map of an element whose failure is caught as failed, and cancel its other elements."""
    head = lookup_map_row(item)
    change.close_open(head, StepStatus.FAILED, **failures.failure_columns(item, error))
    rows = change.instance.step_runs.filter(
        node=item.node, kind=StepKind.ITEM, finished_at=None
    )
    others = list(rows.exclude(pk=item.pk))
    allow_idle_for_rows(len(others))
    for other in others:
        change.close_open(other, StepStatus.CANCELLED)


def _stop(
    change: WorkflowChange, run: StepRun, error: Exception, *, declined: bool = False
) -> None:
    """Leave the step open as failed, until a person retries, skips or cancels."""
    values = {"status": StepStatus.FAILED, **failures.attempt_columns(error)}
    values |= {"declined": declined, "owner": "", "wake_at": None}
    values |= returned_columns(run) | failures.note_calls(run)
    values |= retrying.unpolled_columns(run)
    change.mark(step_runs.update(values, run.fence))
    change.touch(run, StepStatus.FAILED)
    change.instance.status = Status.FAILED
    if run.kind == StepKind.UNDO:
        return
    if run.kind == StepKind.ITEM and not run.redo:
        hold_map(change, run)
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
    change.mark(incidents.resolve(Text("failed again"), change.now, step_run_id=run.pk))
    change.mark(
        *incidents.open_incident(
            kind,
            incidents.named_error(error),
            change.now,
            instance=change.instance,
            error=error,
            detail=incidents.stored_traceback(error),
            bodies=secret_values.bodies_of(run),
            step_run_id=run.pk,
        )
    )
