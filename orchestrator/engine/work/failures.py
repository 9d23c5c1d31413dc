"""The consequence when a handler raises, a worker dies or the database refuses: another attempt, or an incident."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction

from orchestrator.configuration.conf import conf
from orchestrator.definition.codec import digest
from orchestrator.definition.workflow.conditions import condition_of
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import incidents, offering, secret_values
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.sql.batch import Statement, database_now, send
from orchestrator.engine.sql.connection import passes
from orchestrator.engine.sql.tables import instances, table_of
from orchestrator.engine.storage.application_code.errors import (
    as_failure,
    from_application,
    from_engine,
)
from orchestrator.engine.storage.results import has_returned
from orchestrator.engine.work import backoff, releasing
from orchestrator.engine.work.keeping import store_outcome
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.exceptions import (
    ChildCancelled,
    CorruptInput,
    HandlerMissing,
    Interrupted,
    InvalidMessage,
    KeyTaken,
    LeaseLost,
    LimitReached,
    NoCase,
    Permanent,
    Poll,
    SubprocessFailed,
    TimedOut,
    UnknownDefinition,
    UnknownEventType,
    UnreadableValue,
    WorkerDied,
)
from orchestrator.models import (
    Cause,
    CauseKind,
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    Lost,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Verdict,
    Work,
)
from orchestrator.models.step_run import CALLS
from orchestrator.text import Text, pack_text, storable_text

log = logging.getLogger(__name__)

HOLD = timedelta(seconds=30)
"""How long work without a handler is set aside, uncharged: a deploy will bring the handler."""

MOST_LEFT = 500
"""The most incidents that one look resolves."""

HOPELESS = InvalidMessage | WorkerDied | LimitReached
"""The engine's errors that another attempt cannot change; the application raises Permanent for the same."""

OF_CHILD = ChildCancelled | SubprocessFailed
FINAL = HOPELESS | Interrupted | NoCase | OF_CHILD | TimedOut
"""The engine's errors that another attempt of a step cannot change: TimedOut after the last attempt."""

UNFIT = InvalidMessage | NoCase
"""The engine's errors about a result with which the process cannot go on: the step itself has failed with it."""

MISSING = HandlerMissing | UnknownDefinition | UnknownEventType | UnreadableValue
"""The engine's errors about something that a deploy will bring."""


def fail_work(
    work: Work,
    error: BaseException,
    attempts: int | None = None,
    worker_slice: WorkerSlice | None = None,
) -> None:
    """Store the failure of an event, a command, a deadline or the beginning of a visit.

    The work gets another attempt later, or an incident.

    Args:
        work: the claimed row.
        error: the exception; one that ends programs is a failure like any other.
        attempts: the most attempts in all; the setting EVENT_ATTEMPTS when None.
        worker_slice: of a worker that keeps the outcome while the database refuses.

    Raises:
        DatabaseError: the database refused.
    """
    error = _without_poll(as_failure(error, _name_of(work)), work)
    if from_engine(error, LeaseLost):
        log.info("%s was settled by another worker: %s", work, error)
        return
    try:
        secret_values.attach_work(error, work)
        is_refusal = passes(error) and not from_application(error)
        if is_refusal and releasing.release_again(work, error):
            return
        final = _is_final(work, error, attempts)
        # Read before the transaction: code of the application that reads them could break it.
        bodies = secret_values.bodies_of(work) if final else []
        store = partial(_store, work, error, bodies, final=final)
        store_outcome(work, worker_slice, store)
    except LeaseLost:
        log.info("%s failed here but was taken over by another worker", work)


def _without_poll(error: Exception, work: Work) -> Exception:
    """Return the error of an attempt. Outside of steps, Poll becomes a permanent error."""
    if not isinstance(error, Poll):
        return error
    refused = Permanent(
        "%(name)s raised Poll, which only steps may: raise Retry, which counts as an attempt, or poll in a step of a "
        "workflow",
        _name_of(work),
    )
    refused.__cause__ = error
    return refused


def _store(work: Work, error: Exception, bodies: list[Any], *, final: bool) -> None:
    with transaction.atomic(durable=True):
        if from_engine(error, MISSING):
            set_aside(work, error)
        else:
            _fail(work, error, bodies, final)


