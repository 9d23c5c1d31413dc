"""A page of the list of waits, whose rows stay in their places while it is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from monitoring.queries.counts import Capped, each_capped
from monitoring.queries.lists import KeyedPage, page_of, place_in, written
from monitoring.queries.processes import in_order
from monitoring.queries.waits.filters import (
    DUES,
    Place,
    WaitFilters,
    place_of,
)
from monitoring.queries.waits.wait import Wait, read, waits_of
from orchestrator.models import StepRun

PAGE = 30


@dataclass(frozen=True)
class WaitPage(KeyedPage[Wait]):
    """Waits, the least time left first.

    Args:
        gone: of the rows, the keys of those that no longer match.
        new: how many belong among the first of the list that the page does not show yet.
    """

    gone: frozenset[int] = frozenset()
    new: int = 0


@dataclass(frozen=True)
class WaitTally:
    """How many waits there are of one sort, where they are listed, and whether that is what a page shows."""

    name: str
    word: Any
    number: Capped
    address: str
    here: bool = False


def wait_page(filters: WaitFilters, after: str = "") -> WaitPage:
    """The page that starts after a place, or the first.

    It has fewer rows than there are when they lie far apart: the next page goes on from where it stopped looking.
    """
    place = _place(after)
    runs, edge = _first(filters, PAGE + 1, place)
    stopped = written(*edge) if edge else ""
    page = page_of(runs, PAGE, _written, edge=stopped, first=place is None)
    return WaitPage(waits_of(page.rows), page.older, page.first)


def same_waits(
    filters: WaitFilters, shown: Sequence[str], after: str = "", within: str = ""
) -> WaitPage:
    """The rows that a page shows already, in their places, and how many belong there that it does not show yet.

    Args:
        filters: what the page is narrowed to.
        shown: the keys of its rows.
        after: where the page starts; only the first page is told of new rows.
        within: the only definition that is shown; "" for all.
    """
    keys = [int(key) for key in shown if key.isdecimal() and len(key) < 19]
    rows = StepRun.objects.filter(**{"instance__name": within} if within else {})
    gone = frozenset(keys) - filters.matches(keys)
    new = 0
    if not after:
        now, _edge = _first(filters, PAGE, None)
        new = len({run.pk for run in now} - set(keys))
    return WaitPage(waits_of(in_order(read(rows), keys)), gone=gone, new=new)


def tallies(shown: WaitFilters, within: str = "") -> list[WaitTally]:
    """How many there are in all, and of each sort that somebody should look at.

    Args:
        shown: what the page is narrowed to.
        within: the only definition of which they are; "" for all.
    """
    every = WaitFilters(within)
    narrowed = [
        ("all", WaitFilters.LABELS["all"], every),
        *((name, word, replace(every, due=name)) for name, word in DUES.items()),
        ("escalated", WaitFilters.LABELS["escalated"], replace(every, escalated="1")),
    ]
    numbers = each_capped({name: one.counted() for name, _word, one in narrowed})
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


def _first(
    filters: WaitFilters, number: int, after: Place | None
) -> tuple[list[StepRun], Place | None]:
    """The first of the list after a place, and the place at which the looking stopped; None when all were looked at."""
    found: list[StepRun] = []
    for part in filters.parts(after):
        runs, edge = part.first(number - len(found))
        found += runs
        if edge is not None or len(found) >= number:
            return found, edge
    return found, None


def _written(run: StepRun) -> str:
    return written(*place_of(run))


def _place(text: str) -> Place | None:
    match place_in(text):
        case [[wakes, datetime() as began], key]:
            return wakes, began, key
    return None
