"""Results of a map's quick elements, held for a moment so that they share one commit.

Every element's change of its process needs the same locked row. A worker that dies in between loses a moment's results:
they were not committed, and their elements run again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from orchestrator.models import StepRun

HOLD_SECONDS = 0.02
"""How long a result waits for others at most, once the next element is done."""

MOST = 50
"""How many results one commit stores at most."""


@dataclass(frozen=True)
class HeldResult:
    """A result that is not stored yet.

    Args:
        run: the element's claimed visit.
        result: what its function gave.
        given: the columns in which that is stored.
    """

    run: StepRun
    result: Any
    given: dict[str, Any]


class QuickResults:
    """The results of one map's elements that a worker holds."""

    def __init__(self) -> None:
        self._held: list[HeldResult] = []
        self._since = 0.0

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, held: HeldResult) -> bool:
        """Takes a result in, and tells whether what is held is to be stored now."""
        if not self._held:
            self._since = time.monotonic()
        self._held.append(held)
        waited = time.monotonic() - self._since
        return len(self._held) >= MOST or waited > HOLD_SECONDS

    def goes_with(self, run: StepRun) -> bool:
        """Whether the visit is another element of the map whose results are held."""
        return bool(self._held) and _map_of(self._held[0].run) == _map_of(run)

    def take(self) -> list[HeldResult]:
        """Return what is held, to be stored."""
        held, self._held = self._held, []
        return held


def _map_of(run: StepRun) -> tuple[Any, ...]:
    return run.instance_id, run.node, run.visit, run.round
