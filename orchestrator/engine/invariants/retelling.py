"""A workflow's history told again by the pure core: what its settled visits lead to, one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from orchestrator.definition.workflow import advance
from orchestrator.definition.workflow.advance import Advance, Arrivals, Settled
from orchestrator.definition.workflow.plan import Plan
from orchestrator.engine.invariants.runs import Visit


class Retelling:
    """Where a workflow must stand after the visits told so far.

    Args:
        plan: what it runs on.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.entered: dict[Visit, int] = {}
        """Every visit that has started, and at which revision."""
        self.passed: set[str] = set()
        """The steps on branches that were not taken."""
        self.joins: dict[str, Arrivals] = {}
        self.open: dict[str, set[Visit]] = {}
        """The visits that have started and are not settled, by step."""
        self.cancelled: set[Visit] = set()
        """The visits that were cancelled because nothing waits for them any more, or by a failure that was caught."""
        self._apply(advance.begin(plan), 1)

    def settle(self, settled: Settled, revision: int) -> bool:
        """Tells that a visit was settled; False when it cannot have been.

        Raises:
            NoCase: no way on fits the result.
            Exception: whatever a predicate raises.
        """
        visit = (settled.step, settled.visit)
        mine = self.open.get(settled.step, set())
        if visit not in mine:
            return False
        mine.discard(visit)
        self._apply(advance.advance(self.plan, settled, self._look), revision)
        return True

    def _look(self, names: Sequence[str]) -> Mapping[str, Arrivals]:
        return {name: self.joins[name] for name in names if name in self.joins}

    def _apply(self, found: Advance, revision: int) -> None:
        self.joins |= found.joins
        self.passed |= set(found.not_taken)
        for visit in found.entered:
            self.entered[visit] = revision
            self.open.setdefault(visit[0], set()).add(visit)
        for name in (*found.given_up, *found.caught):
            for visit in sorted(self.open.get(name, ())):
                self.cancelled.add(visit)
                self.settle(Settled(*visit, "cancelled"), revision)
