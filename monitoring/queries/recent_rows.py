"""The rows of a recent window, along an index that ends with their time: all of them, or of very many a sample.

The window is cut into equal parts, and a sample has the rows of one slice of each part: a stratified sample, whose
error is estimated from the numbers of rows in the slices.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache, reduce
from math import sqrt
from operator import or_
from typing import Any

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from monitoring.queries.counts import parse_time, short_number

PARTS = 64

SAMPLED = 8_000
"""The approximate maximum number of rows of a sample."""

MOST_EACH = 2**30
"""The maximum number of rows that a row of a sample stands for."""

ALIKE = 0.75
"""How many of the rows that twice as long slices promise a sample needs."""

LEAST = 30
"""The least number of rows from which a number is estimated."""

LIKELY = 1.96
"""The error, in standard deviations, that nineteen of twenty estimates keep."""


TimeSlice = tuple[datetime, datetime]
"""The beginning and the end of a slice."""


@dataclass(frozen=True)
class RecentRows:
    """The rows that were read.

    Args:
        rows: the values of each.
        every: the number of rows that each stands for; 1 if all were read.
        slices: the ends of the slices of a sample, the oldest first; empty if there is none.
        more: whether only the newest were read.
    """

    rows: list[tuple[Any, ...]]
    every: int = 1
    slices: list[TimeSlice] = field(default_factory=list)
    more: bool = False

    @property
    def whole(self) -> bool:
        """Whether they are no sample."""
        return self.every == 1

    def within(self, time: str) -> Q:
        """Return the condition that a time is in one of the slices; any time is if all rows were read."""
        return _within(time, self.slices)

    def estimate(self, times: Iterable[str]) -> Estimate:
        """Estimate the number of rows like some of those that were read, from their times as texts."""
        if self.whole:
            return Estimate(sum(1 for _ in times), at_least=self.more)
        starts, parts = [start for start, _end in self.slices], len(self.slices)
        found = Counter(bisect_right(starts, parse_time(at)) - 1 for at in times)
        mean = found.total() / parts
        spread = sum((found[one] - mean) ** 2 for one in range(parts)) / (parts - 1)
        deviation = self.every * sqrt((1 - 1 / self.every) * parts * spread)
        return Estimate(found.total(), self.every, round(LIKELY * deviation))


@dataclass(frozen=True)
class Estimate:
    """A number of rows.

    Args:
        found: the number that was read.
        every: the number that each stands for.
        error: the margin of the estimate, which nineteen of twenty keep.
        at_least: whether there may be more.
    """

    found: int = 0
    every: int = 1
    error: int = 0
    at_least: bool = False

    @property
    def number(self) -> int:
        return self.found * self.every

    @property
    def few(self) -> bool:
        """Whether too few rows were read for an estimate."""
        return self.every > 1 and self.found < LEAST

    def __bool__(self) -> bool:
        return self.found > 0

    def __str__(self) -> str:
        """Write it in a few characters; "≈" means about, "+" means or more."""
        return self._text(short_number(self.number), "")

    @property
    def told(self) -> str:
        """The whole number, with its error."""
        return self._text(f"{self.number:,}", f" ± {self.error:,}")

    def _text(self, number: str, error: str) -> str:
        if self.few:
            return _("few")
        more = "+" if self.at_least else ""
        return f"≈{number}{error}{more}" if self.every > 1 else f"{number}{more}"


def recent_rows(
    rows: QuerySet[Any, tuple[Any, ...]],
    time: str,
    window: tuple[datetime, datetime],
    most: int,
    of_sample: QuerySet[Any, tuple[Any, ...]] | None = None,
    parts: int = PARTS,
) -> RecentRows:
    """Return all rows since a moment; of too many a sample, or the newest if no sample is like the whole.

    A sample with twice as long slices has twice as many rows. If it has far more, this one has missed a burst.

    Args:
        rows: tuples of values, of which the first is the time as text; the newest come first along an index.
        time: the column with the time.
        window: its beginning, and now.
        most: the maximum number of rows to read if they are all read.
        of_sample: the same rows with further values, for a sample.
        parts: the number of parts of the window, of each of which a sample has a slice.
    """
    since, until = window
    whole = rows.filter(**{f"{time}__gte": since})
    if whole[: most + 1].count() <= most:
        return RecentRows(list(whole[:most]))
    # As many as came since the oldest of these may have come in equal times before.
    [oldest] = whole[most : most + 1]
    reached = max(until - parse_time(oldest[0]), (until - since) / MOST_EACH)
    size, every = min(SAMPLED, most), 2
    while most * ((until - since) / reached) > size * every:
        every *= 2

    @cache
    def count(every: int) -> int:
        some = rows.filter(_within(time, _slices(since, until, every, parts)))
        return some.order_by()[: size + 1].count() if every > 1 else most

    while every < MOST_EACH and count(every) > size:
        every *= 2
    while every > 2 and count(every // 2) <= size:  # a burst is no measure of the rest
        every //= 2
    if 2 * count(every) < ALIKE * count(every // 2):
        return RecentRows(list(whole[:most]), more=True)
    slices = _slices(since, until, every, parts)
    some = rows if of_sample is None else of_sample
    some = some.filter(_within(time, slices)).order_by()
    return RecentRows(list(some[:size]), every, slices)


def _slices(
    since: datetime, until: datetime, every: int, parts: int
) -> list[TimeSlice]:
    """Return a slice of each part of a window, at a pseudo-random place: the same for the same window."""
    part = (until - since) / parts
    found = []
    for number in range(parts):
        # The multiples of the golden ratio are spread evenly.
        start = since + part * number + part * (1 - 1 / every) * (number * 0.618034 % 1)
        found.append((start, start + part / every))
    return found


def _within(time: str, slices: Sequence[TimeSlice]) -> Q:
    parts = (Q(**{f"{time}__gte": start, f"{time}__lt": end}) for start, end in slices)
    return reduce(or_, parts, Q())
