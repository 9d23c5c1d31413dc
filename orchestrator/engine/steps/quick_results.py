"""Results of quick steps, held for a moment so that they share one commit.

What is held is shown to the worker's supervisor, which has it stored when the next function takes longer than a moment,
or ends its worker. Where nobody sees it, it is stored before the next function is called.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from orchestrator.engine.claims.held import (
    HOLD_SECONDS,
    TAKE_SECONDS,
    Held,
    UnstoredResult,
)
from orchestrator.engine.steps.session import HeldResult
from orchestrator.models import StepRun

MOST = 50
"""How many results one commit stores at most."""


def still_mine(held: Sequence[HeldResult]) -> list[HeldResult]:
    """Those of the results that the worker's supervisor has not stored meanwhile."""
    runs = StepRun.objects.filter(pk__in=[one.run.pk for one in held])
    mine = set(runs.values_list("pk", "owner", "attempt"))
    return [one for one in held if (one.run.pk, one.run.owner, one.run.attempt) in mine]


class QuickResults:
    """The results that a worker holds.

    Args:
        shown: where its supervisor sees them.
    """

    def __init__(self, shown: Held) -> None:
        self.shown = shown
        self._held: list[HeldResult] = []
        self._since = 0.0
        self._seen = True

    def __bool__(self) -> bool:
        return bool(self._held)

    def hold(self, held: HeldResult) -> None:
        """Takes a result in."""
        if not self._held:
            self._since, self._seen = time.monotonic(), True
        self._held.append(held)
        run = held.run
        result = UnstoredResult(run.pk, run.attempt, **held.given)
        self._seen &= self.shown.returned(result)

    @property
    def are_due(self) -> bool:
        """Whether what is held is to be stored now; asked after it was shown, so that who looks later finds it."""
        if not self._held:
            return False
        waited = time.monotonic() - self._since
        return not self._seen or len(self._held) >= MOST or waited > HOLD_SECONDS

    def take(self) -> list[HeldResult]:
        """Return what is held, to be stored; after a while without what others have stored."""
        held, self._held = self._held, []
        late = time.monotonic() - self._since > TAKE_SECONDS
        return still_mine(held) if late else held
