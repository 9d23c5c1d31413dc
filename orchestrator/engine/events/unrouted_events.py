"""Keeping an event whose process is unknown, until its process starts or its retention is over.

The start finds the event. The event also looks for its process, after a second and then ever less often. When its
patience is over, an incident is opened, once, unless another definition has taken the event.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Q

from orchestrator import registry
from orchestrator.configuration.conf import conf
from orchestrator.engine.change.announcements import announce_event
from orchestrator.engine.events import other_definitions
from orchestrator.engine.events.verdicts import EventHandling
from orchestrator.engine.sql.batch import Statement, send
from orchestrator.engine.storage import inbox
from orchestrator.models import InboxEvent, Incident, Verdict
from orchestrator.text import Text, pack_text

TAKEN = Q(verdict__in=[Verdict.STARTED, Verdict.MOVED, Verdict.IGNORED])
KEPT = Q(verdict=Verdict.PARKED, process__finished_at=None)
"""Events that a process has taken, and those that a live one keeps until it can."""


def keep_unrouted(event: InboxEvent, now: datetime) -> None:
    """Keep a claimed event until its process starts; give it up when its retention is over."""
    retention = timedelta(seconds=conf().UNROUTED_SECONDS)
    handling, over = EventHandling(event, now), now >= event.received_at + retention
    if _is_ignored(event) or (over and _is_taken(event)):
        send([handling.verdict(Verdict.IGNORED), *handling.clear()])
    elif over:
        reason = Text(
            "no process came for %(type)s in %(time)s: %(why)s",
            event.type,
            retention,
            why_unrouted(event),
        )
        send(handling.turn_away(Verdict.UNEXPECTED, reason))
    else:
        send(_kept(handling, event.received_at + retention))
    announce_event(event)


def _is_ignored(event: InboxEvent) -> bool:
    """Return whether the event's definition ignores events whose process is missing."""
    if event.process_id is not None or event.starts:
        return False
    return ignores_missing(event.target)


def ignores_missing(name: str) -> bool:
    """Return whether the definition of a name ignores events whose process is missing."""
    known = (one for one in registry.newest_definitions() if one.name == name)
    return any(one.missing == "ignore" for one in known)


def _is_taken(event: InboxEvent) -> bool:
    """Return whether another definition has taken the same event, or has not decided about it."""
    takes = ((TAKEN | KEPT) & Q(process__isnull=False)) | Q(verdict=Verdict.RECEIVED)
    return other_definitions.same_event(event).filter(takes).exists()


def _kept(handling: EventHandling, ends: datetime) -> list[Statement]:
    event, now = handling.event, handling.now
    until = event.patience_until or now + inbox.patience(None)
    told = event.verdict == Verdict.UNROUTED and event.error
    moments = [
        ends,
        now + other_definitions.next_look(event, now),
        *([until] if until > now else []),
    ]
    kept: dict[str, Any] = {
        "patience_until": until,
        "wake_at": min(moments),
        "attempt": 0,
    }
    if until > now or _is_taken(event):
        return [handling.verdict(Verdict.UNROUTED, **kept), *handling.clear()]
    if told:
        return [handling.verdict(Verdict.UNROUTED, error=event.error, **kept)]
    reason = Text("no process takes %(type)s: %(why)s", event.type, why_unrouted(event))
    kept |= {"error": reason, "text": pack_text(reason)}
    kept_so = handling.verdict(Verdict.UNROUTED, **kept)
    return [kept_so, *handling.tell_people(Incident.Kind.UNROUTED_EVENT, reason)]


def why_unrouted(event: InboxEvent) -> str:
    """Return why an event has no process."""
    if event.process_id:
        return Text("there is no process %(process)s", event.process_id)
    if event.correlation_key:
        return Text(
            "there is no %(name)s with the key %(key)s",
            event.target,
            repr(event.correlation_key),
        )
    return Text("it names no process and carries no correlation key")
