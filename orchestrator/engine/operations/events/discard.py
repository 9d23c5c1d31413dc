"""Discard: gives an event up that no process took."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.event import EventOperation, give_verdict
from orchestrator.engine.operations.registry import register
from orchestrator.models import InboxEvent, Verdict
from orchestrator.text import Text


class DiscardEvent(EventOperation):
    """Gives an event up for good; the event stays in the inbox with this verdict."""

    name = "discard"
    label = _("Discard")
    done = _("Discarded.")
    may = _("Can discard an event")
    text = _("Puts the event aside for good. It stays in the inbox as a record.")
    tone = "danger"
    on_many = True
    in_bulk = True

    def why_not(self, event: InboxEvent) -> str:
        # Set aside, or between two attempts: later events of its process wait for it.
        waits = event.verdict == Verdict.RECEIVED and event.error
        return "" if waits else super().why_not(event)

    def effect(self, press: Press, event: InboxEvent, *given: Any) -> None:
        closed = {"wake_at": None, "owner": "", "handled_at": press.now}
        closed["remaining"] = None  # of a paused process
        values = {"verdict": Verdict.DISCARDED, **closed}
        give_verdict(press, event, values, Text("discarded by an operator"))


discard = register(DiscardEvent())
