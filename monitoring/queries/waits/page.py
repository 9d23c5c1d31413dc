"""A page of the list of waits, whose rows stay in their places while it is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.utils import timezone

from monitoring.chips import address
from monitoring.queries.counts import Capped, each_capped
from monitoring.queries.waits.filters import (
    DUES,
    LABELS,
    Place,
    WaitFilters,
    place_of,
)
from monitoring.queries.waits.wait import Wait, read, waits_of
from orchestrator.models import StepRun

PAGE = 30


@dataclass(frozen=True)
class WaitPage:
    """Waits, the least time left first.

    Args:
        rows: those of the page.
        later: where the next page starts; "" where there is none.
        first: whether it is the first page.
        gone: of the rows, the keys of those that no longer match.
        new: how many belong among the first of the list that the page does not show yet.
    """

    rows: list[Wait]
    later: str = ""
    first: bool = True
    gone: frozenset[int] = field(default_factory=frozenset)
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
    end = place_of(runs[PAGE - 1]) if len(runs) > PAGE else edge
    rows = waits_of(runs[:PAGE])
    return WaitPage(rows, _written(end) if end else "", place is None)


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
    known = read(rows).in_bulk(keys)
    gone = frozenset(keys) - filters.matches(keys)
    new = 0
    if not after:
        now, _edge = _first(filters, PAGE, None)
        new = len({run.pk for run in now} - set(keys))
    runs = [known[key] for key in keys if key in known]
    return WaitPage(waits_of(runs), gone=gone, new=new)


def tallies(shown: WaitFilters, within: str = "") -> list[WaitTally]:
    """How many there are in all, and of each sort that somebody should look at.

    Args:
        shown: what the page is narrowed to.
        within: the only definition of which they are; "" for all.
    """
    every = WaitFilters(within)
    narrowed = [
        ("all", LABELS["all"], every),
        *((name, word, replace(every, due=name)) for name, word in DUES.items()),
        ("escalated", LABELS["escalated"], replace(every, escalated="1")),
    ]
    numbers = each_capped({name: one.counted() for name, _word, one in narrowed})
    return [
        WaitTally(
            name,
            word,
            numbers[name],
            address(filters.parameters()),
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


def _written(place: Place) -> str:
    wakes, began, pk = place
    return f"{wakes.timestamp() if wakes else 0:.6f}_{began.timestamp():.6f}_{pk}"


def _place(text: str) -> Place | None:
    try:
        wakes, began, pk = text.split("_")
        return _moment(wakes), _moment(began) or timezone.now(), int(pk[:18])
    except (ValueError, OverflowError, OSError):
        return None


def _moment(text: str) -> datetime | None:
    seconds = float(text)
    zone = timezone.get_default_timezone()
    return datetime.fromtimestamp(seconds, tz=zone) if seconds else None
