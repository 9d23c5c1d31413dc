"""Replay of a workflow's history by the rules that the engine uses.

"Resume from a checkpoint" restores the state of a replay, and `check_invariants` compares it with the stored rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from orchestrator.definition.workflow.advance import (
    Advance,
    Arrivals,
    Settled,
    advance,
    initial_advance,
)
from orchestrator.definition.workflow.plan import Plan

StepVisit = tuple[str, int]
"""A step and the number of its visit."""


class Replay:
    """The state of a process at its start, and then after each settled visit.

    Lists and mappings are in the order of the history.

    Args:
        plan: the compiled workflow.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.entered: dict[StepVisit, StepVisit | None] = {}
        """Every entered visit -> the visit whose end led to it; None for those with which the process began."""
        self.open: dict[str, int] = {}
        """The open steps -> the numbers of their visits. A step has one open visit at a time."""
        self.joins: dict[str, Arrivals] = {}
        """The vertices with several incoming links of which at least one is resolved."""
        self.not_taken: list[str] = []
        self.stray: list[StepVisit] = []
        """Visits that were settled although they were not open. With one, this is no history of the workflow."""
        self._apply(initial_advance(plan), None)

    @property
    def waiting(self) -> dict[str, Arrivals]:
        """The joins with arrivals that have neither started nor been passed over."""
        over = set(self.not_taken)
        return {
            name: now
            for name, now in self.joins.items()
            if not now.fired and name not in over
        }

    def settle(self, settled: Settled) -> None:
        """Settle a visit. A visit that is not open is noted as stray and has no effect.

        The replay also cancels the visits that no join waits for any more, and the other visits of a `catch`.

        Raises:
            NoCase: the result takes no link; such a step is not settled.
            Exception: a predicate failed.
        """
        visit = (settled.step, settled.visit)
        if self.open.get(settled.step) == settled.visit:
            self._follow(settled, visit)
        else:
            self.stray.append(visit)

    def _follow(self, settled: Settled, by: StepVisit | None) -> None:
        del self.open[settled.step]
        self._apply(advance(self.plan, settled, self._look, past=True), by)

    def _look(self, names: Sequence[str]) -> Mapping[str, Arrivals]:
        return {name: self.joins[name] for name in names if name in self.joins}

    def _apply(self, found: Advance, by: StepVisit | None) -> None:
        self.joins |= found.joins
        self.not_taken += found.not_taken
        self.entered |= dict.fromkeys(found.entered, by)
        self.open |= dict(found.entered)
        for name in (*found.given_up, *found.caught):
            if name in self.open:
                self._follow(Settled(name, self.open[name], "cancelled"), by)


def replay_history(plan: Plan, settled: Iterable[Settled]) -> Replay:
    """Return the replay of settled visits, in this order. A map is one visit.

    Raises:
        NoCase: a result in the history takes no link.
        Exception: a predicate failed.
    """
    replay = Replay(plan)
    for one in settled:
        replay.settle(one)
    return replay
