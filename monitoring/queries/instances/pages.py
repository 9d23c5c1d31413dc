"""Pages of the list of instances, by key, and rows that stay where they are."""

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
"""Rows that a file is given at a time."""


@dataclass(frozen=True)
class ListPage(KeyedPage[ProcessInstance]):
    """Rows newest first.

    Args:
        gone: which of the rows match no longer.
        new: how many match that are not shown.
        looked_at: among how many the rows were looked for where the looking stopped; 0 where all were looked at.
        unsorted: whether more match than are sorted by a column.
    """

    gone: frozenset[UUID] = frozenset()
    new: int = 0
    looked_at: int = 0
    unsorted: bool = False

    @property
    def sorted_below(self) -> int:
        """Lists of fewer rows are sorted by a column."""
        return LOOKED_AT

    @property
    def new_text(self) -> str:
        return f"{NEW}+" if self.new > NEW else str(self.new)


def page_of(filters: Filters, before: str = "", size: int = PAGE) -> ListPage:
    """The page that starts below the process id `before`, or the newest; the other way round where that is asked for.

    It has fewer rows than there are when they lie far apart: the next page then goes on from where it stopped looking.
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
    ordered = sorted(_told(first), key=attrgetter("pk"), reverse=not turned)
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
    """The first rows of several parts of a list: their keys are read at once, and only then what a list tells."""
    if len(parts) == 1:
        return parts[0]
    keys = {uuid_of(stored) for stored, _count in grouped(parts, "id", cap=number)}
    first = sorted(keys, reverse=not oldest)[:number]
    return ProcessInstance.objects.filter(among("pk", first))


def _page_in(order: Sequence[UUID], before: str, size: int) -> ListPage:
    """The page that follows a row in an order, or the first; also where that row matches no longer."""
    key = uuid_in(before)
    start = order.index(key) + 1 if key in order else 0
    wanted = order[start : start + size]
    rows = in_order(_told(ProcessInstance.objects.all()), wanted)
    more = len(order) > start + size
    return ListPage(rows, str(wanted[-1]) if more else "", first=start == 0)


def _told(rows: ProcessInstanceQuerySet) -> Any:
    """The rows with all that a list tells of them."""
    told = with_times(rows).select_related("definition", "owner")
    return told.defer("data", "definition__graph")


def batches(filters: Filters) -> Iterator[list[ProcessInstance]]:
    """All rows of the list in its order, some at a time."""
    return every_page(lambda before: page_of(filters, before, BATCH))


def same_rows(
    filters: Filters, shown: list[str], size: int = PAGE, before: str = ""
) -> ListPage:
    """The rows that a page shows already, in their places, and how many that match it does not show yet.

    Args:
        filters: what the page is narrowed to.
        shown: the process ids of its rows.
        size: rows of a full page; a page that is not full could show any that match.
        before: where the page starts; only the newest page is told of new rows.
    """
    keys = [key for key in map(uuid_in, shown[:size]) if key is not None]
    rows = ProcessInstance.objects.all()
    if filters.definition:  # a process keeps its own: one of another was never shown
        rows = rows.filter(name=filters.definition)
    gone = frozenset(keys) - filters.still(keys)
    new = 0 if before else _newer(filters, keys, size)
    return ListPage(in_order(_told(rows), keys), gone=gone, new=new)


def _newer(filters: Filters, keys: list[UUID], size: int) -> int:
    """How many match that are not shown: newer ones, or any where a page has room.

    Where the oldest stand first, a full page has none: what is new is at the other end. In the order of a column those
    are new that belong on the page.
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
    """The keys of the newest that match, of those that a page looks at."""
    found: set[UUID] = set()
    for arm in filters.arms():
        rows, _ = arm.newest(number, after=after)
        found |= set(rows.values_list("pk", flat=True))
    return sorted(found, reverse=True)[:number]
