"""What becomes of a claimed event, written under its fence."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from orchestrator.engine.change import incidents
from orchestrator.engine.claims.lines import followers
from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.tables import events
from orchestrator.models import (
    InboxEvent,
    Incident,
    ProcessInstance,
    Verdict,
)
from orchestrator.text import Text, pack_text


@dataclass(frozen=True)
class EventHandling:
    """A claimed event, and with what it is decided.

    Args:
        event: the event.
        now: the database's time.
        instance: the locked process that it has found; None for none.
    """

    event: InboxEvent
    now: datetime
    instance: ProcessInstance | None = None

    def verdict(self, outcome: Verdict, **more: Any) -> Statement:
        """Settles the event, if this worker still holds it."""
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

    def cleared(self) -> list[Statement]:
        """Resolves what was wrong with the event before, and lets those go on that waited for it."""
        event, now = self.event, self.now
        if not event.error:
            return []
        solved = incidents.resolved(Text("handled"), now, event_id=event.pk)
        return [solved, *followers(event, self.instance, now)]

    def turned_away(
        self, outcome: Verdict, reason: str, **more: Any
    ) -> list[Statement]:
        """Shows the event to people: rejected, unexpected, or parked for longer than its patience."""
        rejected = outcome == Verdict.REJECTED
        kinds = Incident.Kind
        return [
            self.verdict(outcome, error=reason, text=pack_text(reason), **more),
            *self.told(
                kinds.REJECTED_EVENT if rejected else kinds.UNEXPECTED_EVENT, reason
            ),
            *followers(self.event, self.instance, self.now),
        ]

    def told(self, kind: Incident.Kind, reason: str) -> list[Statement]:
        """Has people told of the event, in the place of what they were told before."""
        event, now = self.event, self.now
        opened = incidents.opened(
            kind,
            reason,
            now,
            instance=self.instance,
            definition=event.target,
            event_id=event.pk,
        )
        return [incidents.resolved(Text("seen again"), now, event_id=event.pk), *opened]
