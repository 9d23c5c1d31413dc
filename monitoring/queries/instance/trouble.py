"""What stops an instance, in one line."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import QuerySet

from orchestrator import registry
from orchestrator.conf import conf
from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Verdict,
)
from orchestrator.models.inbox_event import UNDECIDED
from orchestrator.text import Text, with_error_type

MODULE = re.compile(r"^(?:\w+\.)+(?=\w+(?::|$))")
"""The module of an error's type, before its name."""

MOST = 50
"""Most incidents of one process that the page counts."""

LOOKED_AT = 1_000
"""Most events of a paused process that the page reads."""


@dataclass(frozen=True)
class Trouble:
    """What stops the instance.

    `fatal`: it is not retried automatically. `detail`: the trace of the failure. `more`: the number of other incidents.
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
    """The oldest open incident, else a command or event that is being retried."""
    incidents = instance.incidents.open().order_by("opened_at")[:MOST]
    if incidents:
        first, more = incidents[0], len(incidents) - 1
        at, trace = first.opened_at, first.detail
        return Trouble(first.said, first.step, at, detail=trace, more=more)
    retrying = _retrying(instance)
    return _tried_again(instance, retrying) if retrying else None


def last_line(error: str) -> str:
    """The line of a traceback that has the message; a `Text` unchanged."""
    if isinstance(error, Text):
        return error
    lines = [line for line in error.strip().splitlines() if line.strip()]
    return MODULE.sub("", lines[-1].strip())[:300] if lines else ""


def _retrying(instance: ProcessInstance) -> IssuedCommand | InboxEvent | None:
    failing = IssuedCommand.objects.failing().filter(instance=instance)
    commands = failing.filter(status=CommandStatus.RETRYING).order_by("issued_at")
    received = instance.events.filter(verdict=Verdict.RECEIVED, attempt__gt=0)
    return commands.first() or _at_hand(instance, received).exclude(error="").first()


def _at_hand(
    instance: ProcessInstance, events: QuerySet[InboxEvent]
) -> QuerySet[InboxEvent]:
    """The undecided events, the oldest first; of a paused process only among its newest events."""
    if instance.paused_at is None:
        return events.filter(UNDECIDED).order_by("pk")
    newest = instance.events.order_by("-pk").values("pk")[:LOOKED_AT]
    return events.filter(pk__in=newest).order_by("pk")


def _tried_again(
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
    """The number of attempts in all; 0 when the running code does not say."""
    if isinstance(retrying, InboxEvent):
        return conf().EVENT_ATTEMPTS
    handler = registry.command_handler(retrying.type)
    return handler.attempts if handler else 0
