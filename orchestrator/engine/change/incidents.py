"""Opening and resolving incidents, and noting occurrences for notices, in the commit of their cause."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.configuration.notice_settings import Topic, is_notice_wanted
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.failure_cause import (
    error_class_name,
    fingerprint,
    place_in_code,
)
from orchestrator.engine.sql import tables
from orchestrator.engine.sql.batch import Statement
from orchestrator.models import Incident, Occurrence, ProcessInstance
from orchestrator.text import (
    Text,
    first_wording,
    pack_text,
    storable_text,
    text_from,
    with_error_type,
)

MAX_DETAIL = 16 * 1024

CANCELLED = Text("cancelled")
"""The resolution of the incidents of a cancelled process or step."""


def open_incident(
    kind: Incident.Kind,
    message: str,
    now: datetime,
    *,
    instance: ProcessInstance | None = None,
    definition: str = "",
    error: BaseException | None = None,
    detail: str = "",
    **about: Any,
) -> list[Statement]:
    """Return the writes of a new incident and of its occurrence for notices.

    Args:
        kind: the kind of the incident.
        message: its message, in one line.
        now: its moment.
        instance: its process.
        definition: the definition's name, where there is no process.
        error: the exception.
        detail: the details, such as a traceback.
        about: the event, command or step run that it concerns (as `event_id=…`).
    """
    name, step = (instance.name, instance.step) if instance else (definition, "")
    first = storable_text(first_wording(message))[:500]
    raised = storable_text(error_class_name(error)) if error else ""
    place = storable_text(place_in_code(error)) if error else ""
    alike: dict[str, Any] = {
        "kind": kind,
        "step": step,
        "message": storable_text(message)[:500],
        "text": pack_text(message),
        "error": raised,
        "place": place,
        "fingerprint": fingerprint(kind, name, step, first, raised, place),
    }
    incident = Incident(
        instance_id=instance.pk if instance else None,
        detail=storable_text(detail)[-MAX_DETAIL:],
        opened_at=now,
        **alike,
        **about,
    )
    people = note_occurrence(
        [Topic.FAILURE], now, process=instance, definition=definition, **alike
    )
    return [tables.incidents.insert(incident), *people]


def note_occurrence(
    topics: Iterable[Topic],
    now: datetime,
    *,
    process: ProcessInstance | None = None,
    definition: str = "",
    step: str = "",
    recipients: Sequence[str] = (),
    **more: Any,
) -> list[Statement]:
    """Return the write of an occurrence for notices; none if no recipient wants it.

    Args:
        topics: its topics.
        now: its moment.
        process: its process.
        definition: the definition's name, where there is no process.
        step: its step; the process's current step when empty.
        recipients: the names of recipients who get it whatever topics they subscribe to.
        more: further columns.
    """
    if process is not None:
        definition = process.name
        more |= {"process_id": process.pk, "correlation_key": process.correlation_key}
        step = step or process.step
    topics = list(topics)
    if not topics or not is_notice_wanted(topics, definition, recipients):
        return []
    row = Occurrence(
        topics=" ".join(topics),
        recipients=list(recipients),
        definition=definition,
        step=step,
        at=now,
        **more,
    )
    return [tables.occurrences.insert(row)]


def resolve(by: Text, now: datetime, **about: Any) -> Statement:
    """Return the update that resolves the open incidents about an event, a command or a step run.

    Args:
        by: the resolution; a text without values, since the row has only its template.
        now: its moment.
        about: the columns of the incidents.
    """
    return tables.incidents.update(
        {"resolved_at": now, "resolution": str(by)},
        {**about, "resolved_at": None},
        rows=None,
    )


def resolve_all(
    by: Text, now: datetime, process: UUID, *kinds: Incident.Kind
) -> list[Statement]:
    """Return the updates that resolve all open incidents of a process of these kinds."""
    return [resolve(by, now, kind=kind, instance_id=process) for kind in kinds]


OF_STEPS = (Incident.Kind.STEP_FAILED, Incident.Kind.CORRUPTED_DATA)
"""The kinds of incidents of a workflow's failed steps."""


def error_text(error: BaseException) -> str:
    """Return the message of an error with masked secret values; the error's class may raise instead of returning it."""
    try:
        return secret_values.mask_error_text(error, text_from(error))
    except Exception as unspoken:  # noqa: BLE001  # the application's
        return f"its text cannot be had ({type(unspoken).__name__})"


def named_error(error: BaseException) -> str:
    """Return the type of an error and its message."""
    return with_error_type(type(error).__name__, error_text(error))


def error_columns(error: BaseException) -> dict[str, Any]:
    """Return the columns in which a piece of work keeps the error of its last attempt."""
    return {"error": traceback_of(error), "text": pack_text(named_error(error))}


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error as text; only the end of a long one."""
    text = "".join(traceback.format_exception(error))
    return storable_text(secret_values.mask_error_text(error, text))[-MAX_DETAIL:]
