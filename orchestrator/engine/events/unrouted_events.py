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

TAKEN = (Verdict.STARTED, Verdict.MOVED, Verdict.IGNORED)
KEPT = Q(verdict=Verdict.PARKED, process__finished_at=None)
"""The verdicts of events that a process has taken, and the events that a live one keeps until it can."""


def keep_unrouted(event: InboxEvent, now: datetime) -> None:
    """Keep a claimed event until its process starts; give it up when its retention is over."""
    retention = timedelta(seconds=conf().UNROUTED_SECONDS)
    handling, over = EventHandling(event, now), now >= event.received_at + retention
    if _is_ignored(event) or (over and _takers(event)):
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


def _takers(event: InboxEvent) -> set[str]:
    """Return the verdicts of the definitions that have taken the same event, keep it, or have not decided about it.

    Once one has taken it, that is noted: the rows of its process may be removed.
    """
    if _is_noted(event):
        return {Verdict.MOVED}
    taken = (Q(verdict__in=TAKEN) | KEPT) & Q(process__isnull=False)
    rows = other_definitions.same_event(event)
    found = rows.filter(taken | Q(verdict=Verdict.RECEIVED))
    return set(found.values_list("verdict", flat=True))


def _is_noted(event: InboxEvent) -> bool:
    return event.verdict == Verdict.UNROUTED and event.patience_until is None


def _kept(handling: EventHandling, ends: datetime) -> list[Statement]:
    event, now = handling.event, handling.now
    until = event.patience_until or now + inbox.patience(None)
    told = event.verdict == Verdict.UNROUTED and event.error
    waits = until > now and not _is_noted(event)
    takers = set() if waits else _takers(event)
    look = now + other_definitions.next_look(event, now)
    kept: dict[str, Any] = {
        "patience_until": until if takers.isdisjoint(TAKEN) else None,
        "wake_at": min(ends, look, until) if waits else min(ends, look),
        "attempt": 0,
    }
    if waits or takers:
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
