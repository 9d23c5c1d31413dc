"""Redeliver: offers an event again that no process took."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.event import EventOperation, give_verdict
from orchestrator.engine.operations.outcomes import delivery_outcomes
from orchestrator.engine.operations.registry import register
from orchestrator.engine.storage import inbox
from orchestrator.models import InboxEvent
from orchestrator.queue import wake_queue_after_commit
from orchestrator.text import Text


class RedeliverEvent(EventOperation):
    """Offers an event to its process again, with fresh patience."""

    name = "redeliver"
    label = _("Redeliver")
    done = _("Offered again.")
    may = _("Can redeliver an event")
    text = _("Offers the event to its process again, as if it had just arrived.")
    on_many = True
    in_bulk = True

    outcomes = staticmethod(delivery_outcomes)

    def effect(self, press: Press, event: InboxEvent, *given: Any) -> None:
        values = inbox.offered_columns(press.now)
        give_verdict(press, event, values, Text("redelivered by an operator"))
        wake_queue_after_commit(event.queue)


redeliver = register(RedeliverEvent())
