"""Discard: an event that nothing took is put aside for good."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import EventOperation, Press
from orchestrator.engine.operations.event import settle
from orchestrator.engine.operations.registry import register
from orchestrator.models import InboxEvent, Verdict
from orchestrator.text import Text


class DiscardEvent(EventOperation):
    """Puts an event aside for good; it stays in the inbox with this verdict."""

    name = "discard"
    label = _("Discard")
    done = _("Discarded.")
    may = _("Can discard an event")
    text = _("Puts the event aside for good. It stays in the inbox as a record.")
    tone = "danger"
    on_many = True
    in_bulk = True

    def effect(self, press: Press, event: InboxEvent, *given: Any) -> None:
        values = {
            "verdict": Verdict.DISCARDED,
            "wake_at": None,
            "owner": "",
            "handled_at": press.now,
        }
        settle(press, event, values, Text("discarded by an operator"))


discard = register(DiscardEvent())
