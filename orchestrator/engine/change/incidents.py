"""Opening and resolving what needs a person, and noting what people are told of in the commit that makes it true."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from orchestrator.engine.change import secret_values
from orchestrator.engine.change.failure_cause import error_of, fingerprint, place_of
from orchestrator.engine.storage import tables
from orchestrator.engine.storage.batch import Statement
from orchestrator.models import Incident, Occurrence, ProcessInstance
from orchestrator.notice_settings import Topic, is_notice_wanted
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
"""What has resolved the incidents of a process, or of a step, that was cancelled."""


def opened(
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
    """A new incident, and the telling of it.

    Args:
        kind: what has happened.
        message: the same in a line.
        now: when.
        instance: the process that it is about.
        definition: whose it would be, where there is no process.
        error: what was raised.
        detail: more of it, such as a traceback.
        about: which event, command or step run it concerns (as `event_id=…`).
    """
    name, step = (instance.name, instance.step) if instance else (definition, "")
    first = storable_text(first_wording(message))[:500]
    raised = storable_text(error_of(error)) if error else ""
    place = storable_text(place_of(error)) if error else ""
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
    people = told(
        [Topic.FAILURE], now, process=instance, definition=definition, **alike
    )
    return [tables.incidents.insert(incident), *people]


def told(
    topics: Iterable[Topic],
    now: datetime,
    *,
    process: ProcessInstance | None = None,
    definition: str = "",
    step: str = "",
    recipients: Sequence[str] = (),
    **more: Any,
) -> list[Statement]:
    """Has people told, if any of them are to know.

    Args:
        topics: what it is.
        now: when it is.
        process: the process that it is about.
        definition: the name of its definition, where there is no process.
        step: where it is; the process's current step when empty.
        recipients: the names of those who are told, whatever else they want to be told of.
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


def resolved(by: Text, now: datetime, **about: Any) -> Statement:
    """Resolves the open incidents about an event, a command or a step run.

    Args:
        by: what has resolved them; without values, so that the row needs no more than its template.
        now: when.
        about: which incidents.
    """
    return tables.incidents.update(
        {"resolved_at": now, "resolution": str(by)},
        {**about, "resolved_at": None},
        rows=None,
    )


def all_resolved(
    by: Text, now: datetime, process: UUID, *kinds: Incident.Kind
) -> list[Statement]:
    """Resolves all open incidents of a process that are of these kinds."""
    return [resolved(by, now, kind=kind, instance_id=process) for kind in kinds]


OF_STEPS = (Incident.Kind.STEP_FAILED, Incident.Kind.CORRUPTED_DATA)
"""What is opened when a step of a workflow has failed."""


def said(error: BaseException) -> str:
    """The text of an error, or why it has none: its class may do anything. Secret values are masked in it."""
    try:
        return secret_values.without(error, text_from(error))
    except Exception as unspoken:  # noqa: BLE001  # the application's
        return f"its text cannot be had ({type(unspoken).__name__})"


def named(error: BaseException) -> str:
    """The type of an error and its text."""
    return with_error_type(type(error).__name__, said(error))


def kept(error: BaseException) -> dict[str, Any]:
    """The columns of a piece of work in which it keeps what its last attempt failed with."""
    return {"error": trace(error), "text": pack_text(named(error))}


def trace(error: BaseException) -> str:
    """The traceback as text, its end kept when it is long."""
    text = "".join(traceback.format_exception(error))
    return storable_text(secret_values.without(error, text))[-MAX_DETAIL:]
