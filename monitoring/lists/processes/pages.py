"""The pages of the list of processes, and the refreshed rows of open pages, which keep their places."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from monitoring.base.requests import parse_uuid
from monitoring.lists.processes.arm import LOOKED_AT, FirstRows
from monitoring.lists.processes.columns import with_times
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.ranking import keys_by_column
from monitoring.queries.any_of import any_of
from monitoring.queries.counts import count_by
from monitoring.queries.lists import KeyedPage, every_page
from monitoring.queries.processes import ProcessPlace, fetch_in_order, key_in_place
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


def process_page(filters: Filters, before: str = "", size: int = PAGE) -> ListPage:
    """Return the page before a place, or the newest page; with the oldest first, the page after the place.

    A page of rare matches may be partly filled: the next page continues where the search stopped.

    Args:
        filters: of the list.
        before: a place of an address, or a process id; anything else means the first page.
        size: the number of rows on the page.
    """
    order = keys_by_column(filters)
    if order is not None:
        return _page_in(order, before, size)
    place = ProcessPlace.parse(before)
    known, edge = _first_rows(filters, place, size + 1)
    older = [*known][size - 1] if len(known) > size else edge
    stopped = edge is not None and len(known) <= size
    return ListPage(
        [*known.values()][:size],
        str(older or ""),
        first=place is None,
        looked_at=LOOKED_AT if stopped else 0,
        unsorted=bool(filters.column),
    )


def _first_rows(
    filters: Filters, place: ProcessPlace | None, number: int
) -> tuple[dict[ProcessPlace, ProcessInstance], ProcessPlace | None]:
    """Return the first rows after a place by their places, and where the search stopped; None after all rows."""
    turned = filters.oldest_first
    below, above = (None, place) if turned else (place, None)
    parts = [arm.newest(number, below, above) for arm in filters.arms()]
    edges = [part.edge for part in parts if part.edge is not None]
    edge = min(edges, default=None) if turned else max(edges, default=None)
    if len(parts) == 1:
        [part] = parts
        rows = _with_columns(part.rows)
        known = {part.place_of(row.started_at, row.pk): row for row in rows}
    else:
        first = {one.pk: one for one in first_places(parts, number, oldest=turned)}
        rows = ProcessInstance.objects.filter(any_of("pk", first))
        known = {first[row.pk]: row for row in _with_columns(rows)}
    ordered = sorted(known, reverse=not turned)
    if edge is not None:
        ordered = [at for at in ordered if (at <= edge if turned else at >= edge)]
    return {at: known[at] for at in ordered}, edge


def first_places(
    parts: Sequence[FirstRows], number: int, *, oldest: bool = False
) -> list[ProcessPlace]:
    """Return the places of the first rows of several parts of a list; one statement reads those that are not known."""
    unknown = [part.rows for part in parts if part.places is None]
    read = count_by(unknown, "started_at", "id", cap=number)
    found = [ProcessPlace.from_sql(at, key) for at, key, _count in read]
    for part in parts:
        found += (part.places or {}).values()
    # A process may be in several parts.
    first = {place.pk: place for place in sorted(found, reverse=oldest)}
    return sorted(first.values(), reverse=not oldest)[:number]


def _page_in(order: Sequence[UUID], before: str, size: int) -> ListPage:
    """Return the page after a row in an order; the first page if the row no longer matches."""
    key = parse_uuid(key_in_place(before))
    start = order.index(key) + 1 if key in order else 0
    wanted = order[start : start + size]
    rows = fetch_in_order(_with_columns(ProcessInstance.objects.all()), wanted)
    more = len(order) > start + size
    older = str(ProcessPlace.of(rows[-1])) if more and rows else ""
    return ListPage(rows, older, first=start == 0)


def _with_columns(rows: ProcessInstanceQuerySet) -> Any:
    """Select processes with the values of all columns of a list."""
    told = with_times(rows).select_related("definition", "owner")
    return told.defer("data", "definition__graph")


def process_batches(
    filters: Filters, before: str = ""
) -> Iterator[list[ProcessInstance]]:
    """Yield all rows of the list in its order, in batches; with `before` those after that place or process id."""
    return every_page(lambda key: process_page(filters, key, BATCH), before)


def refresh_rows(
    filters: Filters, shown: list[str], size: int = PAGE, before: str = ""
) -> ListPage:
    """Return the rows of an open page in their places, and the number of new matches.

    Args:
        filters: of the page.
        shown: the process ids of its rows.
        size: the number of rows of a full page; on a page that is not full any match is new.
        before: the place before it; only the newest page counts new rows.
    """
    keys = [key for key in map(parse_uuid, shown[:size]) if key is not None]
    rows = ProcessInstance.objects.all()
    if filters.definition:  # a process keeps its definition
        rows = rows.filter(name=filters.definition)
    gone = frozenset(keys) - filters.matches(keys)
    found = fetch_in_order(_with_columns(rows), keys)
    last = min(map(ProcessPlace.of, found), default=None)
    new = 0 if before else _newer(filters, keys, size, last)
    return ListPage(found, gone=gone, new=new)


def _newer(
    filters: Filters, keys: list[UUID], size: int, last: ProcessPlace | None
) -> int:
    """Count matches that the page does not show: newer rows, or any rows if the page has room.

    With the oldest first, a full page has no new rows, since they are at the other end. In the order of a column, a row
    is new if it belongs on the page.
    """
    full = len(keys) >= size
    order = keys_by_column(filters)
    if order is not None:
        return len(set(order[:size] if full else order) - set(keys))
    if full and filters.oldest_first:
        return 0
    newest = replace(filters, sort="")
    found = newest_keys(newest, NEW + 1 + len(keys), last if full else None)
    if full:  # what comes after all shown rows is on the next page
        ends = [number for number, key in enumerate(found) if key in keys]
        found = found[: max(ends, default=len(found))]
    return min(len(set(found) - set(keys)), NEW + 1)


def newest_keys(
    filters: Filters, number: int, after: ProcessPlace | None = None
) -> list[UUID]:
    """Return the keys of the newest matches among the rows that a page looks at."""
    parts = [arm.newest(number, after=after) for arm in filters.arms()]
    return [place.pk for place in first_places(parts, number)]
