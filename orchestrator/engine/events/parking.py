"""Parking an event that its process does not take now, for as long as the process lives.

When the patience of the event is over, an incident is opened, once. The event stays parked; the incident is resolved
when a step takes it. A change of the process offers the oldest parked event that may be taken (`change.offering`). If a
guard does not hold and the event is parked again, the next event behind it that would be taken is offered. An event
whose type the running code lacks is parked too, until the code has it.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Min

from orchestrator import registry
from orchestrator.engine.change import incidents, offering
from orchestrator.engine.change.announcements import announce_event
from orchestrator.engine.change.change import settle_without_move
from orchestrator.engine.events import other_definitions
from orchestrator.engine.events.verdicts import EventHandling
from orchestrator.engine.sql.batch import Statement, send
from orchestrator.engine.sql.tables import instances
from orchestrator.engine.storage import inbox
from orchestrator.engine.work.failures import HOLD, code_missing
from orchestrator.models import (
    CauseKind,
    InboxEvent,
    Incident,
    ProcessInstance,
    Verdict,
)
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text, pack_text, storable_text

LOOK = 500
"""The most parked events that one look reads."""

Takes = Callable[[InboxEvent], bool]
"""Whether the process would take an event now."""


class Parking(EventHandling):
    """A claimed event whose process does not take it now."""

    @property
    def process(self) -> ProcessInstance:
        assert self.instance is not None  # noqa: S101  # it was found
        return self.instance

    def park(self, definition: DefinitionClass, takes: Takes) -> None:
        """Park the event; when its patience is over, an incident is opened."""
        until = self._until(definition)
        if self._is_taken_elsewhere:
            marks = [self.verdict(Verdict.PARKED, attempt=0), *self.clear()]
        elif until > self.now:
            kept = {"wake_at": until, "patience_until": until, "attempt": 0}
            marks = [self.verdict(Verdict.PARKED, **kept), *self.clear()]
        else:
            marks = self._late(definition, until)
        marks += self._counted(1)
        self._put_aside([*marks, *self._behind(takes)])

    @property
    def _is_taken_elsewhere(self) -> bool:
        """Whether it was noted that another definition has taken the event: the rows of its process may be removed."""
        event = self.event
        at_rest = event.patience_until is None and event.remaining is None
        return at_rest and event.verdict == Verdict.PARKED

    def _until(self, definition: DefinitionClass) -> datetime:
        return self.event.patience_until or self.now + inbox.patience(definition)

    def _late(self, definition: DefinitionClass, until: datetime) -> list[Statement]:
        """Park the event, whose patience is over, and open an incident unless there is one, or another has taken it."""
        event, now = self.event, self.now
        kept: dict[str, Any] = {"patience_until": until, "attempt": 0}
        fate = other_definitions.fate_of(event, self.process)
        if fate == "taken" or other_definitions.is_ignored(event.type, self.process):
            kept["patience_until"] = None
            return [self.verdict(Verdict.PARKED, **kept), *self.clear()]
        if fate == "undecided":
            again = now + max(inbox.patience(definition), other_definitions.FIRST_LOOK)
            kept |= {"patience_until": again, "wake_at": again}
            return [self.verdict(Verdict.PARKED, **kept), *self.clear()]
        if fate in ("kept", "open"):
            kept["wake_at"] = now + other_definitions.next_look(event, now)
        about = Incident.objects.open().filter(event=event.pk)
        if about.filter(kind=Incident.Kind.UNEXPECTED_EVENT).exists():
            return [self.verdict(Verdict.PARKED, error=event.error, **kept)]
        step = self.process.step
        reason = Text("%(type)s is not expected in step %(step)s", event.type, step)
        return self.turn_away(Verdict.PARKED, reason, **kept)

    def wait_for_code(self, definition: DefinitionClass, error: Exception) -> None:
        """Park the event, whose type the running code lacks, and look again in a moment; people are told once."""
        event, said = self.event, incidents.error_text(error)
        told = {"error": storable_text(said), "text": pack_text(said)}
        times = {
            "wake_at": self._next_look(),
            "patience_until": self._until(definition),
        }
        marks = [
            self.verdict(Verdict.PARKED, attempt=0, **times, **told),
            *code_missing(event, error, self.now),
            *offering.wake_followers(event, self.process, self.now),
            *self._counted(1),
        ]
        self._put_aside([*marks, *self._behind(lambda row: True)])

    def _next_look(self) -> datetime:
        """The moment of the next look for the code: that of the process's other events, so that their order stays."""
        others = InboxEvent.objects.filter(
            process=self.process.pk,
            verdict=Verdict.PARKED,
            wake_at__gt=self.now,
            incidents__kind=Incident.Kind.HANDLER_MISSING,
            incidents__resolved_at=None,
        ).exclude(pk=self.event.pk)
        return others.aggregate(at=Min("wake_at"))["at"] or self.now + HOLD

    def rest(self, definition: DefinitionClass) -> None:
        """Park the event of a paused process, with the rest of its patience."""
        event = self.event
        if event.verdict == Verdict.RECEIVED and event.error:  # between two attempts
            left = {"remaining": timedelta(0), "attempt": event.attempt - 1}
            undecided = {"error": event.error, "handled_at": None}
            marks = [self.verdict(Verdict.RECEIVED, **left, **undecided)]
        else:
            remaining = self._until(definition) - self.now
            kept = {"patience_until": None, "remaining": remaining, "attempt": 0}
            marks = [self.verdict(Verdict.PARKED, error=event.error, **kept)]
            marks += self._counted(1)
        send(marks)
        announce_event(event)

    def leave(self, takes: Takes, marks: list[Statement]) -> None:
        """Settle the event, which has moved nothing; it may have been parked before."""
        marks += self._counted(0)
        self._put_aside([*marks, *self._behind(takes)])

    def turn_away_late(self) -> None:
        """Open an incident for an event of a process that has ended, and offer the next parked event.

        No incident is opened if the workflow ignores the event, or if another definition takes it and it fits no wait
        of this process.
        """
        event, parked = self.event, self.event.verdict == Verdict.PARKED
        kept = 0
        fate = other_definitions.fate_of(event, self.process)
        if other_definitions.is_ignored(event.type, self.process):
            marks = [self.verdict(Verdict.IGNORED), *self.clear()]
        elif fate in ("taken", "kept", "told"):
            # Without the process, as where none has the key: this definition has not taken the event.
            marks = [self.verdict(Verdict.IGNORED, process_id=None), *self.clear()]
        elif fate != "none":
            marks, kept = [self._wait_for_others()], 1
        else:
            marks = self.turn_away(Verdict.UNEXPECTED, self._why_late())
        marks += self._counted(kept)
        if parked:
            marks.append(offering.offer_leftovers(self.process.pk, 1, self.now))
        self._put_aside(marks)

    def _wait_for_others(self) -> Statement:
        """Park the event of a process that has ended until other definitions have decided."""
        look = self.now + other_definitions.next_look(self.event, self.now)
        kept: dict[str, Any] = {"wake_at": look, "patience_until": None, "attempt": 0}
        return self.verdict(Verdict.PARKED, error=self.event.error, **kept)

    def _why_late(self) -> str:
        event, ended = self.event, self.process.finished_at
        if event.verdict == Verdict.PARKED and ended and event.received_at < ended:
            return Text("%(type)s was parked until the process had ended", event.type)
        return Text("%(type)s came after the process had ended", event.type)

    def _put_aside(self, marks: list[Statement]) -> None:
        """Settle the event, which moves nothing."""
        concerned = self.process if self.event.error else None
        settle_without_move(concerned, CauseKind.SETTLED, self.event, marks, self.now)
        announce_event(self.event)

    def _behind(self, takes: Takes) -> list[Statement]:
        """Offer the next parked event that the process would take, behind this one."""
        event, process = self.event, self.process
        if not offering.is_offered(event):
            return []
        rows = InboxEvent.objects.parked().filter(process=process.pk, pk__gt=event.pk)
        types = offering.awaited_types(process)
        if types is not None:
            rows = rows.filter(type__in=registry.with_former_names(types))
        found = list(rows.order_by("pk")[:LOOK])
        taken = next((row for row in found if takes(row)), None)
        if taken is None and len(found) == LOOK:
            taken = found[-1]  # the next look goes on behind this one
        return [offering.offer_event(taken, self.now)] if taken is not None else []

    def _counted(self, after: int) -> list[Statement]:
        """Count the event among its process's parked events: `after` is 1 if it is parked now, else 0."""
        change, process = after - (self.event.verdict == Verdict.PARKED), self.process
        if not change:
            return []
        process.parked += change
        return [instances.update({"parked": process.parked}, {"id": process.pk})]
