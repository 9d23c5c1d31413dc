"""Redeliver: an event that nothing took is offered again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine import inbox
from orchestrator.engine.operations import outcomes
from orchestrator.engine.operations.base import EventOperation, Press, Tried
from orchestrator.engine.operations.event import settle
from orchestrator.engine.operations.registry import register
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

    def outcomes(self, tried: Sequence[Tried]) -> dict[Any, str | None]:
        return outcomes.of_deliveries(tried)

    def effect(self, press: Press, event: InboxEvent, *given: Any) -> None:
        values = inbox.offered(press.now)
        settle(press, event, values, Text("redelivered by an operator"))
        wake_queue_after_commit(event.queue)


redeliver = register(RedeliverEvent())
