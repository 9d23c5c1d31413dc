"""Claims of visits in turns: one burst of due work does not hold up the work of other definitions.

While a claim takes all that is due, visits are claimed oldest first. Once one comes full, the next ones take an equal
share of each definition with due visits, and within it of each status, oldest first. The oldest due visits fill the
rest: a claim takes fewer than asked only if no more are due.

A definition that does not fill its share is scarce. Its visits go on to their next wait before the others begin.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

from orchestrator.engine.sql.row_statements import ALL, Condition
from orchestrator.engine.sql.step_table import Turn
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.sql.tables import step_runs
from orchestrator.models import StepRun

LOOK_SECONDS = 0.1
"""How long claims go by age alone after a look has found one turn."""

BESIDE_SECONDS = 1.0
"""How long a worker looks before each claim after it has seen due visits of several definitions."""


class StepClaims:
    """The claims of one worker from one queue."""

    def __init__(self, queue: str, owner: str) -> None:
        self.queue, self.owner = queue, owner
        self.scarce = 0
        """The number of the first visits of the last claim that go on to their next wait before the others begin."""
        self.left_out = False
        """Whether the others of the last claim did not begin: they are first in the next one."""
        self._crowded = False
        """Whether the last claim came full."""
        self._frequent = frozenset[str]()
        """The definitions that were not scarce in the last claim in turns."""
        self._next_look = 0.0
        self._beside_until = 0.0

    def claim(
        self, size: int, lease: float, which: Condition = ALL, **values: Any
    ) -> list[Claimed[StepRun]]:
        """Claim due visits; the arguments are those of `Table.claim`."""
        turns = self._look(size)
        if turns:
            shares = _shares(turns, size)
            which = step_runs.in_turns(self.queue, shares, size, which)
        found = step_runs.claim(self.queue, self.owner, size, lease, which, **values)
        self._crowded, self.scarce = len(found) == size, 0
        first, self.left_out = not self.left_out, False
        return self._in_order(found, turns, size, first) if turns else found

    @property
    def beside_others(self) -> bool:
        """Whether the last claim came full, and visits of several definitions were due just now."""
        return self._crowded and time.monotonic() < self._beside_until

    def are_others_due(self, runs: Collection[StepRun]) -> bool:
        """Whether visits of scarce definitions are due, besides those of some visits."""
        known = self._frequent.union(run.definition for run in runs)
        return any(turn.definition not in known for turn in self._found_turns())

    def _look(self, size: int) -> list[Turn]:
        """Return the turns for the next claim; none where it goes by age."""
        if not self._crowded or time.monotonic() < self._next_look:
            return []
        if size == 1 and random.random() < 0.5:  # noqa: S311  # fairness, not secrecy
            return []  # the oldest of all has its turn, too
        turns = self._found_turns()
        if len(turns) > 1:
            return turns
        if not self.beside_others:
            self._next_look = time.monotonic() + LOOK_SECONDS
        return []

    def _found_turns(self) -> list[Turn]:
        turns = step_runs.due_turns(self.queue)
        if len({turn.definition for turn in turns}) > 1:
            self._beside_until = time.monotonic() + BESIDE_SECONDS
        return turns

    def _in_order(
        self,
        claimed: Sequence[Claimed[StepRun]],
        turns: Sequence[Turn],
        size: int,
        first: bool,
    ) -> list[Claimed[StepRun]]:
        """Return visits, with those of scarce definitions first, or last."""
        found = _scarce_first(claimed)
        many = Counter(one.work.definition for one in found)
        share = size // (len({turn.definition for turn in turns}) + 1)
        self._frequent = frozenset(x for x in many if many[x] >= max(share, 2))
        scarce = [one for one in found if one.work.definition not in self._frequent]
        others = [one for one in found if one.work.definition in self._frequent]
        if not first:
            return [*others, *scarce]
        self.scarce = len(scarce) if others else 0
        return [*scarce, *others]


def _shares(turns: Sequence[Turn], size: int) -> list[tuple[Turn, int]]:
    """Return some turns with their shares. One more share is for the oldest visits of all.

    If there are more turns than places, chance decides which are left out. The last one is repeated up to a power of
    two, so that few different statements exist.
    """
    most = max(size - 1, 1)
    chosen = list(turns) if len(turns) <= most else random.sample(turns, most)
    statuses = Counter(turn.definition for turn in chosen)
    share = size // (len(statuses) + 1)
    shares = [(one, max(share // statuses[one.definition], 1)) for one in chosen]
    return shares + shares[-1:] * ((1 << (len(shares) - 1).bit_length()) - len(shares))


def _scarce_first(claimed: Sequence[Claimed[StepRun]]) -> list[Claimed[StepRun]]:
    """Return visits with those of the least frequent turns first: the last of a batch may be released unbegun."""
    turns = [(one.work.definition, one.work.kind) for one in claimed]
    many = Counter(turns)
    order = sorted(
        zip(turns, claimed, strict=True), key=lambda it: (many[it[0]], it[0])
    )
    return [one for _, one in order]
