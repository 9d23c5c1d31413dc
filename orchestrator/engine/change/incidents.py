"""Opening and resolving what needs a person."""

from __future__ import annotations

import re
import traceback
from datetime import datetime
from typing import Any

from orchestrator.definition.codec import digest
from orchestrator.engine.storage import tables
from orchestrator.engine.storage.batch import Statement
from orchestrator.models import Incident, ProcessInstance

MAX_DETAIL = 16 * 1024


def opened(
    kind: Incident.Kind,
    message: str,
    now: datetime,
    *,
    instance: ProcessInstance | None = None,
    detail: str = "",
    **about: Any,
) -> Statement:
    """A new incident; `about` says which event, command or step run it concerns (as `event_id=…`)."""
    name, step = (instance.name, instance.step) if instance else ("", "")
    return tables.incidents.insert(
        Incident(
            kind=kind,
            instance_id=instance.pk if instance else None,
            step=step,
            message=storable(message)[:500],
            detail=storable(detail)[-MAX_DETAIL:],
            fingerprint=digest([kind, name, step, _normal(message)]),
            opened_at=now,
            **about,
        )
    )


def resolved(by: str, now: datetime, **about: Any) -> Statement:
    """Resolves the open incidents about an event, a command or a step run."""
    return tables.incidents.update(
        {"resolved_at": now, "resolution": by[:100]},
        {**about, "resolved_at": None},
        rows=None,
    )


def said(error: BaseException) -> str:
    """The text of an error, or why it has none: its class may do anything."""
    try:
        return str(error)
    except Exception as unspoken:  # noqa: BLE001  # the application's
        return f"its text cannot be had ({type(unspoken).__name__})"


def named(error: BaseException) -> str:
    """The type of an error and its text."""
    return f"{type(error).__name__}: {said(error)}"


def trace(error: BaseException) -> str:
    """The traceback as text, its end kept when it is long."""
    return storable("".join(traceback.format_exception(error)))[-MAX_DETAIL:]


def storable(text: str) -> str:
    """Text that every database takes: no NUL, no lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def _normal(message: str) -> str:
    """The message without what differs between occurrences of one cause."""
    return re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|\d+", "#", message)[:200]
