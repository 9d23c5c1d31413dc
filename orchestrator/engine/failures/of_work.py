"""What happens when a handler raises, a worker dies or the database refuses: try again later, or tell people."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from orchestrator.conf import conf
from orchestrator.engine.change import incidents, offering, secret_values
from orchestrator.engine.change.application_code import is_engines
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.claims import give_back
from orchestrator.engine.claims.lines import followers
from orchestrator.engine.failures import backoff
from orchestrator.engine.storage.batch import Statement, database_now, send
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.engine.storage.tables import instances, table_of
from orchestrator.exceptions import (
    HandlerMissing,
    InvalidMessage,
    KeyTaken,
    LeaseLost,
    LimitReached,
    Permanent,
    UnknownDefinition,
    UnknownEventType,
    WorkerDied,
)
from orchestrator.models import (
    Cause,
    CauseKind,
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Verdict,
    Work,
)
from orchestrator.text import Text, pack_text, storable_text

log = logging.getLogger(__name__)

HOLD = timedelta(seconds=30)
"""How long work without a handler is set aside: a deploy will bring the handler, no attempt is charged."""

HOPELESS = InvalidMessage | WorkerDied | LimitReached
"""What another attempt cannot change when the engine raises it, as Permanent says it of the application's code."""

MISSING = HandlerMissing | UnknownDefinition | UnknownEventType
"""What a deploy will bring, when it is the engine that misses it."""


def of_work(work: Work, error: Exception, attempts: int | None = None) -> None:
    """Stores that an event, a command, a deadline or the begin of a visit failed.

    It is tried again later, or people must look.

    Args:
        work: the claimed row.
        error: what was raised.
        attempts: how often it is tried in all; the setting EVENT_ATTEMPTS when None.
    """
    if is_engines(error, LeaseLost):
        log.info("%s was settled by another worker: %s", work, error)
        return
    most = conf().EVENT_ATTEMPTS if attempts is None else attempts
    last = work.attempt >= most or _came_second(work, error)
    try:
        secret_values.note_of_work(error, work)
        if passes(error):
            give_back.refused(work, error)
            return
        with transaction.atomic(durable=True):
            if is_engines(error, MISSING):
                hold(work, error)
            else:
                hopeless = isinstance(error, Permanent) or is_engines(error, HOPELESS)
                _fail(work, error, last or hopeless)
    except LeaseLost:
        log.info("%s failed here but was taken over by another worker", work)


def _came_second(work: Work, error: Exception) -> bool:
    """Whether it was to start a process whose key is taken by now: people decide what becomes of it."""
    starts = isinstance(work, InboxEvent) and work.starts
    return starts and is_engines(error, KeyTaken)


def check_attempts(work: Work, attempts: int) -> None:
    """Stops work that ends its workers.

    Raises:
        WorkerDied: it has ended a worker in each of its attempts.
    """
    if work.attempt > attempts:
        raise WorkerDied(
            "the worker died or was killed in each of %(number)s attempts",
            work.attempt - 1,
        )


def _columns(work: Work, ended: datetime | None) -> dict[str, Any]:
    """What a failed attempt leaves in a row of its kind; `ended` is when it failed for good, else None."""
    if isinstance(work, InboxEvent):
        verdict = Verdict.FAILED if ended else Verdict.RECEIVED
        settled = {"verdict": verdict, "handled_at": ended}
        return {**settled, "process_id": work.process_id}
    if isinstance(work, IssuedCommand):
        status = CommandStatus.FAILED if ended else CommandStatus.RETRYING
        return {"status": status, "finished_at": ended}
    if isinstance(work, StepRun) and work.kind:
        return {"status": StepStatus.FAILED if ended else StepStatus.RETRYING}
    return {}  # a deadline, for which the step goes on waiting


def _fail(work: Work, error: Exception, final: bool) -> None:
    instance, now = instances.lock(_process_of(work))
    values = {
        **incidents.kept(error),
        "owner": "",
        "wake_at": None if final else now + backoff.delay(work.attempt),
        **_columns(work, now if final else None),
    }
    marks: list[Statement] = [table_of(work).update(values, work.fence)]
    if isinstance(work, InboxEvent):
        marks += offering.parked_no_more(work, instance, now)
        marks += followers(work, instance, now) if final else []
    message = incidents.named(error)
    if final:
        log.error("%s failed for good: %s", work, message)
        detail = incidents.trace(error)
        about = _about(work)
        marks.append(incidents.resolved(Text("failed again"), now, **about))
        marks += incidents.opened(
            _kind(work),
            message,
            now,
            instance=instance,
            definition=work.target if isinstance(work, InboxEvent) else "",
            error=error,
            detail=detail,
            **about,
        )
    status = Status.FAILED if final else Status.RETRYING
    at_rest = instance is None or instance.finished_at or instance.paused_at
    if instance is None or at_rest or instance.status in (status, Status.FAILED):
        send(marks)
        return
    _show(instance, work, marks, status, now)


def _show(
    instance: ProcessInstance,
    work: Work,
    marks: list[Statement],
    status: Status,
    now: datetime,
) -> None:
    """Makes the process show its trouble: a transition of its own, with a checkpoint."""
    kind = CauseKind(f"failure:{type(work)._meta.model_name}")
    move = ProcessChange(instance, Cause.of(kind, work.pk, instance.revision), now)
    move.mark(*marks)
    instance.status = status
    move.write()


def hold(work: Work, error: Exception) -> None:
    """Sets work aside until the running code has what it needs; people are told once."""
    now, said = database_now(), incidents.said(error)
    told = {"error": storable_text(said), "text": pack_text(said)}
    held = give_back.given_back(work, now + HOLD, **told)
    held.rows = 1
    marks = [held]
    about: dict[str, Any] = {"kind": Incident.Kind.HANDLER_MISSING, **_about(work)}
    if not Incident.objects.open().filter(**about).exists():
        about_whom = [pk] if (pk := _process_of(work)) else []
        process = ProcessInstance.objects.filter(pk__in=about_whom).first()
        marks += incidents.opened(
            message=said, now=now, instance=process, error=error, **about
        )
    send(marks)


KINDS: dict[type[Work], Incident.Kind] = {
    InboxEvent: Incident.Kind.EVENT_FAILED,
    IssuedCommand: Incident.Kind.COMMAND_FAILED,
    StepRun: Incident.Kind.DEADLINE_FAILED,
}


def _kind(work: Work) -> Incident.Kind:
    of_step = isinstance(work, StepRun) and work.kind
    return Incident.Kind.STEP_FAILED if of_step else KINDS[type(work)]


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
