"""Settling quick elements of a map together.

Every element's change of its process needs the same locked row; those that are done within a moment share one commit.
A worker that dies in between loses a moment's results: they were not committed, and their elements run again.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from orchestrator.engine.change import maps
from orchestrator.models import StepRun, StepStatus

if TYPE_CHECKING:
    from orchestrator.engine.steps.session import Session

log = logging.getLogger(__name__)

HOLD_SECONDS = 0.02
"""How long a result waits for others at most, once the next element is done."""

MOST = 50
"""How many results one commit stores at most."""


@dataclass(frozen=True)
class HeldResult:
    """A result that is not stored yet."""

    run: StepRun
    result: Any
    given: dict[str, Any]


class QuickResults:
    """The results of one map's elements that this worker holds for a moment."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._held: list[HeldResult] = []
        self._since = 0.0

    def gather(
        self, session: Session, run: StepRun, result: Any, given: dict[str, Any]
    ) -> StepRun | None:
        """Takes a result in; stores what it has when that is enough.

        Args:
            session: the element's session.
            run: the element's claimed visit.
            result: what its function gave.
            given: the columns in which that is stored.

        Returns:
            The visit that this worker goes on with, if the map is done.
        """
        if not self._held:
            self._since = time.monotonic()
        self.session = session
        self._held.append(HeldResult(run, result, given))
        held = time.monotonic() - self._since
        if len(self._held) >= MOST or held > HOLD_SECONDS:
            return self.store()
        return None

    @property
    def holds(self) -> bool:
        """Whether it has results that are not stored."""
        return bool(self._held)

    def goes_with(self, run: StepRun) -> bool:
        """Whether the visit is another element of the map whose results are held."""
        first = self._held[0].run if self._held else None
        return first is not None and _map_of(first) == _map_of(run)

    def store(self) -> StepRun | None:
        """Stores what it has."""
        session, held = self.session, self._held
        self._held = []
        if session is None or not held:
            return None
        try:
            return _store(session, held)
        except Exception as error:  # noqa: BLE001  # each by itself tells whose it is
            log.info("%s elements could not be stored together: %s", len(held), error)
        following = [session.finish(one.run, one.result) for one in held]
        return next(filter(None, following), None)


def _map_of(run: StepRun) -> tuple[Any, ...]:
    return run.instance_id, run.node, run.visit, run.round


def _store(session: Session, held: list[HeldResult]) -> StepRun | None:
    """All in one commit.

    Raises:
        LeaseLost: one of them was settled by another worker; nothing is stored.
    """
    first = held[0].run
    with transaction.atomic(durable=True):
        flow = session.lock(first)
        for one in held:
            flow.close(one.run, StepStatus.DONE, **one.given)
        maps.count(flow, first, failed=False, number=len(held))
        flow.write()
        return flow.mine
