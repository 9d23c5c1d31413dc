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
"""Items under way at once: a slice reads all of them."""

MOST_RATE = 1_000.0

MOST_SAMPLES = 5


@dataclass(frozen=True)
class Pace:
    """The pace of a bulk operation.

    Args:
        samples: the sizes of the first batches; each begins when the outcomes of the one before it are known.
        batch: the most items under way at once after the samples.
        rate: the most items that begin in a second; None for no limit.
        per_key: the most items with one correlation key under way at once; None for no limit.
        stop_above: the percentage of failures above which the operation stops by itself; None for never.
    """

    samples: tuple[int, ...] = (1, 10)
    batch: int = 100
    rate: float | None = None
    per_key: int | None = None
    stop_above: float | None = 5.0

    def check(self) -> None:
        """Check that each number is within its bounds.

        Raises:
            OperationRefused: a number is out of bounds.
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
        selection: the name of the kind of selection.
        about: the parameters of the selection.
        shown: the number of rows on the page.
        shown_at: the moment of the page; the operation leaves out rows that match only since then.
        exact: whether the page has counted all rows; if not, a person looks at their number before any item begins.
        given: the values of the action's form.
        pace: the pace.
        limits: the definitions to which the page has limited the operation, in the form of `bulk.limits`; "" if the
            page has shown no limits.
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
    """Return the pace of an operation."""
    values = {one.name: getattr(operation, one.name) for one in fields(Pace)}
    return Pace(**{**values, "samples": tuple(operation.samples)})
