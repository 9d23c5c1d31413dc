"""The pages of the audit, newest first."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q, QuerySet

from monitoring.audit.entry import AuditEntry
from monitoring.audit.filters import NOT_BY_INDEX, AuditFilters
from monitoring.queries.bounded_search import bounded_search
from monitoring.queries.lists import (
    KeyedPage,
    every_page,
    format_place,
    make_page,
    parse_place,
)
from orchestrator.models import OperatorAction

PAGE = 50
LOOKED_AT = 1_000
"""The number of rows that one page checks for unindexed conditions; the next page continues after them."""

AuditPlace = tuple[datetime, int]
"""The place of a row in the list: its time and its key."""


def audit_page(
    filters: AuditFilters, before: str = "", size: int = 0
) -> KeyedPage[AuditEntry]:
    """Return the page before a place, or the newest page.

    A page of rare matches may be partly filled: the next page continues where the search stopped.
    """
    place, size = parse_place(before), size or PAGE
    rows, edge = _newest(filters, size + 1, place)
    entries = [AuditEntry(row) for row in rows]
    return make_page(
        entries,
        size,
        lambda entry: format_place(entry.row.at, entry.row.pk),
        edge=format_place(*edge) if edge else "",
        first=place is None,
    )


def audit_batches(filters: AuditFilters, size: int = 500) -> Iterator[list[AuditEntry]]:
    """Yield all matches in batches, newest first; each batch is a query of its own, for slow readers."""
    return every_page(lambda before: audit_page(filters, before, size))


def _newest(
    filters: AuditFilters, number: int, before: AuditPlace | None
) -> tuple[list[OperatorAction], AuditPlace | None]:
    """Return the newest rows before a place, and the place at which the search stopped; None after all rows."""
    rows, order = filters.found()
    if before is not None:
        at, pk = before
        rows = rows.filter(Q(at__lt=at) | Q(pk__lt=pk), at__lte=at)
    unindexed = filters.unindexed()
    if not unindexed:
        return list(_with_related(rows).order_by(*order)[:number]), None
    found, edge = bounded_search(
        rows.order_by(*order), unindexed, ("at", "pk"), LOOKED_AT
    )
    return list(_with_related(found).order_by(*NOT_BY_INDEX)[:number]), edge


def _with_related(rows: QuerySet[OperatorAction]) -> QuerySet[OperatorAction]:
    found = rows.select_related("instance__definition", "event")
    return found.defer("instance__definition__graph", "instance__data", "event__body")
