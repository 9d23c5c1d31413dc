"""Opening and resolving incidents, and noting occurrences for notices, in the commit of their cause.

Failures with the same cause form a failure group: the same kind, definition, step and class of the error, and the same
functions of the application that raised. If none did, the message tells the cause, without the values of the process,
the event or the command. The failure of a sub-process has the cause of the failure inside. Each incident stores the
key of its cause (`fingerprint`), the key that releases before gave it (`earlier`), the class of its error and the
place; indexes find the open incidents of a group by its keys.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice
from typing import Any
from uuid import UUID

from orchestrator.configuration.notice_settings import Topic, is_notice_wanted
from orchestrator.definition.codec import digest
from orchestrator.definition.workflow.conditions import condition_of
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.code_places import (
    error_class_name,
    origin,
    place_in_code,
)
from orchestrator.engine.sql import tables
from orchestrator.engine.sql.batch import Statement
from orchestrator.engine.storage.application_code import error_texts
from orchestrator.exceptions import InvalidMessage, SubprocessFailed
from orchestrator.models import Incident, Occurrence, ProcessInstance
from orchestrator.text import (
    UNSPOKEN,
    Text,
    first_wording,
    pack_text,
    shortened,
    storable_text,
    storable_words,
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
VALUES = 2_000
"""The number of JSON values that are looked for in a message."""


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


def without_values(message: str, bodies: Iterable[Any], step: str = "") -> str:
    """Return a message in its first wording, without the texts in JSON values, as `normalize` leaves out numbers.

    A message that would have no letter left stays as it is.

    Args:
        message: the message.
        bodies: the JSON values. Texts of one or two letters are not looked for; two signs of other scripts are.
        step: the process's step, which is not left out.
    """
    whole = first_wording(message)
    shown = whole[: 5 * LONGEST_MESSAGE]
    texts = {one for one in islice(_nodes(bodies), VALUES) if isinstance(one, str)}
    found = {one for one in texts if one != step and _is_name(one) and one in shown}
    if not found:
        return whole
    longest_first = sorted(found, key=lambda one: (-len(one), one))
    names = "|".join(map(re.escape, longest_first))
    # Only ASCII has words: other scripts write names and particles without a space.
    pattern = re.compile(rf"(?<!\w)(?:{names})(?!\w)", re.ASCII)

    def change(text: str) -> str:
        return pattern.sub("#", text[: 5 * LONGEST_MESSAGE])

    of_engine = message.changed(change) if isinstance(message, Text) else ""
    plain = first_wording(of_engine) or change(message)
    return plain if any(map(str.isalpha, plain)) else whole


def _nodes(bodies: Iterable[Any]) -> Iterator[Any]:
    """Yield JSON values and all values in them, the outer ones first."""
    rest = deque(bodies)
    while rest:
        one = rest.popleft()
        yield one
        if isinstance(one, dict):
            rest.extend(one.values())
        elif isinstance(one, list):
            rest.extend(one)


def _is_name(text: str) -> bool:
    short = 2 if text.isascii() else 1
    return len(text) > short and any(map(str.isalpha, text))


MAX_DETAIL = 16 * 1024

CANCELLED = Text("cancelled")
"""The resolution of the incidents of a cancelled process or step."""

STEP_LEFT = Text("its step was left")
"""The resolution of the incidents about a step's deadline."""


def open_incident(
    kind: Incident.Kind,
    message: str,
    now: datetime,
    *,
    instance: ProcessInstance | None = None,
    definition: str = "",
    error: BaseException | None = None,
    detail: str = "",
    bodies: Iterable[Any] = (),
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
        bodies: the JSON values of the event, command or step run that it concerns.
        about: the event, command or step run that it concerns (as `event_id=…`).
    """
    name, step = (instance.name, instance.step) if instance else (definition, "")
    values = [*bodies, instance.data] if instance else bodies
    cause, earlier = _cause_columns(kind, name, step, message, error, values)
    alike: dict[str, Any] = {
        "kind": kind,
        "step": step,
        "message": shortened(storable_text(message), 500),
        "text": pack_text(message),
        **cause,
    }
    incident = Incident(
        instance_id=instance.pk if instance else None,
        stored_definition_id=instance.definition_id if instance else None,
        detail=storable_text(detail)[-MAX_DETAIL:],
        opened_at=now,
        earlier=earlier,
        **alike,
        **about,
    )
    people = note_occurrence(
        [Topic.FAILURE], now, process=instance, definition=definition, **alike
    )
    return [tables.incidents.insert(incident), *people]


def _cause_columns(
    kind: Incident.Kind,
    name: str,
    step: str,
    message: str,
    error: BaseException | None,
    bodies: Iterable[Any],
) -> tuple[dict[str, str], str]:
    """The columns that tell the cause of a failure, and its earlier fingerprint if that is another one."""
    raised = place = source = ""
    if error is not None:
        raised = _read(error_class_name, error)
        place, source = _read(place_in_code, error), _read(origin, error)
    first = storable_text(first_wording(message))[:500]
    earlier = fingerprint(kind, name, step, first, raised, place)
    if not source and isinstance(error, SubprocessFailed) and error.cause:
        source = f"{error.cause} of {error.name}"
    if source:
        cause = fingerprint(kind, name, step, "", raised, source)
    else:
        # Of a value that is not of its type, the message has the value itself.
        said = (isinstance(error, InvalidMessage) and error.alike) or message
        plain = storable_text(without_values(said, bodies, step))[:500]
        cause = fingerprint(kind, name, step, plain, raised, place)
    columns = {"error": raised, "place": place, "fingerprint": cause}
    return columns, earlier if earlier != cause else ""


def _read(function: Callable[[BaseException], str], error: BaseException) -> str:
    """Return what a function tells of an error; "" if the error's class raises instead."""
    try:
        return storable_text(function(error))
    except Exception:  # noqa: BLE001  # the application's
        return ""


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
    """Return the message of an error with masked secret values, as a storable text."""
    said = error_texts.message_of(error)
    try:
        return storable_words(secret_values.mask_error_text(error, said))
    except UnicodeError:  # of a secret with a lone surrogate
        return UNSPOKEN.filled("UnicodeError")


def named_error(error: BaseException) -> str:
    """Return the type of an error, the condition that raised it, and its message."""
    return with_error_type(type(error).__name__, conditional_error(error))


def conditional_error(error: BaseException) -> str:
    """Return the message of an error, after the condition of a workflow that raised it."""
    said, condition = error_text(error), condition_of(error)
    return with_error_type(condition, said) if condition else said


def error_columns(error: BaseException) -> dict[str, Any]:
    """Return the columns in which a piece of work keeps the error of its last attempt."""
    return {"error": stored_traceback(error), "text": pack_text(named_error(error))}


def stored_traceback(error: BaseException) -> str:
    """Return the traceback of an error as text; only the end of a long one."""
    text = error_texts.traceback_of(error)
    return storable_text(secret_values.mask_error_text(error, text))[-MAX_DETAIL:]
