"""Redeliver: offers an event again that no process took."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import Press, Tried
from orchestrator.engine.operations.event import EventOperation, offer_again
from orchestrator.engine.operations.registry import register
from orchestrator.models import InboxEvent, Verdict
from orchestrator.models.inbox_event import PROBLEMS
from orchestrator.text import Text

STILL_UNROUTED = Text("there is still no process that takes it")
STILL_PARKED = Text("it is still not expected where its process stands")


def delivery_outcomes(tried: Sequence[Tried]) -> dict[Any, str | None]:
    """Return whether processes have taken events since the events were offered again."""
    events = InboxEvent.objects.defer("body").in_bulk([one.target for one in tried])
    found: dict[Any, str | None] = {}
    for one in tried:
        event = events.get(one.target)
        if event is None:
            found[one.target] = ""
        elif event.verdict in PROBLEMS:
            found[one.target] = event.said or STILL_UNROUTED
        elif event.verdict == Verdict.PARKED:
            found[one.target] = STILL_PARKED
        else:
            found[one.target] = None if event.wake_at is not None else ""
    return found


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
        said = Text("redelivered by an operator")
        offer_again(press, event, said, press.instance)


redeliver = register(RedeliverEvent())