def _is_final(work: Work, error: Exception, attempts: int | None) -> bool:
    """Whether work gets no other attempt."""
    most = conf().EVENT_ATTEMPTS if attempts is None else attempts
    hopeless = isinstance(error, Permanent) or from_engine(error, HOPELESS)
    return hopeless or work.attempt >= most or _came_second(work, error)


def _came_second(work: Work, error: Exception) -> bool:
    """Whether an event was to start a process whose key is taken by now: people decide about it."""
    starts = isinstance(work, InboxEvent) and work.starts
    return starts and from_engine(error, KeyTaken)


def check_attempts(work: Work, attempts: int) -> None:
    """Check that work may be tried once more.

    Raises:
        WorkerDied: the work has ended a worker in each of its attempts.
    """
    if work.attempt > attempts:
        raise WorkerDied(
            "the worker died or was killed in each of %(number)s attempts",
            work.attempt - 1,
        )


def _columns(work: Work, ended: datetime | None) -> dict[str, Any]:
    """The columns of a row of its kind after a failed attempt; `ended` is when the work failed for good, else None."""
    if isinstance(work, InboxEvent):
        verdict = Verdict.FAILED if ended else Verdict.RECEIVED
        settled = {"verdict": verdict, "handled_at": ended}
        return {**settled, "process_id": work.process_id}
    if isinstance(work, IssuedCommand):
        status = CommandStatus.FAILED if ended else CommandStatus.RETRYING
        return {"status": status, "finished_at": ended}
    if isinstance(work, StepRun) and work.kind:
        return {"status": StepStatus.FAILED if ended else StepStatus.RETRYING}
    return {}  # a deadline: the step goes on waiting for it


def _fail(work: Work, error: Exception, bodies: list[Any], final: bool) -> None:
    instance, now = instances.lock(_process_of(work))
    values = {
        **incidents.error_columns(error),
        "owner": "",
        "wake_at": None if final else now + backoff.pause(work.attempt, error),
        **_columns(work, now if final else None),
    }
    marks: list[Statement] = [table_of(work).update(values, work.fence)]
    if isinstance(work, InboxEvent):
        marks += offering.unpark(work, instance, now)
        marks += offering.wake_followers(work, instance, now) if final else []
    if final:
        marks += _opened(work, error, bodies, instance, now)
    status = Status.FAILED if final else Status.RETRYING
    at_rest = instance is None or instance.finished_at or instance.paused_at
    if instance is None or at_rest or instance.status in (status, Status.FAILED):
        send(marks)
        return
    _show(instance, work, marks, status, now)


def _opened(
    work: Work,
    error: Exception,
    bodies: list[Any],
    instance: ProcessInstance | None,
    now: datetime,
) -> list[Statement]:
    """The writes of a new incident about work that has failed for good."""
    message, about = incidents.named_error(error), _about(work)
    log.error("%s failed for good: %s", work, message)
    opened = incidents.open_incident(
        _kind(work),
        message,
        now,
        instance=instance,
        definition=work.target if isinstance(work, InboxEvent) else "",
        error=error,
        detail=incidents.stored_traceback(error),
        bodies=bodies,
        **about,
    )
    return [incidents.resolve(Text("failed again"), now, **about), *opened]


def _show(
    instance: ProcessInstance,
    work: Work,
    marks: list[Statement],
    status: Status,
    now: datetime,
) -> None:
    """Change the status of the process: a transition of its own, with a checkpoint."""
    kind = CauseKind(f"failure:{type(work)._meta.model_name}")
    move = ProcessChange(instance, Cause.of(kind, work.pk, instance.revision), now)
    move.mark(*marks)
    instance.status = status
    move.write()


def set_aside(work: Work, error: Exception) -> None:
    """Set work aside until the running code has what the work needs; open one incident."""
    now, said = database_now(), incidents.error_text(error)
    told = {"error": storable_text(said), "text": pack_text(said)}
    held = releasing.release(work, now + HOLD, **told)
    held.rows = 1
    send([held, *code_missing(work, error, now)])


def code_missing(work: Work, error: Exception, now: datetime) -> list[Statement]:
    """Return the writes of the one incident about work for which the running code lacks something."""
    about: dict[str, Any] = {"kind": Incident.Kind.HANDLER_MISSING, **_about(work)}
    if Incident.objects.open().filter(**about).exists():
        return []
    pks = [pk] if (pk := _process_of(work)) else []
    process = ProcessInstance.objects.filter(pk__in=pks).first()
    said = incidents.error_text(error)
    return incidents.open_incident(
        message=said, now=now, instance=process, error=error, **about
    )


