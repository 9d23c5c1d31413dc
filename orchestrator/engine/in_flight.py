"""The ready work of a queue whose work waits outside: claimed in batches, and prepared to be called."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection
from itertools import groupby
from typing import Any

from orchestrator.conf import conf
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.calls import Begun, Call
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.events import waiting as waiting_commands
from orchestrator.engine.steps import waiting as waiting_steps
from orchestrator.engine.steps.running import CLAIMED
from orchestrator.engine.storage.row_statements import Condition
from orchestrator.engine.storage.table import Table
from orchestrator.engine.storage.tables import commands, step_runs
from orchestrator.models import CommandStatus, IssuedCommand, StepRun

BATCH = 32
"""How many pieces of work are claimed at once at most: they begin within a moment."""

KINDS: tuple[tuple[Table[Any], dict[str, Any]], ...] = (
    (commands, {"status": CommandStatus.RUNNING}),
    (step_runs, CLAIMED),
)
"""What may wait outside, and what a claim makes of it."""


class CallsToMake:
    """The ready calls of a queue, as one worker claims them.

    Args:
        worker_slice: of the worker, for as long as it lives.
        begun: gives the calls that it has in flight.
    """

    def __init__(self, worker_slice: WorkerSlice, begun: Begun) -> None:
        self.worker_slice, self.begun = worker_slice, begun
        self.more = True
        """Whether there may be more than were claimed."""

    def claim(self, room: int) -> list[StepRun | IssuedCommand]:
        """Claims so many pieces of work at most.

        Raises:
            DatabaseError: the database refused.
        """
        here, asked = self.worker_slice, time.monotonic()
        found: list[StepRun | IssuedCommand] = []
        most = min(room, BATCH)
        for table, values in KINDS:
            if left := most - len(found):
                lease, which = conf().LEASE_SECONDS, self._with_threads(table)
                claimed = table.claim(
                    here.queue, here.owner, left, lease, which, **values
                )
                found += [item.work for item in claimed]
        if time.monotonic() - asked > conf().LEASE_SECONDS / 2:
            leases.doubt()  # others may have taken it over before the answer came
            return []
        self.more = len(found) == most
        return found

    def _with_threads(self, table: Table[Any]) -> Condition:
        """What is said of the work that may begin: its kind has a thread left, if it needs one."""
        begun = [call for call in self.begun() if call.threads is not None]
        counts = Counter(call.kind for call in begun)
        full = {call.kind for call in begun if counts[call.kind] >= (call.threads or 0)}
        if table is commands:
            return table.but_for("type", sorted(x for x in full if type(x) is str))
        return table.but_for("node", sorted(x[1] for x in full if type(x) is tuple))

    def prepared(
        self, work: StepRun | IssuedCommand, before: Call | None
    ) -> Call | None:
        """Makes a claimed piece of work ready to be called; None when it is not to be now, which is stored.

        Args:
            work: the claimed row.
            before: what was prepared of the same claim just before.
        """
        if isinstance(work, IssuedCommand):
            return waiting_commands.begin(work, self.worker_slice, self.begun)
        return waiting_steps.begin(work, self.worker_slice, self.begun, before)


def still_mine(owner: str, calls: Collection[Call]) -> set[Call]:
    """Those of the calls that their worker still holds."""
    found = set()
    for model, mine in groupby(sorted(calls, key=_model), _model):
        by_key = {call.work.pk: call for call in mine}
        table = StepRun if model == StepRun.__name__ else IssuedCommand
        held = table._default_manager.filter(pk__in=by_key, owner=owner)
        rows = held.values_list("pk", "attempt")
        found |= {by_key[pk] for pk, at in rows if by_key[pk].work.attempt == at}
    return found


def _model(call: Call) -> str:
    return type(call.work).__name__
