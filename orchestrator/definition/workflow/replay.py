"""The state of a process after what has happened in it: the same rules, run again over its history.

It is what "resume from a checkpoint" restores, and what the stored rows must agree with.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.definition.workflow.advance import (
    Advance,
    Arrivals,
    Ending,
    Settled,
    advance,
    begin,
)
from orchestrator.definition.workflow.plan import Plan

Visit = tuple[str, int]
"""A step and the number of its visit."""


@dataclass
class ReplayedState:
    """Where a process is. Lists and mappings are in the order in which things happened."""

    open: dict[Visit, None] = field(default_factory=dict)
    """The visits that were entered and are not settled."""
    joins: dict[str, Arrivals] = field(default_factory=dict)
    """The vertices with several ways in to which at least one has been resolved."""
    settled: dict[Visit, Ending] = field(default_factory=dict)
    not_taken: list[str] = field(default_factory=list)
    taken: list[str] = field(default_factory=list)
    """The ids of the links taken."""
    given_up: set[Visit] = field(default_factory=set)
    """Open visits that nothing waits for any more, or whose failure was caught elsewhere: they are to be cancelled."""
    stray: list[Visit] = field(default_factory=list)
    """Visits that the history settles although they were not open: it is not a history of this workflow."""

    @property
    def waiting(self) -> dict[str, Arrivals]:
        """The joins that have had arrivals, and have neither started nor been passed over."""
        over = set(self.not_taken)
        return {
            name: now
            for name, now in self.joins.items()
            if not now.fired and name not in over
        }

    def read_joins(self, names: Sequence[str]) -> Mapping[str, Arrivals]:
        """The arrivals at joins so far, for `advance`."""
        return {name: self.joins[name] for name in names if name in self.joins}

    def apply(self, found: Advance) -> None:
        """Notes what follows from something."""
        self.open |= dict.fromkeys(found.entered)
        self.joins |= found.joins
        self.not_taken += found.not_taken
        self.taken += found.taken
        ended = {*found.given_up, *found.caught}
        if ended:
            self.given_up |= {visit for visit in self.open if visit[0] in ended}


def replayed(plan: Plan, settled: Iterable[Settled]) -> ReplayedState:
    """The state of a process of this plan when these visits have been settled, in this order.

    A visit that was not open is noted as stray and has no effect. A map is one visit, settled when all its elements
    are. Visits that are cancelled are in the history like all others.

    Raises:
        NoCase: a result in the history takes no way; such a step is not settled.
        Exception: whatever a predicate raises.
    """
    state = ReplayedState()
    state.apply(begin(plan))
    for one in settled:
        visit = (one.step, one.visit)
        if visit not in state.open:
            state.stray.append(visit)
            continue
        found = advance(plan, one, state.read_joins)
        del state.open[visit]
        state.given_up.discard(visit)
        state.settled[visit] = one.outcome
        state.apply(found)
    return state
