"""Pages of the list of waits; rows keep their places while a page is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from monitoring.lists.waits.filters import DUES, WaitFilters, wait_place
from monitoring.lists.waits.wait import Wait, describe_waits, select_waits
from monitoring.queries.counts import Capped, count_each
from monitoring.queries.lists import KeyedPage, format_place, make_page, parse_place
from monitoring.queries.processes import fetch_in_order
from orchestrator.models import StepRun

PAGE = 30


@dataclass(frozen=True)
class WaitPage(KeyedPage[Wait]):
    """Waits, the least time left first.

    Args:
        gone: the keys of shown rows that no longer match.
        new: the number of waits at the beginning of the list that the page does not show yet.
    """

    gone: frozenset[int] = frozenset()
    new: int = 0


@dataclass(frozen=True)
class WaitTally:
    """The number of waits in a list, the address of the list, and whether the page shows it."""

    name: str
    word: Any
    number: Capped
    address: str
    here: bool = False


def wait_page(filters: WaitFilters, after: str = "") -> WaitPage:
    """Return the page after a place, or the first page.

    A page of rare matches may be partly filled: the next page continues where the search stopped.
    """
    place = parse_place(after, times=2)
    runs, edge = filters.first(PAGE + 1, place)
    stopped = format_place(*edge) if edge else ""
    page = make_page(
        runs,
        PAGE,
        lambda run: format_place(*wait_place(run)),
        edge=stopped,
        first=place is None,
    )
    return WaitPage(describe_waits(page.rows), page.older, page.first)


def refresh_waits(
    filters: WaitFilters, shown: Sequence[str], after: str = "", within: str = ""
) -> WaitPage:
    """Return the rows of an open page in their places, and the number of new rows.

    Args:
        filters: of the page.
        shown: the keys of its rows.
        after: the place before it; only the first page counts new rows.
        within: the only definition that the reader may see; "" for all.
    """
    keys = [int(key) for key in shown if key.isdecimal() and len(key) < 19]
    rows = StepRun.objects.filter(**{"instance__name": within} if within else {})
    gone = frozenset(keys) - filters.matches(keys)
    new = 0
    if not after:
        now, _edge = filters.first(PAGE)
        new = len({run.pk for run in now} - set(keys))
    waits = describe_waits(fetch_in_order(select_waits(rows), keys))
    return WaitPage(waits, gone=gone, new=new)


def wait_tallies(shown: WaitFilters, within: str = "") -> list[WaitTally]:
    """Return the number of all waits, and of those that need attention.

    Args:
        shown: the filters of the page.
        within: the only definition to count; "" for all.
    """
    every = WaitFilters(within)
    narrowed = [
        ("all", WaitFilters.LABELS["all"], every),
        *((name, word, replace(every, due=name)) for name, word in DUES.items()),
        ("escalated", WaitFilters.LABELS["escalated"], replace(every, escalated="1")),
    ]
    numbers = count_each({name: one.rows_to_count() for name, _word, one in narrowed})
    return [
        WaitTally(
            name,
            word,
            numbers[name],
            filters.address(),
            filters.parameters() == shown.parameters(),
        )
        for name, word, filters in narrowed
    ]
