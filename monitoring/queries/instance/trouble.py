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
from orchestrator.text import Text, typed

MODULE = re.compile(r"^(?:\w+\.)+(?=\w+(?::|$))")
"""Where an error's type is from, before its name."""

MOST = 50
"""Incidents of one instance that are counted."""

LOOKED_AT = 1_000
"""Events of a paused process that are looked at."""


@dataclass(frozen=True)
class Trouble:
    """What stops the instance; `fatal` when it does not try again by itself, `detail` has the trace of what failed."""

    message: str
    step: str = ""
    since: datetime | None = None
    next_try: datetime | None = None
    remaining: timedelta | None = None
    attempt: int = 0
    attempts: int = 0
    fatal: bool = True
    detail: str = ""


def trouble_of(instance: ProcessInstance) -> tuple[Trouble | None, int]:
    """The oldest thing that needs a person, else what is being tried again; and how many more there are."""
    incidents = instance.incidents.open().order_by("opened_at")[:MOST]
    if incidents:
        first = incidents[0]
        found = Trouble(first.said, first.step, first.opened_at, detail=first.detail)
        return found, len(incidents) - 1
    retrying = _retrying(instance)
    return (_tried_again(instance, retrying) if retrying else None), 0


def last_line(error: str) -> str:
    """The line of a traceback that says what happened; a text of ours as it is."""
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
    """Those of some undecided events that can be found, the oldest first: in a paused process among the newest."""
    if instance.paused_at is None:
        return events.filter(UNDECIDED).order_by("pk")
    newest = instance.events.order_by("-pk").values("pk")[:LOOKED_AT]
    return events.filter(pk__in=newest).order_by("pk")


def _tried_again(
    instance: ProcessInstance, retrying: IssuedCommand | InboxEvent
) -> Trouble:
    said = last_line(retrying.said)
    return Trouble(
        typed(retrying.type, said) if said else retrying.type,
        instance.step,
        next_try=retrying.wake_at,
        remaining=retrying.remaining if isinstance(retrying, InboxEvent) else None,
        attempt=retrying.attempt,
        attempts=_attempts(retrying),
        fatal=False,
    )


def _attempts(retrying: IssuedCommand | InboxEvent) -> int:
    """How often it is tried in all; 0 when the running code does not say."""
    if isinstance(retrying, InboxEvent):
        return conf().EVENT_ATTEMPTS
    handler = registry.command_handler(retrying.type)
    return handler.attempts if handler else 0
