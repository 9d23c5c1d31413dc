"""Parts of the stored rows, and sets of processes with their rows. One query for each set reads all rows of a kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, TypeVar, cast
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from orchestrator.containers import group_by_key
from orchestrator.definition import Workflow
from orchestrator.definition.workflow.plan import Plan
from orchestrator.definition.workflow.replay import Replay
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.settled_visits import ORDER, History, Run
from orchestrator.engine.storage.switches import MIGRATE, Switch
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepKind,
    StepRun,
)
from orchestrator.models.process_instance import ProcessInstanceQuerySet
from orchestrator.registry import DefinitionClass

M = TypeVar("M", bound=Model)

REPAIRS = ("repair", "approve_repair", MIGRATE)
"""The actions that set the step and the data of a process."""
WITH_DEADLINES = ("", StepKind.WAIT, StepKind.ASK, StepKind.SLEEP)
"""The kinds of visits with deadlines; visits of process managers have no kind."""
TIMES = (
    "instance_id",
    "node",
    "kind",
    "status",
    "deadlines_fired",
    "blocked",
    "error",
    "owner",
    "wake_at",
    "remaining",
    "extended",
    "started_at",
    "finished_at",
)
"""The columns of a visit that say when it wakes."""
MOST_PROCESSES = 200
MOST_REVISIONS = 10_000
"""The number of checkpoints after which a set ends, since the histories of a set are in memory."""


@dataclass(frozen=True)
class StoredPart:
    """A part of the stored rows: all rows, those of some processes, or those that belong to no process.

    Args:
        after: the processes have larger ids; None for no bound.
        until: the processes have this id or smaller ones; None for no bound.
        ids: the ids of the processes, instead of bounds.
        outside: whether the part has the rows without a process, instead of processes.
        numbers: of the events without a process those with larger keys than the first number, up to the second.
    """

    after: UUID | None = None
    until: UUID | None = None
    ids: tuple[UUID, ...] | None = None
    outside: bool = False
    numbers: tuple[int, int] | None = None

    @property
    def has_the_rest(self) -> bool:
        """Whether the part has the rows that belong to no process, beside events."""
        first = self.numbers is None or not self.numbers[0]
        return self == WHOLE or (self.outside and first)

    def of(self, rows: QuerySet[M], process: str = "instance") -> QuerySet[M]:
        """Return the rows of this part, by the column with their process."""
        if self.outside:
            return self._outside(rows.filter(**{f"{process}__isnull": True}))
        if self.ids is not None:
            return rows.filter(**{f"{process}__in": self.ids})
        bounds = {f"{process}__gt": self.after, f"{process}__lte": self.until}
        given = {name: bound for name, bound in bounds.items() if bound is not None}
        return rows.filter(**given) if given else rows

    def _outside(self, rows: QuerySet[M]) -> QuerySet[M]:
        if rows.model is InboxEvent and self.numbers is not None:
            return rows.filter(pk__gt=self.numbers[0], pk__lte=self.numbers[1])
        return rows if self.has_the_rest else rows.none()

    def processes(self) -> ProcessInstanceQuerySet:
        """Return the processes of this part."""
        return cast(
            ProcessInstanceQuerySet, self.of(ProcessInstance.objects.all(), "pk")
        )


WHOLE = StoredPart()
"""All stored rows."""


def pages_by_key(rows: QuerySet[Any], size: int) -> Iterator[list[Any]]:
    """Yield all rows in the order of their keys, in pages.

    The keys are read first. In the order of the keys, PostgreSQL would look for the rows of a part in the whole table.
    """
    keys = sorted(rows.order_by().values_list("pk", flat=True))
    for first in range(0, len(keys), size):
        yield list(rows.filter(pk__in=keys[first : first + size]).order_by("pk"))


class StoredEvent(NamedTuple):
    """The columns of an event that a replay reads."""

    pk: int
    type: str
    body: Any
    verdict: str


class StoredCommand(NamedTuple):
    """The columns of a command that are compared with what its transition issues."""

    pk: UUID
    revision: int
    type: str
    body: Any
    status: str
    delivery: str
    holds: UUID | None


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
            history = History(process, runs=self._runs[process.pk])
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
    def events(self) -> Mapping[UUID, list[StoredEvent]]:
        """The events by process."""
        rows = self.of(InboxEvent.objects.all(), "process").order_by()
        read = rows.values_list("process_id", "pk", "type", "body", "verdict")
        return group_by_key((process, StoredEvent(*row)) for process, *row in read)

    @cached_property
    def commands(self) -> Mapping[UUID, list[StoredCommand]]:
        """The commands by process."""
        rows = self.of(IssuedCommand.objects.all()).order_by()
        read = rows.values_list("instance_id", *StoredCommand._fields)
        return group_by_key((process, StoredCommand(*row)) for process, *row in read)

    @cached_property
    def timed_visits(self) -> Mapping[UUID, list[StepRun]]:
        """The visits with deadlines ahead or passed, by process."""
        ahead = Q(finished_at=None, kind__in=WITH_DEADLINES, item=None)
        rows = self.of(StepRun.objects.filter(ahead | Q(deadlines_fired__gt=0)))
        read = rows.order_by("pk").only(*TIMES)
        return group_by_key((run.instance_id, run) for run in read)

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
    def _runs(self) -> Mapping[UUID, list[Run]]:
        """The step runs of the workflows, by process."""
        rows = StepRun.objects.filter(instance__in=self._workflows).order_by(*ORDER)
        read = rows.values_list("instance_id", *Run._fields)
        return group_by_key((process, Run(*row)) for process, *row in read)

    @property
    def _workflows(self) -> list[UUID]:
        return [one.pk for one in self.processes if one.definition.is_workflow]

    @cached_property
    def _resumed(self) -> Mapping[UUID, set[int]]:
        """The revisions at which operators resumed an earlier checkpoint, by process."""
        done = OperatorAction.objects.filter(action="resume", result="done")
        found: dict[UUID, set[int]] = defaultdict(set)
        for process, after in self.of(done).values_list("instance_id", "after"):
            found[process].add(after["revision"])
        return found


def is_unchanged(definition: DefinitionClass, process: ProcessInstance) -> bool:
    """Return whether the running code has the definition of a process as it was stored.

    Args:
        definition: the class in the running code.
        process: the process, with its stored definition.
    """
    return _fingerprint_of(definition) == process.definition.fingerprint


def _make_fingerprint(definition: DefinitionClass) -> str:
    if issubclass(definition, Workflow) and definition.static is None:
        return ""
    return definition.graph().fingerprint()


_fingerprint_of: Callable[[Any], str] = lru_cache(maxsize=1_000)(_make_fingerprint)
"""The fingerprint of a definition; "" if each process has a graph made from its input."""


def process_sets(part: StoredPart = WHOLE) -> Iterator[ProcessSet]:
    """Yield the processes of a part, in the order of their ids."""
    rows = part.processes().select_related("definition")
    for page in pages_by_key(rows.defer("definition__graph"), MOST_PROCESSES):
        first = revisions = 0
        for number, process in enumerate(page, start=1):
            revisions += process.revision
            if revisions >= MOST_REVISIONS or number == len(page):
                yield ProcessSet(page[first:number])
                first, revisions = number, 0
