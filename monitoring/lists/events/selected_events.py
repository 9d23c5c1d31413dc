"""The events without a process that filters select for a bulk operation, read in parts.

The oldest events come first, so that a process gets several events in the order of their receipt.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import chain
from typing import Any

from django.db.models import Q, QuerySet

from monitoring.lists.events.event_search import KEPT, EventFilters
from monitoring.queries.lists import KeyedPage
from orchestrator.configuration.conf import conf
from orchestrator.models import InboxEvent, Verdict

COLUMNS = ("pk", "type", "verdict", "correlation_key")
"""The columns of a found event."""

LOOKED_AT = 1_000
"""The number of events that one call looks at; the next call continues after them."""


def next_events(
    filters: EventFilters, until: datetime, after: str = "", most: int = LOOKED_AT
) -> KeyedPage[Any]:
    """Find the next events that match and have not changed since a moment.

    Args:
        filters: the search.
        until: when the page showed the events.
        after: the key of the last event of the call before; "" for the first call.
        most: the maximum number of events.
    """
    keys = _next(filters, int(after or 0))
    rows = _matching(filters, until).filter(pk__in=keys).order_by("pk")
    columns = rows.values_list(*COLUMNS, named=True)
    found = list(columns[:most])
    if len(found) == most:
        return KeyedPage(found, str(found[-1].pk))
    return KeyedPage(found, str(keys[-1]) if len(keys) == LOOKED_AT else "")


def _next(filters: EventFilters, after: int) -> list[int]:
    """Return the keys of the next events that an index finds."""
    rows = filters.found().filter(pk__gt=after).order_by("pk")
    if filters.q or filters.key:  # an index finds few events
        parts = [rows.filter(verdict__in=KEPT)]
    else:
        wanted = [one for one in KEPT if filters.verdict in ("", one)]
        parts = [rows.filter(verdict=one) for one in wanted]
    keys = (part.values_list("pk", flat=True)[:LOOKED_AT] for part in parts)
    return sorted(chain.from_iterable(keys))[:LOOKED_AT]


def _matching(filters: EventFilters, until: datetime) -> QuerySet[InboxEvent]:
    """Return the events that match now and matched when they were shown."""
    # The engine retries an unrouted event regularly: that is no change.
    unrouted = Q(verdict=Verdict.UNROUTED)
    patience = timedelta(seconds=conf().PATIENCE_SECONDS)
    since = (
        Q(received_at__gt=until)
        | Q(handled_at__gt=until) & ~unrouted
        | unrouted & Q(patience_until__gt=until + patience)
    )
    return InboxEvent.objects.filter(~since, filters.unindexed(), verdict__in=KEPT)
