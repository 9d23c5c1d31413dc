"""Storing what was read: in one transaction, as it stood when it was written, and paused since then.

1. Every row is stored under a new key where the database gives the keys; what refers to it follows.
2. What a worker had in its hands is as when that worker had died: the attempt counts, and a step that must not run
   twice is not run again by itself.
3. Each process that has not ended is paused as of the moment of the export, by the same change that pauses any: no time
   has passed for it. Commands that were to be carried out wait too, until it is resumed.
4. The history is told again by the pure core, as `check_invariants` does: what does not hold is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.db import DataError, IntegrityError
from django.db.models import Count, Model, Q

from orchestrator import registry
from orchestrator.definition import Workflow
from orchestrator.definition.codec import decode
from orchestrator.definition.outside_ids import identifiers
from orchestrator.engine import inbox
from orchestrator.engine.change import starting
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.manager import active_person
from orchestrator.engine.claims.leases import ERRORS
from orchestrator.engine.invariants import in_processes
from orchestrator.engine.invariants.history import dense_history
from orchestrator.engine.invariants.ledger import counted_parked
from orchestrator.engine.invariants.reading import ProcessSet
from orchestrator.engine.storage import definitions, idle_limit
from orchestrator.engine.storage.batch import chunks
from orchestrator.engine.storage.outside_id_table import rows_of
from orchestrator.engine.storage.tables import instances
from orchestrator.engine.transfer.form import PinnedDefinition
from orchestrator.engine.transfer.reading import ExportedRow, Reading
from orchestrator.engine.transfer.unfinished import check_settled
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    Lost,
    OperatorAction,
    OutsideId,
    ProcessInstance,
    StepRun,
    StepStatus,
)

AT_ONCE = 500
"""Rows that one statement stores."""
AHEAD = timedelta(days=1)
"""How far another machine's clock may be ahead."""


def arrived(reading: Reading, cause: Cause, now: datetime) -> ProcessInstance:
    """Stores what was exported, in the running transaction.

    Args:
        reading: the export.
        cause: the action that imports it.
        now: the database's time.

    Returns:
        The process, paused if it had not ended.

    Raises:
        OperationRefused: it is here already, or the running code cannot go on with it, or it is not what was written.
    """
    idle_limit.allow(idle_limit.LONG)
    if reading.head.exported_at > now + AHEAD:
        raise OperationRefused("it was exported in the future: look at both clocks")
    try:
        tree = _Storing(reading.head.exported_at, now).stored(reading)
        return _paused(tree, reading, cause)
    except IntegrityError as error:
        raise OperationRefused(
            f"something of it is here already: {str(error).strip()}"
        ) from None
    except (DataError, OverflowError) as error:
        raise OperationRefused(
            f"something of it cannot be stored: {str(error).strip()}"
        ) from None


def _paused(tree: list[UUID], reading: Reading, cause: Cause) -> ProcessInstance:
    """Has all of the tree that has not ended stand still since its export; what does not hold is refused."""
    if tree[0] != reading.head.process or len(tree) != reading.head.processes:
        raise OperationRefused("its processes are not those that its first line names")
    check_settled(tree)
    for pk in tree:
        instance = ProcessInstance.objects.select_for_update().get(pk=pk)
        if instance.finished_at is None:
            _pause(instance, cause, reading.head.exported_at)
    for some in chunks(tree, AT_ONCE):
        _check(some)
    return ProcessInstance.objects.get(pk=tree[0])


def _pause(instance: ProcessInstance, cause: Cause, exported_at: datetime) -> None:
    commands = IssuedCommand.objects.filter(instance=instance.pk)
    commands.filter(status__in=IssuedCommand.UNDER_WAY).update(wake_at=None, owner="")
    change = ProcessChange(instance, cause, exported_at)
    if not change.paused:
        change.pause()
    change.mark(*inbox.early_events(instance, exported_at, id_known=True))
    change.write()


def _check(some: Sequence[UUID]) -> None:
    """Refuses what cannot have become so.

    Raises:
        OperationRefused: with the first thing that does not hold.
    """
    rows = ProcessInstance.objects.filter(pk__in=some).select_related("definition")
    processes = list(rows.defer("definition__graph").order_by("pk"))
    finding = next(_unsound(some), None) or next(
        in_processes(ProcessSet(processes)), None
    )
    if finding:
        raise OperationRefused(f"its history does not hold together: {finding}")


def _unsound(some: Sequence[UUID]) -> Iterator[str]:
    rows = ProcessInstance.objects.filter(pk__in=some)
    yield from dense_history(rows)
    yield from counted_parked(rows.live())
    opened = Count("step_runs", filter=Q(step_runs__finished_at=None))
    for row in rows.annotate(n=opened).select_related("definition"):
        least = 1 if row.finished_at is None else 0
        workflow = row.definition.kind == "workflow"
        miscounted = workflow and row.open_steps != row.n
        if miscounted or least > row.n or (row.n and not least):
            yield f"{row.pk} stands in {row.n} steps"
        if not workflow:
            yield from _unknown_steps(row)