def resolve_left_visits() -> int:
    """Resolve the incidents about missing code whose visit has ended meanwhile; return how many there were.

    The move out of a step does not look for them: it would cost each move a statement.
    """
    left = Incident.objects.without_code().exclude(step_run__finished_at=None)
    found = list(left.values_list("pk", flat=True)[:MOST_LEFT])
    if not found:
        return 0
    resolved = {"resolved_at": database_now(), "resolution": str(incidents.STEP_LEFT)}
    return Incident.objects.open().filter(pk__in=found).update(**resolved)


KINDS: dict[type[Work], Incident.Kind] = {
    InboxEvent: Incident.Kind.EVENT_FAILED,
    IssuedCommand: Incident.Kind.COMMAND_FAILED,
    StepRun: Incident.Kind.DEADLINE_FAILED,
}


def _kind(work: Work) -> Incident.Kind:
    of_step = isinstance(work, StepRun) and work.kind
    return Incident.Kind.STEP_FAILED if of_step else KINDS[type(work)]


def _name_of(work: Work) -> str:
    return work.node if isinstance(work, StepRun) else str(getattr(work, "type", work))


def _process_of(work: Work) -> UUID | None:
    named = "process_id" if isinstance(work, InboxEvent) else "instance_id"
    found: UUID | None = getattr(work, named)
    return found


def _about(work: Work) -> dict[str, Any]:
    if isinstance(work, InboxEvent):
        return {"event_id": work.pk}
    if isinstance(work, IssuedCommand):
        return {"command_id": work.pk}
    return {"step_run_id": work.pk}


def may_try_again(run: StepRun, error: Exception, policy: Policy) -> bool:
    """Return whether a step whose attempt has failed gets another one."""
    final = isinstance(error, Permanent) or from_engine(error, FINAL)
    return not final and run.attempt < policy.attempts(error)


def is_undecided(run: StepRun, error: Exception) -> bool:
    """Return whether a step is done and only the decision has failed: nothing takes its place or undoes its process."""
    done = has_returned(run) or bool(condition_of(error))
    return done and not from_engine(error, UNFIT)


def is_declined(error: Exception) -> bool:
    """Return whether an error is the application's no; any other error is unexpected."""
    return isinstance(error, Permanent) and not isinstance(
        error.__cause__, CorruptInput
    )


def failure_columns(run: StepRun, error: Exception) -> dict[str, Any]:
    """Return the columns of a step that has failed for good and is settled; the step that catches it reads them."""
    told: dict[str, Any] = {
        "step": run.node,
        "type": type(error).__name__,
        "message": storable_text(incidents.error_text(error))[:2000],
        "attempts": _calls_of(run),
    }
    if isinstance(error, SubprocessFailed):
        told["child"] = {
            "process_id": str(error.process_id),
            "step": error.step,
            "type": error.error,
            "message": error.text,
        }
    return {"result": told, "checksum": digest(told), **attempt_columns(error)}


def _calls_of(run: StepRun) -> int:
    """The number of calls of a visit's function, without the attempts after its return, which try a condition alone."""
    noted: int = (run.progress or {}).get(CALLS, 0)
    return noted or run.attempt - _is_uncalled(run)


def note_calls(run: StepRun) -> dict[str, Any]:
    """Note in the progress of a visit how often its function was called, once that has returned.

    Returns:
        The changed column; none if there is nothing to change.
    """
    shown = run.progress or {}
    if has_returned(run) == (CALLS in shown):
        return {}
    if CALLS in shown:
        run.progress = {name: shown[name] for name in shown if name != CALLS}
    else:
        run.progress = {"done": 0, "total": None, **shown, CALLS: run.attempt}
    return {"progress": run.progress}


def _is_uncalled(run: StepRun) -> bool:
    """Whether the last claim of a visit has counted an attempt in which nothing was called, as after the last timeout.

    An attempt that was cut off is not charged: its number belongs to a call.
    """
    return not run.called and run.lost != Lost.CUT_OFF


def attempt_columns(error: Exception) -> dict[str, Any]:
    """Return the columns of a visit after an attempt that raised an error."""
    return {
        **incidents.error_columns(error),
        "declined": False,
        "lost": "",
        "given_back": 0,
    }
