"""Opening and resolving incidents, and noting occurrences for notices, in the commit of their cause.

Failures with the same cause form a failure group: the same kind, definition, step, class of the error, place in the
code, and message. Each incident stores the key of its cause (`fingerprint`), the class of its error and the place; an
index finds the open incidents of a group by the key.
"""

from __future__ import annotations

import re
import sys
import traceback
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any
from uuid import UUID

from orchestrator.configuration.notice_settings import Topic, is_notice_wanted
from orchestrator.definition.codec import digest
from orchestrator.definition.workflow.conditions import condition_of
from orchestrator.engine.change import secret_values
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

LONGEST_MESSAGE = 200
DIFFERS = re.compile(
    r"""
    [^\s@'"<>]{1,64}@[^\s'"<>]{1,255}                      # a mail address
    | \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b
    | \b\w*\d\w*(?:[-.:,/+]\w*\d\w*)*                      # ids, hashes, amounts, moments: what has digits in it
    """,
    re.VERBOSE,
)
OURS = ("orchestrator", "monitoring")
LIBRARIES = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


def fingerprint(
    kind: str, definition: str, step: str, message: str, error: str, place: str
) -> str:
    """Return the key of a failure's cause.

    Args:
        kind: the kind of the incident.
        definition: the name of the process's definition.
        step: the process's step.
        message: the message of the incident.
        error: the class of the exception, with its module.
        place: the innermost function of the application that raised it, with its module.
    """
    return digest([str(kind), definition, step, error, place, normalize(message)])


def normalize(message: str) -> str:
    """Return a message without the ids, numbers and mail addresses that differ between failures of one cause."""
    plain = DIFFERS.sub("#", message[: 5 * LONGEST_MESSAGE])
    return " ".join(plain.split())[:LONGEST_MESSAGE]


def error_class_name(error: BaseException) -> str:
    """Return the name of an error's class, with its module unless that is Python's own."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"[-200:]


def place_in_code(error: BaseException) -> str:
    """Return the innermost function of the application that raised an error; "" if there is none.

    Without a function of the application's own, it is the innermost function of a library outside Procession: an
    application may be installed like a library.
    """
    own = library = ""
    for frame in _frames(error):
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        if top in OURS or top in sys.stdlib_module_names:
            continue
        named = f"{module}.{_name(frame.f_code)}"
        if not _is_library(frame.f_code.co_filename):
            own = named
        else:
            library = named
    return (own or library)[-200:]


def _frames(error: BaseException) -> Iterator[FrameType]:
    """The frames of an error's traceback, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _name(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on


@lru_cache(1000)
def _is_library(filename: str) -> bool:
    return LIBRARIES.search(filename) is not None


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
    except BaseException as unspoken:  # noqa: BLE001  # the application's
        return f"its text cannot be had ({type(unspoken).__name__})"


def named_error(error: BaseException) -> str:
    """Return the type of an error, the condition that raised it, and its message."""
    return with_error_type(type(error).__name__, conditional_error(error))


def conditional_error(error: BaseException) -> str:
    """Return the message of an error, after the condition of a workflow that raised it."""
    said, condition = error_text(error), condition_of(error)
    return with_error_type(condition, said) if condition else said


def error_columns(error: BaseException) -> dict[str, Any]:
    """Return the columns in which a piece of work keeps the error of its last attempt."""
    return {"error": traceback_of(error), "text": pack_text(named_error(error))}


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error as text; only the end of a long one."""
    text = "".join(traceback.format_exception(error))
    return storable_text(secret_values.mask_error_text(error, text))[-MAX_DETAIL:]
