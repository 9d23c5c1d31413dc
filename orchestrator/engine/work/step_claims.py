"""Claims of visits in turns: one burst of due work does not hold up the work of other definitions.

While a claim takes all that is due, visits are claimed oldest first. Once one comes full, the next ones take an equal
share of each definition with due visits, and within it of each status, oldest first. The oldest due visits fill the
rest: a claim takes fewer than asked only if no more are due.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from orchestrator.engine.sql.row_statements import ALL, Condition
from orchestrator.engine.sql.step_table import Turn
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.sql.tables import step_runs
from orchestrator.models import StepRun

LOOK_SECONDS = 0.1
"""How long claims go by age alone after a look has found one turn."""


class StepClaims:
    """The claims of one worker from one queue."""

    def __init__(self, queue: str, owner: str) -> None:
        self.queue, self.owner = queue, owner
        self._crowded = False
        """Whether the last claim came full."""
        self._next_look = 0.0

    def claim(
        self, size: int, lease: float, which: Condition = ALL, **values: Any
    ) -> list[Claimed[StepRun]]:
        """Claim due visits; the arguments are those of `Table.claim`."""
        turns = self._look(size)
        if turns:
            shares = _shares(turns, size)
            which = step_runs.in_turns(self.queue, shares, size, which)
        found = step_runs.claim(self.queue, self.owner, size, lease, which, **values)
        self._crowded = len(found) == size
        return _scarce_first(found) if turns else found

    def _look(self, size: int) -> list[Turn]:
        """Return the turns for the next claim; none where it goes by age."""
        if not self._crowded or time.monotonic() < self._next_look:
            return []
        if size == 1 and random.random() < 0.5:  # noqa: S311  # fairness, not secrecy
            return []  # the oldest of all has its turn, too
        turns = step_runs.due_turns(self.queue)
        if len(turns) > 1:
            return turns
        self._next_look = time.monotonic() + LOOK_SECONDS
        return []


def _shares(turns: Sequence[Turn], size: int) -> list[tuple[Turn, int]]:
    """Return some turns with their shares. One more share is for the oldest visits of all.

    Where there are more turns than places, chance decides which are left out. The last one is repeated up to a power of
    two, so that few different statements exist.
    """
    most = max(size - 1, 1)
    chosen = list(turns) if len(turns) <= most else random.sample(turns, most)
    statuses = Counter(turn.definition for turn in chosen)
    share = size // (len(statuses) + 1)
    shares = [(one, max(share // statuses[one.definition], 1)) for one in chosen]
    return shares + shares[-1:] * ((1 << (len(shares) - 1).bit_length()) - len(shares))


def _scarce_first(claimed: list[Claimed[StepRun]]) -> list[Claimed[StepRun]]:
    """Return visits with those of the least frequent turns first: the last of a batch may be released unbegun."""
    turns = [(one.work.definition, one.work.kind) for one in claimed]
    many = Counter(turns)
    order = sorted(
        zip(turns, claimed, strict=True), key=lambda it: (many[it[0]], it[0])
    )
    return [one for _, one in order]
