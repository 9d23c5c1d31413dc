"""How a process stands after what has happened in it: the same rules, run again over its history.

It is what "resume from a checkpoint" restores, and what the stored rows must agree with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.definition.workflow.advance import (
    Advance,
    Arrivals,
    Settled,
    advance,
    begin,
)
from orchestrator.definition.workflow.plan import Plan

Visit = tuple[str, int]
"""A step and the number of its visit."""


class Replay:
    """Where a process is that has just begun, and then after each visit that is settled.

    Lists and mappings are in the order in which things happened.

    Args:
        plan: what it runs on.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.entered: dict[Visit, Visit | None] = {}
        """Every visit that was entered, with the one whose end led to it; None for those the process began with."""
        self.open: dict[str, int] = {}
        """The steps that were entered and are not settled, with the numbers of their visits: each has one at a time."""
        self.joins: dict[str, Arrivals] = {}
        """The vertices with several ways in to which at least one has been resolved."""
        self.not_taken: list[str] = []
        self.stray: list[Visit] = []
        """Visits that were settled although they were not open: it is not a history of this workflow."""
        self._apply(begin(plan), None)

    @property
    def waiting(self) -> dict[str, Arrivals]:
        """The joins that have had arrivals, and have neither started nor been passed over."""
        over = set(self.not_taken)
        return {
            name: now
            for name, now in self.joins.items()
            if not now.fired and name not in over
        }

    def settle(self, settled: Settled) -> None:
        """Goes on with a visit that was settled; one that was not open is noted as stray and has no effect.

        What nothing waits for any more, and what a failure elsewhere has ended, is cancelled here as well.

        Raises:
            NoCase: the result takes no way; such a step is not settled.
            Exception: whatever a predicate raises.
        """
        visit = (settled.step, settled.visit)
        if self.open.get(settled.step) == settled.visit:
            self._follow(settled, visit)
        else:
            self.stray.append(visit)

    def _follow(self, settled: Settled, by: Visit | None) -> None:
        del self.open[settled.step]
        self._apply(advance(self.plan, settled, self._look, past=True), by)

    def _look(self, names: Sequence[str]) -> Mapping[str, Arrivals]:
        return {name: self.joins[name] for name in names if name in self.joins}

    def _apply(self, found: Advance, by: Visit | None) -> None:
        self.joins |= found.joins
        self.not_taken += found.not_taken
        self.entered |= dict.fromkeys(found.entered, by)
        self.open |= dict(found.entered)
        for name in (*found.given_up, *found.caught):
            if name in self.open:
                self._follow(Settled(name, self.open[name], "cancelled"), by)


def replayed(plan: Plan, settled: Iterable[Settled]) -> Replay:
    """How a process of this plan stands when these visits have been settled, in this order.

    A map is one visit, settled when all its elements are.

    Raises:
        NoCase: a result in the history takes no way.
        Exception: whatever a predicate raises.
    """
    replay = Replay(plan)
    for one in settled:
        replay.settle(one)
    return replay
