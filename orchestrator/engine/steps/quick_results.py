"""Results of a map's quick elements, held for a moment so that they share one commit.

Every element's change of its process needs the same locked row. What is held is shown to the worker's supervisor, which
has it stored when the next element takes longer than a moment, or ends its worker. Where nobody sees it, nothing is
held.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from orchestrator.engine.claims.held import (
    HOLD_SECONDS,
    TAKE_SECONDS,
    Held,
    UnstoredResult,
)
from orchestrator.models import StepRun, Work

MOST = 50
"""How many results one commit stores at most."""


class HeldResult(NamedTuple):
    """A result that is not stored yet.

    Args:
        run: the element's claimed visit.
        result: what its function gave.
        given: the columns in which that is stored.
    """

    run: StepRun
    result: Any
    given: dict[str, Any]


def still_mine(held: list[HeldResult]) -> list[HeldResult]:
    """Those of the results that the worker's supervisor has not stored meanwhile."""
    runs = StepRun.objects.filter(pk__in=[one.run.pk for one in held])
    mine = set(runs.values_list("pk", "owner", "attempt"))
    return [one for one in held if (one.run.pk, one.run.owner, one.run.attempt) in mine]


class QuickResults:
    """The results of one map's elements that a worker holds.

    Args:
        shown: where its supervisor sees them.
    """

    def __init__(self, shown: Held) -> None:
        self.shown = shown
        self._held: list[HeldResult] = []
        self._since = 0.0

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, held: HeldResult) -> bool:
        """Takes a result in, and tells whether what is held is to be stored now."""
        if not self._held:
            self._since = time.monotonic()
        self._held.append(held)
        run = held.run
        seen = self.shown.returned(UnstoredResult(run.pk, run.attempt, **held.given))
        # Only now: whoever looks later than this finds it.
        waited = time.monotonic() - self._since
        return not seen or len(self._held) >= MOST or waited > HOLD_SECONDS

    def goes_with(self, work: Work) -> bool:
        """Whether a piece of work is another element of the map whose results are held."""
        if not self._held or not isinstance(work, StepRun):
            return False
        return _map_of(self._held[0].run) == _map_of(work)

    def take(self) -> list[HeldResult]:
        """Return what is held, to be stored; after a while without what others have stored."""
        held, self._held = self._held, []
        late = time.monotonic() - self._since > TAKE_SECONDS
        return still_mine(held) if late else held


def _map_of(run: StepRun) -> tuple[Any, ...]:
    return run.instance_id, run.node, run.visit, run.round
