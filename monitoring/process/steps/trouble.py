"""The trouble that stops a process, in one line."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from orchestrator import registry
from orchestrator.configuration.conf import conf
from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Verdict,
)
from orchestrator.models.inbox_event import UNDECIDED
from orchestrator.text import Text, with_error_type

MODULE = re.compile(r"^(?:\w+\.)+(?=\w+(?::|$))")
"""The module before the name of an error's type."""

LONGEST_MESSAGE = Incident._meta.get_field("message").max_length
"""The length at which the message of an incident is cut."""

BEGINNING = 60
"""The characters of an error's line by which it is found in a message."""

MOST = 50
"""The maximum number of incidents of one process that the page counts."""

LOOKED_AT = 1_000
"""The maximum number of events of a paused process that the page reads."""


@dataclass(frozen=True)
class Trouble:
    """The trouble that stops a process.

    `fatal` says that the engine does not retry it. `detail` is the trace of the failure, `more` the number of other
    incidents.
    """

    message: str
    step: str = ""
    since: datetime | None = None
    next_try: datetime | None = None
    remaining: timedelta | None = None
    attempt: int = 0
    attempts: int = 0
    fatal: bool = True
    detail: str = ""
    more: int = 0


def trouble_of(instance: ProcessInstance) -> Trouble | None:
    """Return the oldest open incident, or else a command or event that is being retried."""
    incidents = instance.incidents.open().order_by("opened_at")[:MOST]
    if incidents:
        first, more = incidents[0], len(incidents) - 1
        at, trace = first.opened_at, first.detail
        said = _whole(first.said, last_line(trace))
        return Trouble(said, first.step, at, detail=trace, more=more)
    retrying = _retrying_work(instance)
    return _retry_trouble(instance, retrying) if retrying else None


def last_line(error: str) -> str:
    """Return the line of a traceback with the message; a `Text` is returned unchanged."""
    if isinstance(error, Text):
        return error
    lines = [line for line in error.strip().splitlines() if line.strip()]
    return MODULE.sub("", lines[-1].strip()) if lines else ""


def is_cut(message: str) -> bool:
    """Return whether the stored message of an incident is only the beginning of its error."""
    return message.endswith("…") or len(message) == LONGEST_MESSAGE


def _whole(message: str, line: str) -> str:
    """Return the message of an incident, which is stored cut, with the rest of the line from which it was made."""
    at = message.find(line[:BEGINNING]) if line and is_cut(message) else -1
    if at < 0 or not line.startswith(message[at:].removesuffix("…")):
        return message
    return message[:at] + line


def _retrying_work(instance: ProcessInstance) -> IssuedCommand | InboxEvent | None:
    failing = IssuedCommand.objects.failing().filter(instance=instance)
    commands = failing.filter(status=CommandStatus.RETRYING).order_by("issued_at")
    received = instance.events.filter(verdict=Verdict.RECEIVED, attempt__gt=0)
    return commands.first() or _undecided(instance, received).exclude(error="").first()


def _undecided(
    instance: ProcessInstance, events: QuerySet[InboxEvent]
) -> QuerySet[InboxEvent]:
    """Return the undecided events, the oldest first; of a paused process only among its newest events."""
    if instance.paused_at is None:
        return events.filter(UNDECIDED).order_by("pk")
    newest = instance.events.order_by("-pk").values("pk")[:LOOKED_AT]
    return events.filter(pk__in=newest).order_by("pk")


def _retry_trouble(
    instance: ProcessInstance, retrying: IssuedCommand | InboxEvent
) -> Trouble:
    said = last_line(retrying.said)
    return Trouble(
        with_error_type(retrying.type, said) if said else retrying.type,
        instance.step,
        next_try=retrying.wake_at,
        remaining=retrying.remaining if isinstance(retrying, InboxEvent) else None,
        attempt=retrying.attempt,
        attempts=_attempts(retrying),
        fatal=False,
    )


def _attempts(retrying: IssuedCommand | InboxEvent) -> int:
    """Return the maximum number of attempts; 0 if the running code does not declare it."""
    if isinstance(retrying, InboxEvent):
        return conf().EVENT_ATTEMPTS
    handler = registry.command_handler(retrying.type)
    return handler.attempts if handler else 0