def _unknown_steps(instance: ProcessInstance) -> Iterator[str]:
    """The visits of a process manager are of its steps, and the open one is of that in which it stands."""
    steps = {str(one) for one in definitions.manager_of(instance).Step}
    for run in instance.step_runs.exclude(node__in=steps)[:1]:
        yield f"{instance.pk} has visited {run.node!r}, which is no step"
    for run in instance.step_runs.filter(finished_at=None).exclude(node=instance.step):
        yield f"{instance.pk} waits in {run.node}, which is not its step"


HERE = {
    "event": "an event of it was received here before, with the same source and id: both cannot be true",
    "action": "an operator's action of it is here already",
    "command": "a command of it is here already",
}
"""What is said when a row cannot be stored beside those that are here."""


@dataclass
class _Storing:
    """The rows that are stored, and under which keys.

    Args:
        exported_at: as when the rows stood.
        now: the database's time.
    """

    exported_at: datetime
    now: datetime
    tree: dict[UUID, None] = field(default_factory=dict)
    commands: set[UUID] = field(default_factory=set)
    new: dict[str, dict[int, int]] = field(default_factory=dict)
    """The new keys of rows by their old ones."""
    known_graphs: dict[str, str] = field(default_factory=dict)
    caused: dict[UUID, set[str]] = field(default_factory=dict)
    _outside_ids: list[OutsideId] = field(default_factory=list)
    _waiting: list[tuple[int | None, Model]] = field(default_factory=list)
    _name: str = ""

    def stored(self, reading: Reading) -> list[UUID]:
        """Stores all rows; the process ids, the outermost first."""
        ready: dict[str, Callable[[dict[str, Any], dict[str, Any]], Model]] = {
            "process": self._process,
            "command": self._command,
            "event": self._event,
            "visit": self._visit,
            "action": self._action,
            "incident": self._incident,
            "checkpoint": self._checkpoint,
        }
        for row in reading.rows():
            self._add(row, ready[row.part.name])
        self._flush()
        OutsideId.objects.bulk_create(self._outside_ids, AT_ONCE)
        self._count_follow_ups()
        if not self.tree:
            raise OperationRefused("there is no process in it")
        return list(self.tree)

    def _add(self, row: ExportedRow, ready: Callable[..., Model]) -> None:
        if row.part.name != self._name or len(self._waiting) >= AT_ONCE:
            self._flush()
            self._name = row.part.name
        values, old = dict(row.values), None
        if row.part.name not in ("process", "command"):
            old = values.pop("id")
            if old in self.new.setdefault(self._name, {}):
                raise OperationRefused(f"the {self._name} {old} is in it twice")
            self.new[self._name][old] = 0
        self._waiting.append((old, ready(values, row.beside)))

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = [row for _, row in self._waiting]
        try:
            type(rows[0])._default_manager.bulk_create(rows)
        except IntegrityError as error:
            raise OperationRefused(
                f"{HERE.get(self._name, 'something of it is here already')} ({str(error).strip()})"
            ) from None
        for old, row in self._waiting:
            if old is not None:
                self.new[self._name][old] = row.pk
        self._waiting = []

    def _process(self, values: dict[str, Any], beside: dict[str, Any]) -> Model:
        parent, pk = values["parent_id"], values["id"]
        if (parent is None) != (not self.tree) or (parent and parent not in self.tree):
            raise OperationRefused(f"the process {pk} is no part of the others")
        if ProcessInstance.objects.filter(pk=pk).exists():
            raise OperationRefused(
                f"the process {pk} is here already: nothing is ever overwritten"
            )
        self.tree[pk] = None
        definition: PinnedDefinition = beside["definition"]
        if definition.name != values["name"]:
            raise OperationRefused(f"the process {pk} has two names")
        if values["finished_at"] is None:
            instances.check_free(values["name"], values["correlation_key"])
        known = registry.definition(definition.name, definition.version)
        if isinstance(values["data"], dict):
            ids = identifiers(known.outside_ids, values["data"])
            self._outside_ids += rows_of(pk, ids)
        # Whoever sees to it, if there is an active user of that name here.
        owner: Any = active_person(beside["owner"]) if beside["owner"] else None
        return ProcessInstance(
            **values,
            definition_id=_definition(definition, values["data"], self.known_graphs),
            owner=owner,
        )

    def _command(self, values: dict[str, Any], beside: dict[str, Any]) -> Model:
        self._check_mine(values["instance_id"])
        self.commands.add(values["id"])
        return IssuedCommand(**values)

    def _event(self, values: dict[str, Any], beside: dict[str, Any]) -> Model:
        self._check_mine(values["process_id"])
        if values["caused_by_id"] not in self.commands:
            values["caused_by_id"] = None  # by another process
        else:
            caused = self.caused.setdefault(values["caused_by_id"], set())
            caused.add(values["event_id"])
        self._let_go(values)
        return InboxEvent(**values)

    def _visit(self, values: dict[str, Any], beside: dict[str, Any]) -> Model:
        self._check_mine(values["instance_id"])
        if values["child_id"] is not None:
            self._check_mine(values["child_id"])
        if values["owner"] and values["status"] == StepStatus.RUNNING:
            values |= {
                "status": StepStatus.RETRYING,
                "error": f"{ERRORS[Lost.DIED]}: it was exported while a worker was at it",
                "lost": Lost.DIED,
                "given_back": 0,
            }
        self._let_go(values)
        return StepRun(**values)

    def _let_go(self, values: dict[str, Any]) -> None:
        """What a worker held is due as of the export."""
        if values["owner"]:
            values |= {"owner": "", "wake_at": self.exported_at}

    def _action(self, values: dict[str, Any], beside: dict[str, Any]) -> Model:
        if values["instance_id"] is not None:
            self._check_mine(values["instance_id"])
        values["event_id"] = self.new.get("event", {}).get(values["event_id"])
        if values["address"] is not None:
            values["address"] = str(values["address"])
        return OperatorAction(**values)

    def _incident(self, values: dict[str, Any], beside: dict[str, Any]) -> Model:
        if values["instance_id"] is not None:
            self._check_mine(values["instance_id"])
        command = values["command_id"]
        if command is not None and command not in self.commands:
            raise OperationRefused("an incident names a command that is not in it")
        for name, column in (("event", "event_id"), ("visit", "step_run_id")):
            if values[column] is not None:
                values[column] = self._known(name, values[column])
        return Incident(**values)

    def _checkpoint(self, values: dict[str, Any], beside: dict[str, Any]) -> Model:
        self._check_mine(values["instance_id"])
        values["cause"] = self._cause(values["cause"])
        return Checkpoint(**values)

    def _cause(self, text: str) -> str:
        """What moved a process, by the keys that it has here."""
        try:
            cause = Cause.parse(text)
            if (names := REFERRED.get(cause.kind)) is None:
                return text
            number = int(cause.ref)
        except ValueError:
            raise OperationRefused(f"{text[:50]!r} is no cause") from None
        known = [self.new.get(name, {}) for name in names]
        name = next(
            (n for n, of in zip(names, known, strict=True) if number in of), names[0]
        )
        return str(Cause(cause.kind, str(self._known(name, number)), cause.part))

    def _known(self, name: str, old: int) -> int:
        new = self.new.get(name, {}).get(old)
        if not new:
            raise OperationRefused(f"the {name} {old} is referred to, and not in it")
        return new

    def _check_mine(self, process: UUID | None) -> None:
        if process not in self.tree:
            raise OperationRefused(
                f"the process {process} is referred to, and not in it"
            )

    def _count_follow_ups(self) -> None:
        """A command counts those of the events it has caused that came with it: the others are of other processes."""
        rows = IssuedCommand.objects.filter(pk__in=self.commands, follow_ups__gt=0)
        for row in rows.only("follow_ups").iterator(AT_ONCE):
            here = len(self.caused.get(row.pk, ()))
            if row.follow_ups != here:
                IssuedCommand.objects.filter(pk=row.pk).update(follow_ups=here)


