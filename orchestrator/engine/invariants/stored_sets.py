"""Sets of processes with their rows. One query for each set reads all rows of a kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from orchestrator.containers import group_by_key
from orchestrator.definition.workflow.plan import Plan
from orchestrator.definition.workflow.replay import Replay
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.settled_visits import History
from orchestrator.engine.storage.switches import MIGRATE, Switch
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
)

REPAIRS = ("repair", "approve_repair", MIGRATE)
"""The actions that set the step and the data of a process."""
MOST_PROCESSES = 200
MOST_REVISIONS = 10_000
"""The number of checkpoints after which a set ends, since the histories of a set are in memory."""


def pages_by_key(rows: QuerySet[Any], size: int) -> Iterator[list[Any]]:
    """Yield all rows in the order of their keys, in pages. Each query begins after the last key of the page before."""
    rows = rows.order_by("pk")
    page = list(rows[:size])
    while page:
        yield page
        page = list(rows.filter(pk__gt=page[-1].pk)[:size])


class ReplayedHistory:
    """The stored history of a workflow's process, and its replay.

    Args:
        plan: the compiled workflow.
        history: the stored history.
    """

    def __init__(self, plan: Plan, history: History) -> None:
        self.plan = plan
        self.history = history
        self.replay = Replay(plan)
        self.error = self._replay()
        """The error that ended the replay; None for a complete replay."""

    def _replay(self) -> BaseException | None:
        try:
            for settled in self.history.settled(self.plan):
                self.replay.settle(settled)
        except BaseException as error:  # noqa: BLE001  # predicates may raise anything
            return error
        return None


class ProcessSet:
    """Some processes. Their rows are read when a check first needs them."""

    def __init__(self, processes: Sequence[ProcessInstance]) -> None:
        self.processes = processes
        self._ids = [process.pk for process in processes]
        self._replays: dict[UUID, ReplayedHistory] = {}

    def __len__(self) -> int:
        return len(self.processes)

    def of(self, rows: QuerySet[Any], process: str = "instance") -> QuerySet[Any]:
        """Return the rows that belong to these processes by a field of theirs."""
        return rows.filter(Q(**{f"{process}__in": self._ids}))

    def replay_of(self, process: ProcessInstance) -> ReplayedHistory:
        """Return the history of a workflow's process with its replay. Each history is replayed once.

        Raises:
            ProcessionError: the running code has no plan for the process.
        """
        if process.pk not in self._replays:
            history = History(process)
            history.resumed_at = self._resumed[process.pk]
            history.switches = self.switches[process.pk]
            plan = definitions.plan_of(process)
            self._replays[process.pk] = ReplayedHistory(plan, history)
        return self._replays[process.pk]

    @cached_property
    def checkpoints(self) -> Mapping[UUID, list[Checkpoint]]:
        """The checkpoints by process, in the order of their revisions."""
        rows = self.of(Checkpoint.objects.order_by("revision"))
        return group_by_key((row.instance_id, row) for row in rows)

    @cached_property
    def events(self) -> Mapping[UUID, list[tuple[int, str, Any]]]:
        """The key, type and body of each event, by process."""
        rows = self.of(InboxEvent.objects.all(), "process")
        read = rows.values_list("process_id", "pk", "type", "body")
        return group_by_key((process, tuple(row)) for process, *row in read)

    @cached_property
    def commands(self) -> Mapping[UUID, list[tuple[UUID, int, str, Any]]]:
        """The id, revision, type and body of each command, by process."""
        rows = self.of(IssuedCommand.objects.all())
        read = rows.values_list("instance_id", "pk", "revision", "type", "body")
        return group_by_key((process, tuple(row)) for process, *row in read)

    @cached_property
    def repairs(self) -> Mapping[UUID, dict[str, Mapping[str, Any]]]:
        """The results of repairs of each process, by the keys of the audit rows."""
        done = OperatorAction.objects.filter(action__in=REPAIRS, result="done")
        found: dict[UUID, dict[str, Mapping[str, Any]]] = defaultdict(dict)
        for process, key, after in self.of(done).values_list(
            "instance_id", "key", "after"
        ):
            found[process][str(key)] = after
        return found

    @cached_property
    def switches(self) -> Mapping[UUID, list[Switch]]:
        """The migrations by process, the first one first."""
        done = OperatorAction.objects.filter(action=MIGRATE, result="done")
        rows = self.of(done).values_list("instance_id", "before", "after")
        found = group_by_key(
            (process, Switch.read(before, after)) for process, before, after in rows
        )
        for some in found.values():
            some.sort(key=lambda switch: switch.revision)
        return found

    @cached_property
    def _resumed(self) -> Mapping[UUID, set[int]]:
        """The revisions at which operators resumed an earlier checkpoint, by process."""
        done = OperatorAction.objects.filter(action="resume", result="done")
        found: dict[UUID, set[int]] = defaultdict(set)
        for process, after in self.of(done).values_list("instance_id", "after"):
            found[process].add(after["revision"])
        return found


def process_sets() -> Iterator[ProcessSet]:
    """Yield all processes, in the order of their ids."""
    rows = ProcessInstance.objects.select_related("definition")
    for page in pages_by_key(rows.defer("definition__graph"), MOST_PROCESSES):
        first = revisions = 0
        for number, process in enumerate(page, start=1):
            revisions += process.revision
            if revisions >= MOST_REVISIONS or number == len(page):
                yield ProcessSet(page[first:number])
                first, revisions = number, 0
