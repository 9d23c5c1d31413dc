"""Results of quick steps, held for a moment so that they share one commit.

What is held is shown to the worker's supervisor, which has it stored when the next function takes longer than a moment,
or ends its worker. Where nobody sees it, it is stored before the next function is called.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from orchestrator.engine.claims.held import (
    TAKE_SECONDS,
    Held,
    Holding,
    UnstoredResult,
)
from orchestrator.engine.steps.session import HeldResult
from orchestrator.models import StepRun


def still_mine(held: Sequence[HeldResult]) -> list[HeldResult]:
    """Those of the results that the worker's supervisor has not stored meanwhile."""
    runs = StepRun.objects.filter(pk__in=[one.run.pk for one in held])
    mine = set(runs.values_list("pk", "owner", "attempt"))
    return [one for one in held if (one.run.pk, one.run.owner, one.run.attempt) in mine]


class QuickResults(Holding[HeldResult]):
    """The results that a worker holds.

    Args:
        shown: where its supervisor sees them.
    """

    def __init__(self, shown: Held) -> None:
        super().__init__()
        self.shown = shown
        self._seen = True

    def hold(self, key: Hashable, one: HeldResult) -> None:
        super().hold(key, one)
        run = one.run
        result = UnstoredResult(run.pk, run.attempt, **one.given)
        self._seen &= self.shown.returned(result)

    @property
    def are_due(self) -> bool:
        return super().are_due or (bool(self) and not self._seen)

    def take(self) -> list[HeldResult]:
        """Return what is held, to be stored; after a while without what others have stored."""
        late, self._seen = self.waited > TAKE_SECONDS, True
        held = super().take()
        return still_mine(held) if late else held
