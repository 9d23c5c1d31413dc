"""Pages of the audit, newest first, which go by the place of a row."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q, QuerySet

from monitoring.queries.audit.entry import AuditEntry
from monitoring.queries.audit.filters import NOT_BY_INDEX, AuditFilters
from monitoring.queries.lists import KeyedPage, every_page, page_of, place_in, written
from monitoring.queries.looks import bounded
from orchestrator.models import (
    OperatorAction,
)

PAGE = 50
LOOKED_AT = 1_000
"""Rows that one page looks at for what no index finds; the page after it goes on from there."""

Place = tuple[datetime, int]
"""Where a row stands in the list: its time and its key."""


def audit_page(
    filters: AuditFilters, before: str = "", size: int = 0
) -> KeyedPage[AuditEntry]:
    """The page that starts below a place, or the newest.

    It has fewer entries than there are when they lie far apart: the next page goes on from where it stopped looking.
    """
    place, size = _place(before), size or PAGE
    rows, edge = _newest(filters, size + 1, place)
    entries = [AuditEntry(row) for row in rows]
    return page_of(
        entries,
        size,
        lambda entry: written(entry.row.at, entry.row.pk),
        edge=written(*edge) if edge else "",
        first=place is None,
    )


def batches(filters: AuditFilters, size: int = 500) -> Iterator[list[AuditEntry]]:
    """All that match, newest first, in parts: each is read by itself, so that none is held open for a slow reader."""
    return every_page(lambda before: audit_page(filters, before, size))


def _newest(
    filters: AuditFilters, number: int, before: Place | None
) -> tuple[list[OperatorAction], Place | None]:
    """The newest below a place, and the place at which the looking stopped; None when all were looked at."""
    rows, order = filters.found()
    if before is not None:
        at, pk = before
        rows = rows.filter(Q(at__lt=at) | Q(pk__lt=pk), at__lte=at)
    looked_for = filters.looked_for()
    if not looked_for:
        return list(_shown(rows).order_by(*order)[:number]), None
    found, edge = bounded(rows.order_by(*order), looked_for, ("at", "pk"), LOOKED_AT)
    return list(_shown(found).order_by(*NOT_BY_INDEX)[:number]), edge


def _shown(rows: QuerySet[OperatorAction]) -> QuerySet[OperatorAction]:
    found = rows.select_related("instance__definition", "event")
    return found.defer("instance__definition__graph", "instance__data", "event__body")


def _place(text: str) -> Place | None:
    match place_in(text):
        case [[datetime() as at], key]:
            return at, key
    return None
