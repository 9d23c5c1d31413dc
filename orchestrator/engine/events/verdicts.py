"""Writing the verdict of a claimed event under its fence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.engine.change import incidents, offering, secret_values
from orchestrator.engine.sql.batch import Statement
from orchestrator.engine.sql.tables import events
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Verdict
from orchestrator.text import Text, pack_text


@dataclass(frozen=True)
class EventHandling:
    """A claimed event that is being decided.

    Args:
        event: the event.
        now: the database's time.
        instance: the event's locked process; None for none.
    """

    event: InboxEvent
    now: datetime
    instance: ProcessInstance | None = None

    def verdict(self, outcome: Verdict, **more: Any) -> Statement:
        """Return the update that settles the event, under this worker's fence."""
        values: dict[str, Any] = {
            "verdict": outcome,
            "handled_at": self.now,
            "wake_at": None,
            "owner": "",
            "error": "",
        }
        if self.instance is not None:
            values["process_id"] = self.instance.pk
        held = {**self.event.fence, "verdict": self.event.verdict}
        return events.update({**values, **more}, held)

    def clear(self) -> list[Statement]:
        """Return the writes that resolve the event's incidents and wake the events behind it."""
        event, now = self.event, self.now
        if not event.error:
            return []
        solved = incidents.resolve(Text("handled"), now, event_id=event.pk)
        return [solved, *offering.wake_followers(event, self.instance, now)]

    def turn_away(self, outcome: Verdict, reason: str, **more: Any) -> list[Statement]:
        """Return the writes that turn the event away with an incident: rejected, unexpected, or parked for too long."""
        rejected = outcome == Verdict.REJECTED
        kinds = Incident.Kind
        return [
            self.verdict(outcome, error=reason, text=pack_text(reason), **more),
            *self.tell_people(
                kinds.REJECTED_EVENT if rejected else kinds.UNEXPECTED_EVENT, reason
            ),
            *offering.wake_followers(self.event, self.instance, self.now),
        ]

    def tell_people(self, kind: Incident.Kind, reason: str) -> list[Statement]:
        """Return the writes that open an incident about the event in the place of earlier ones."""
        event, now = self.event, self.now
        opened = incidents.open_incident(
            kind,
            reason,
            now,
            instance=self.instance,
            definition=event.target,
            bodies=secret_values.bodies_of(event),
            event_id=event.pk,
        )
        return [incidents.resolve(Text("seen again"), now, event_id=event.pk), *opened]
