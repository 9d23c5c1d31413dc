"""The ready calls of a queue: claimed in batches, and prepared. A call is work whose function waits outside."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from itertools import groupby
from typing import Any

from orchestrator.configuration.conf import conf
from orchestrator.engine.events import command_calls as waiting_commands
from orchestrator.engine.sql.connection import note_uncertain_commit
from orchestrator.engine.sql.row_statements import ALL, Condition
from orchestrator.engine.sql.session import own_thread
from orchestrator.engine.sql.table import Table
from orchestrator.engine.sql.tables import commands, instances, step_runs
from orchestrator.engine.steps import step_calls as waiting_steps
from orchestrator.engine.steps.runner import CLAIMED
from orchestrator.engine.steps.step_calls import StepCallKind
from orchestrator.engine.work import leases
from orchestrator.engine.work.call_room import Room
from orchestrator.engine.work.calls import Call
from orchestrator.engine.work.step_claims import StepClaims
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import CommandStatus, IssuedCommand, StepKind, StepRun

BATCH = 32
"""The most pieces of work in one claim: all of them begin within a moment."""

KINDS: tuple[tuple[Table[Any], dict[str, Any]], ...] = (
    (commands, {"status": CommandStatus.RUNNING}),
    (step_runs, CLAIMED),
)
"""The tables of work that may wait outside, and the columns that a claim sets."""


class CallsToMake:
    """The ready calls of a queue, as one worker claims them.

    Args:
        worker_slice: of the worker, for as long as it lives.
        room: for more calls of each kind.
    """

    def __init__(self, worker_slice: WorkerSlice, room: Room) -> None:
        own_thread()
        self.worker_slice, self.room = worker_slice, room
        self.more = True
        """Whether there may be more ready calls than were claimed."""
        self._kinds = KINDS
        """The kind that is first in one claim is last in the next, so that neither keeps the other from running."""
        self._step_claims = StepClaims(worker_slice.queue, worker_slice.owner)
        self._size = BATCH
        self._left_out = 0

    def claim(self, room: int) -> list[StepRun | IssuedCommand]:
        """Claim work, at most `room` pieces.

        Raises:
            DatabaseError: the database refused.
        """
        here, asked = self.worker_slice, time.monotonic()
        found: list[StepRun | IssuedCommand] = []
        most = self._size = min(room, self._next_size())
        self._left_out = 0
        self._kinds = self._kinds[1:] + self._kinds[:1]
        for table, values in self._kinds:
            if left := most - len(found):
                lease, which = conf().LEASE_SECONDS, self._with_room(table)
                if table is step_runs:
                    claimed = self._step_claims.claim(left, lease, which, **values)
                else:
                    claimed = table.claim(
                        here.queue, here.owner, left, lease, which, **values
                    )
                found += [item.work for item in claimed]
        if leases.lease_may_end(asked):
            note_uncertain_commit()  # other workers may have taken the work over before the answer came
            return []
        self.more = len(found) == most
        return found

    def _next_size(self) -> int:
        """The size of the next claim: smaller after calls of a full kind were released."""
        if self._left_out:
            return max(1, self._size - self._left_out)
        return min(BATCH, self._size * 2)

    def _with_room(self, table: Table[Any]) -> Condition:
        """The condition that a row's kind is not full."""
        full = self.room.full()
        if table is commands:
            return table.but_for("type", sorted(x for x in full if type(x) is str))
        return _but_for(sorted(x for x in full if isinstance(x, StepCallKind)))

    def prepare(
        self, work: StepRun | IssuedCommand, before: Call | None
    ) -> Call | None:
        """Prepare the call of a claimed piece of work. Return None where it is not called now, and store that.

        Args:
            work: the claimed row.
            before: the call that was prepared just before, of the same claim.
        """
        here, room = self.worker_slice, self.room
        if isinstance(work, IssuedCommand):
            call = waiting_commands.prepare_command_call(work, here, room)
        else:
            call = waiting_steps.prepare_step_call(work, here, room, before)
        self._left_out += call is None
        return call


def _but_for(kinds: Iterable[StepCallKind]) -> Condition:
    """The condition that excludes visits of these kinds."""
    sql, params = "", list[str]()
    for kind in kinds:
        sql += (
            f" AND NOT (node = %s AND kind {'=' if kind.undo else '<>'} '{StepKind.UNDO}'"  # noqa: S608  # names are the models'
            f" AND %s = (SELECT p.name FROM {instances.name} AS p WHERE p.id = {step_runs.name}.instance_id))"
        )
        params += [kind.node, kind.definition]
    return Condition(sql, tuple(params)) if sql else ALL


def find_held_calls(owner: str, calls: Collection[Call]) -> set[Call]:
    """Return the calls that their worker still holds."""
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