REFERRED: dict[CauseKind, tuple[str, ...]] = {
    CauseKind.EVENT: ("event",),
    CauseKind.EVENT_FAILED: ("event",),
    CauseKind.STEP: ("visit",),
    CauseKind.DEADLINE: ("visit",),
    CauseKind.STEP_FAILED: ("visit",),
    CauseKind.PARENT: ("visit",),
    CauseKind.SETTLED: ("event", "visit"),
}
"""What the causes of a kind refer to by keys that are new here."""


def _definition(name: PinnedDefinition, data: Any, known_graphs: dict[str, str]) -> int:
    """The key of the definition that a process runs on, which must be that of the running code.

    Args:
        name: of the definition.
        data: of the process.
        known_graphs: the fingerprints of those whose graphs are always the same, as far as they were asked for.

    Raises:
        OperationRefused: the running code does not have it, or has another one under its name and version.
    """
    known = registry.definition(name.name, name.version)
    if issubclass(known, Workflow) and known.static is None:
        pin = starting.pinned(known, decode(known.Input, data))
        fingerprint, key = str((pin.columns or {}).get("fingerprint")), pin.row
    else:
        said = f"{name.name} {name.version}"
        if said not in known_graphs:
            known_graphs[said] = known.graph().fingerprint()
        fingerprint, key = known_graphs[said], partial(definitions.row_of, known)
    if fingerprint != name.fingerprint or known.kind != name.kind:
        raise OperationRefused(
            f"{name.name} version {name.version} is another one here than the one it ran on (fingerprint "
            f"{fingerprint[:12]}, not {name.fingerprint[:12]!a}): run the code that it ran on, or migrate it there"
        )
    return key()
