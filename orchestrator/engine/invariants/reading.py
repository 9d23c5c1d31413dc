"""Processes in sets, with the rows that belong to them: each kind of rows is read by one question a set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from orchestrator.collecting import group_by_key
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
"""The actions that leave a process in a step and with data that nothing else has led to."""
MOST_PROCESSES = 200
MOST_REVISIONS = 10_000
"""Checkpoints after which a set ends: the histories of a set are in memory."""


def pages(rows: QuerySet[Any], size: int) -> Iterator[list[Any]]:
    """All rows in the order of their keys, in pages; each query begins after the last key of the page before."""
    rows = rows.order_by("pk")
    page = list(rows[:size])
    while page:
        yield page
        page = list(rows.filter(pk__gt=page[-1].pk)[:size])


class Retold:
    """The history of a workflow, told again by the pure core.

    Args:
        plan: what the workflow runs on.
        history: what is stored of it.
    """

    def __init__(self, plan: Plan, history: History) -> None:
        self.plan = plan
        self.history = history
        self.replay = Replay(plan)
        self.error = self._replay()
        """The error that ended the replay; None for a complete replay."""

    def _replay(self) -> Exception | None:
        try:
            for settled in self.history.settled(self.plan):
                self.replay.settle(settled)
        except Exception as error:  # noqa: BLE001  # predicates may raise anything
            return error
        return None


class ProcessSet:
    """Some processes; what belongs to them is read when it is first asked for."""

    def __init__(self, processes: Sequence[ProcessInstance]) -> None:
        self.processes = processes
        self._ids = [process.pk for process in processes]
        self._told: dict[UUID, Retold] = {}

    def __len__(self) -> int:
        return len(self.processes)

    def of(self, rows: QuerySet[Any], process: str = "instance") -> QuerySet[Any]:
        """Those of the rows that belong to these processes, which they name by this field."""
        return rows.filter(Q(**{f"{process}__in": self._ids}))

    def told(self, process: ProcessInstance) -> Retold:
        """The history of a workflow, told again once.

        Raises:
            ProcessionError: the running code has no plan for it.
        """
        if process.pk not in self._told:
            history = History(process)
            history.resumed_at = self._resumed[process.pk]
            history.switches = self.switches[process.pk]
            self._told[process.pk] = Retold(definitions.plan_of(process), history)
        return self._told[process.pk]

    @cached_property
    def checkpoints(self) -> Mapping[UUID, list[Checkpoint]]:
        """In the order of their revisions."""
        rows = self.of(Checkpoint.objects.order_by("revision"))
        return group_by_key((row.instance_id, row) for row in rows)

    @cached_property
    def events(self) -> Mapping[UUID, list[tuple[int, str, Any]]]:
        """The key, type and body of each."""
        rows = self.of(InboxEvent.objects.all(), "process")
        read = rows.values_list("process_id", "pk", "type", "body")
        return group_by_key((process, tuple(row)) for process, *row in read)

    @cached_property
    def commands(self) -> Mapping[UUID, list[tuple[UUID, int, str, Any]]]:
        """The id, revision, type and body of each."""
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
        """When each went over to another version, the first time first."""
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
        """The revisions at which operators set each back."""
        done = OperatorAction.objects.filter(action="resume", result="done")
        found: dict[UUID, set[int]] = defaultdict(set)
        for process, after in self.of(done).values_list("instance_id", "after"):
            found[process].add(after["revision"])
        return found


def process_sets() -> Iterator[ProcessSet]:
    """All processes, in the order of their ids."""
    rows = ProcessInstance.objects.select_related("definition")
    for page in pages(rows.defer("definition__graph"), MOST_PROCESSES):
        first = revisions = 0
        for number, process in enumerate(page, start=1):
            revisions += process.revision
            if revisions >= MOST_REVISIONS or number == len(page):
                yield ProcessSet(page[first:number])
                first, revisions = number, 0
