"""The request for a bulk operation, and its pace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from orchestrator.exceptions import OperationRefused
from orchestrator.models import BulkOperation
from orchestrator.text import Text

MOST_BATCH = 1_000
"""Items that may be under way at once: each look at them takes them all in."""

MOST_RATE = 1_000.0

MOST_SAMPLES = 5


@dataclass(frozen=True)
class Pace:
    """How fast a bulk operation goes on.

    Args:
        samples: how many are tried first, and then, and so on, each time until what came of them is known.
        batch: how many are under way at once after that.
        rate: how many are begun in a second at most; None for as many as go.
        per_key: how many with the same correlation key are under way at once; None for any number.
        stop_above: the percentage of failures above which it stops by itself; None for never.
    """

    samples: tuple[int, ...] = (1, 10)
    batch: int = 100
    rate: float | None = None
    per_key: int | None = None
    stop_above: float | None = 5.0

    def check(self) -> None:
        """Refuses what makes no sense.

        Raises:
            OperationRefused: one of the numbers is out of bounds.
        """
        sizes = all(0 < size <= MOST_BATCH for size in self.samples)
        if len(self.samples) > MOST_SAMPLES or not sizes:
            raise OperationRefused(
                "give at most %(number)s samples of 1 to %(most)s",
                MOST_SAMPLES,
                MOST_BATCH,
            )
        if not 0 < self.batch <= MOST_BATCH:
            raise OperationRefused("let 1 to %(most)s be under way at once", MOST_BATCH)
        if self.rate is not None and not 0.01 <= self.rate <= MOST_RATE:
            raise OperationRefused("begin 0.01 to %(most)s a second", f"{MOST_RATE:g}")
        if self.per_key is not None and not 0 < self.per_key <= MOST_BATCH:
            raise OperationRefused(
                "let 1 to %(most)s with one business key be under way at once",
                MOST_BATCH,
            )
        if self.stop_above is not None and not 0 <= self.stop_above < 100:
            raise OperationRefused(Text("stop at a percentage from 0 to below 100"))


@dataclass(frozen=True)
class Wanted:
    """A request for a bulk operation.

    Args:
        action: the name of the action.
        selection: the kind of selection.
        about: what is selected.
        shown: how many the page has shown.
        shown_at: when it did; what matches only since then is left alone.
        exact: whether it has counted them all; if not, nothing begins before a person has seen how many there are.
        given: what the action is told besides.
        pace: how fast.
        limits: the definitions that the page has shown it to be limited to, as `bulk.limits` says them; "" where it
            has said nothing of that.
    """

    action: str
    selection: str
    about: Mapping[str, Any]
    shown: int
    shown_at: datetime
    exact: bool = True
    given: Sequence[Any] = ()
    pace: Pace = field(default_factory=Pace)
    limits: str = ""


def pace_of(operation: BulkOperation) -> Pace:
    """The pace of an operation."""
    values = {one.name: getattr(operation, one.name) for one in fields(Pace)}
    return Pace(**{**values, "samples": tuple(operation.samples)})
