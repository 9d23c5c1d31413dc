"""The axis of a process's life: time from left to right, with long gaps folded to a fixed width."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

WIDTH = 1000.0
"""The units of the whole axis."""

LONG = 20
"""A gap is long if it is at least this many times the usual gap."""

LEAST = timedelta(seconds=2)
"""The minimum length of a folded gap."""

FOLD = 30.0
"""The units of a folded gap; fewer if there are many folded gaps."""

FOLDED = 0.4
"""The maximum share of the axis for folded gaps."""

SPREAD = 0.25
"""The share of the axis that all gaps get evenly, so that a reader can tell simultaneous moments apart."""


@dataclass(frozen=True)
class Fold:
    """A gap that the axis does not draw to scale."""

    x: float
    width: float
    length: timedelta

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


@dataclass(frozen=True)
class Axis:
    """The place of each moment on the axis. Earlier and later moments lie at its ends.

    Args:
        times: the moments that have a place of their own, in order.
        places: their places, from 0 to `WIDTH`.
        folds: the folded gaps between them.
    """

    times: Sequence[datetime]
    places: Sequence[float]
    folds: Sequence[Fold] = ()

    def x(self, at: datetime) -> float:
        """Return the place of a moment, in units from the left."""
        after = bisect_right(self.times, at)
        if after == 0:
            return 0.0
        if after == len(self.times):
            return self.places[-1]
        begin, end = self.times[after - 1], self.times[after]
        left, right = self.places[after - 1], self.places[after]
        share = (at - begin) / (end - begin)
        return left + (right - left) * share


def axis_of(times: Sequence[datetime]) -> Axis:
    """Lay out an axis on which these moments have a place.

    Args:
        times: at least one moment. Their order may be wrong after a clock was set back.
    """
    ordered = sorted(times)
    gaps = [after - before for before, after in pairwise(ordered)]
    limit = max(LEAST, _usual(gaps) * LONG)
    short = [gap for gap in gaps if gap <= limit]
    folded = len(gaps) - len(short)
    fold = min(FOLD, FOLDED * WIDTH / folded) if folded else 0.0
    each, per_second = _shares(short, WIDTH - folded * fold)
    places, folds = [0.0], []
    for gap in gaps:
        if gap > limit:
            folds.append(Fold(places[-1], fold, gap))
            places.append(places[-1] + fold)
        else:
            places.append(places[-1] + each + per_second * gap.total_seconds())
    return Axis(ordered, places, folds)


def _usual(gaps: Sequence[timedelta]) -> timedelta:
    """Return the median length of the gaps that are longer than 0."""
    some = sorted(gap for gap in gaps if gap)
    return some[len(some) // 2] if some else timedelta(0)


def _shares(gaps: Sequence[timedelta], room: float) -> tuple[float, float]:
    """Return the minimum width of each gap, and the additional width of each second."""
    whole = sum(gaps, timedelta(0)).total_seconds()
    even = SPREAD if whole else 1.0
    each = room * even / len(gaps) if gaps else 0.0
    return each, room * (1 - even) / whole if whole else 0.0
