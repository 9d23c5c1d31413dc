"""Between which keys the events of a process lie that were received in a span of time."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from django.db.models import QuerySet

from monitoring.queries.keys_by_time import first_since
from orchestrator.models import InboxEvent

SLACK = 100
"""By how many keys events that are received at the same time may be in another order than their receipts."""


class EventKeys(NamedTuple):
    """Between which keys the events of a span of time lie, with some that were received before and after it.

    Args:
        first: none has a smaller one; None where the span has no beginning.
        below: all have smaller ones; None where it has no end.
    """

    first: int | None
    below: int | None

    @classmethod
    def of_span(cls, since: datetime | None, until: datetime | None) -> EventKeys:
        """Finds them along the keys."""
        first = _key_at(since) - SLACK if since is not None else None
        return cls(first, _key_at(until) + SLACK if until is not None else None)

    def among(self, rows: QuerySet[InboxEvent]) -> QuerySet[InboxEvent]:
        """Those of some events that lie between them."""
        if self.first is not None:
            rows = rows.filter(pk__gte=self.first)
        return rows if self.below is None else rows.filter(pk__lt=self.below)


def _key_at(moment: datetime) -> int:
    return first_since(InboxEvent, "received_at", moment)
