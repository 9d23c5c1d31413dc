"""Events that nothing took, as filters select them for an action on many: the oldest first, a bounded look at a time.

The oldest comes first, so that a process which gets several of them gets them in the order in which they were received.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain

from django.db.models import Q, QuerySet

from monitoring.queries.event_search import KEPT, EventFilters
from orchestrator.conf import conf
from orchestrator.models import InboxEvent, Verdict

LOOKED_AT = 1_000
"""Events that one look takes; the next one goes on from there."""


@dataclass(frozen=True)
class KeptEvent:
    """An event that nothing took.

    Args:
        pk: of its row.
        type: its type.
        verdict: what became of it.
        key: its business key.
    """

    pk: int
    type: str
    verdict: str
    key: str


@dataclass(frozen=True)
class KeptEvents:
    """What one look has found, and the key after which the next one begins; None where this was the last."""

    found: list[KeptEvent]
    after: int | None


def look(
    filters: EventFilters, until: datetime, after: int = 0, most: int = LOOKED_AT
) -> KeptEvents:
    """Finds the next events that match and have not changed since a moment.

    Args:
        filters: what is looked for.
        until: when the events were shown.
        after: the key after which it begins.
        most: how many events at most.
    """
    keys = _next(filters, after)
    rows = _matching(filters, until).filter(pk__in=keys).order_by("pk")
    columns = rows.values_list("pk", "type", "verdict", "correlation_key")
    found = [KeptEvent(*row) for row in columns[:most]]
    if len(found) == most:
        return KeptEvents(found, found[-1].pk)
    return KeptEvents(found, keys[-1] if len(keys) == LOOKED_AT else None)


def _next(filters: EventFilters, after: int) -> list[int]:
    """The keys of the next ones that an index finds."""
    rows = filters.found().filter(pk__gt=after).order_by("pk")
    if filters.q or filters.key:  # which leads to few
        parts = [rows.filter(verdict__in=KEPT)]
    else:
        wanted = [one for one in KEPT if filters.verdict in ("", one)]
        parts = [rows.filter(verdict=one) for one in wanted]
    keys = (part.values_list("pk", flat=True)[:LOOKED_AT] for part in parts)
    return sorted(chain.from_iterable(keys))[:LOOKED_AT]


def _matching(filters: EventFilters, until: datetime) -> QuerySet[InboxEvent]:
    """Those that match, and did so when they were shown."""
    # One whose process is unknown is looked at again and again: that is no change.
    unrouted = Q(verdict=Verdict.UNROUTED)
    patience = timedelta(seconds=conf().PATIENCE_SECONDS)
    since = (
        Q(received_at__gt=until)
        | Q(handled_at__gt=until) & ~unrouted
        | unrouted & Q(patience_until__gt=until + patience)
    )
    return InboxEvent.objects.filter(~since, filters.looked_for(), verdict__in=KEPT)
