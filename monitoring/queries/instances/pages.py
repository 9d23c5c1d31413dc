"""Pages of the list of processes, and the rows of open pages, which keep their places."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any
from uuid import UUID

from monitoring.queries.among import among
from monitoring.queries.columns import with_times
from monitoring.queries.counts import grouped, uuid_of
from monitoring.queries.instances.arm import LOOKED_AT
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.ranking import ranked
from monitoring.queries.lists import KeyedPage, every_page, uuid_in
from monitoring.queries.processes import in_order
from orchestrator.models import ProcessInstance
from orchestrator.models.process_instance import ProcessInstanceQuerySet

PAGE = 50
NEW = 100

BATCH = 500
"""Rows of one batch of a file."""


@dataclass(frozen=True)
class ListPage(KeyedPage[ProcessInstance]):
    """Rows newest first.

    Args:
        gone: the keys of rows that no longer match.
        new: the number of matches that are not shown.
        looked_at: the number of rows that a bounded search looked at; 0 after all rows.
        unsorted: whether too many rows match to sort them by a column.
    """

    gone: frozenset[UUID] = frozenset()
    new: int = 0
    looked_at: int = 0
    unsorted: bool = False

    @property
    def sorted_below(self) -> int:
        """The number of rows below which a list is sorted by a column."""
        return LOOKED_AT

    @property
    def new_text(self) -> str:
        return f"{NEW}+" if self.new > NEW else str(self.new)


def page_of(filters: Filters, before: str = "", size: int = PAGE) -> ListPage:
    """Return the page before a process id, or the newest page; with oldest first, the page after it.

    A page may be partly filled when matches lie far apart: the next page continues where the search stopped.
    """
    order = ranked(filters)
    if order is not None:
        return _page_in(order, before, size)
    key = uuid_in(before)
    parts: list[ProcessInstanceQuerySet] = []
    edges: list[UUID] = []
    turned = filters.oldest_first
    for arm in filters.arms():
        below, above = (None, key) if turned else (key, None)
        rows, edge = arm.newest(size + 1, below, above)
        parts.append(rows)
        edges += [edge] if edge is not None else []
    edge = min(edges, default=None) if turned else max(edges, default=None)
    first = _first_of(parts, size + 1, oldest=turned)
    ordered = sorted(_with_columns(first), key=attrgetter("pk"), reverse=not turned)
    known = [
        row
        for row in ordered
        if edge is None or (row.pk <= edge if turned else row.pk >= edge)
    ]
    older = known[size - 1].pk if len(known) > size else edge
    stopped = edge is not None and len(known) <= size
    return ListPage(
        known[:size],
        str(older or ""),
        first=key is None,
        looked_at=LOOKED_AT if stopped else 0,
        unsorted=bool(filters.column),
    )


def _first_of(
    parts: Sequence[ProcessInstanceQuerySet], number: int, *, oldest: bool
) -> ProcessInstanceQuerySet:
    """Return the first rows of several parts of a list; one statement reads their keys first."""
    if len(parts) == 1:
        return parts[0]
    first = first_keys(parts, number, oldest=oldest)
    return ProcessInstance.objects.filter(among("pk", first))


def first_keys(
    parts: Sequence[ProcessInstanceQuerySet], number: int, *, oldest: bool = False
) -> list[UUID]:
    """Return the keys of the first rows of several parts of a list, in one statement."""
    keys = {uuid_of(stored) for stored, _count in grouped(parts, "id", cap=number)}
    return sorted(keys, reverse=not oldest)[:number]


def _page_in(order: Sequence[UUID], before: str, size: int) -> ListPage:
    """Return the page after a row in an order; the first page without the row, or if it no longer matches."""
    key = uuid_in(before)
    start = order.index(key) + 1 if key in order else 0
    wanted = order[start : start + size]
    rows = in_order(_with_columns(ProcessInstance.objects.all()), wanted)
    more = len(order) > start + size
    return ListPage(rows, str(wanted[-1]) if more else "", first=start == 0)


def _with_columns(rows: ProcessInstanceQuerySet) -> Any:
    """Select processes with everything that a list shows."""
    told = with_times(rows).select_related("definition", "owner")
    return told.defer("data", "definition__graph")


def batches(filters: Filters) -> Iterator[list[ProcessInstance]]:
    """Yield all rows of the list in its order, in batches."""
    return every_page(lambda before: page_of(filters, before, BATCH))


def same_rows(
    filters: Filters, shown: list[str], size: int = PAGE, before: str = ""
) -> ListPage:
    """Return the rows of an open page in their places, and the number of new matches.

    Args:
        filters: of the page.
        shown: the process ids of its rows.
        size: the number of rows of a full page; on a page that is not full any match is new.
        before: the place before it; only the newest page counts new rows.
    """
    keys = [key for key in map(uuid_in, shown[:size]) if key is not None]
    rows = ProcessInstance.objects.all()
    if (
        filters.definition
    ):  # a process keeps its definition: the page never showed another's
        rows = rows.filter(name=filters.definition)
    gone = frozenset(keys) - filters.still(keys)
    new = 0 if before else _newer(filters, keys, size)
    return ListPage(in_order(_with_columns(rows), keys), gone=gone, new=new)


def _newer(filters: Filters, keys: list[UUID], size: int) -> int:
    """Count matches that are not shown: newer ones, or any if the page has room.

    With oldest first, a full page has no new rows, since they are at the other end. In the order of a column, the new
    rows are those that belong on the page.
    """
    full = len(keys) >= size
    order = ranked(filters)
    if order is not None:
        return len(set(order[:size] if full else order) - set(keys))
    if full and filters.oldest_first:
        return 0
    after = min(keys) if full else None
    newest = replace(filters, sort="")
    found = set(newest_keys(newest, NEW + 1 + len(keys), after))
    return min(len(found - set(keys)), NEW + 1)


def newest_keys(filters: Filters, number: int, after: UUID | None = None) -> list[UUID]:
    """Return the keys of the newest matches among the rows that a page looks at."""
    parts = [arm.newest(number, after=after)[0] for arm in filters.arms()]
    return first_keys(parts, number)
