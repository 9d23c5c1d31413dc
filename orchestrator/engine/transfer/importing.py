"""The import of an export: in one transaction, in the state of the export, and paused since then.

1. Every row is stored. Rows whose keys the database gives get new keys, and other rows name these.
2. Claimed work counts as lost, with its attempt. A step that must not run twice waits for an operator.
3. Each live process is paused as of the moment of the export: no time has passed for it until a person resumes it.
4. The invariants are checked as by `check_invariants`, and an inconsistent history is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from itertools import chain
from typing import Any
from uuid import UUID

from django.db import DataError, IntegrityError
from django.db.models import Model

from orchestrator import registry
from orchestrator.definition import ProcessManager, Workflow
from orchestrator.definition.codec import decode
from orchestrator.definition.declarations.outside_ids import identifiers
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.manager import active_person
from orchestrator.engine.invariants import process_findings
from orchestrator.engine.invariants.history import gaps_in_history
from orchestrator.engine.invariants.progress import wrong_steps
from orchestrator.engine.invariants.records import miscounted_parked
from orchestrator.engine.invariants.stored_sets import ProcessSet
from orchestrator.engine.sql.batch import chunks
from orchestrator.engine.sql.connection import LONG_IDLE, allow_idle
from orchestrator.engine.sql.tables import instances, outside_id_rows
from orchestrator.engine.storage import definitions, inbox
from orchestrator.engine.transfer.due_work import check_settled
from orchestrator.engine.transfer.form import ExportedTable, PinnedDefinition
from orchestrator.engine.transfer.reading import ExportFile
from orchestrator.engine.work.leases import lost_columns
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Cause,
    CauseKind,
    IssuedCommand,
    Lost,
    OutsideId,
    ProcessInstance,
    StepStatus,
)
from orchestrator.text import Text

AT_ONCE = 500
"""Rows in one statement."""
AHEAD = timedelta(days=1)
"""How far another machine's clock may be ahead."""


def store_import(reading: ExportFile, cause: Cause, now: datetime) -> ProcessInstance:
    """Store an export in the running transaction; return the process, paused unless it had ended.

    Args:
        reading: the export.
        cause: the operator's action.
        now: the database's time.

    Raises:
        OperationRefused: the process exists here, the running code cannot continue it, or the export is inconsistent.
    """
    allow_idle(LONG_IDLE)
    if reading.head.exported_at > now + AHEAD:
        raise OperationRefused(
            Text("it was exported in the future: look at both clocks")
        )
    with _conflicts_refused():
        tree = _Import(reading.head.exported_at, now).store(reading)
        return _pause_tree(tree, reading, cause)


@contextmanager
def _conflicts_refused() -> Iterator[None]:
    """Refuses an import whose rows the database does not accept."""
    try:
        yield
    except IntegrityError as error:
        raise OperationRefused(
            "something of it is here already: %(why)s", str(error).strip()
        ) from None
    except (DataError, OverflowError) as error:
        raise OperationRefused(
            "something of it cannot be stored: %(why)s", str(error).strip()
        ) from None


def _pause_tree(tree: list[UUID], reading: ExportFile, cause: Cause) -> ProcessInstance:
    """Pause the live processes of the tree as of the export, and check the invariants."""
    if tree[0] != reading.head.process or len(tree) != reading.head.processes:
        raise OperationRefused(
            Text("its processes are not those that its first line names")
        )
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
    """Refuse an inconsistent history.

    Raises:
        OperationRefused: there is a finding.
    """
    rows = ProcessInstance.objects.filter(pk__in=some).select_related("definition")
    processes = list(rows.defer("definition__graph").order_by("pk"))
    findings = chain(_unsound(some), process_findings(ProcessSet(processes)))
    if finding := next(findings, None):
        raise OperationRefused("its history does not hold together: %(why)s", finding)


def _unsound(some: Sequence[UUID]) -> Iterator[str]:
    rows = ProcessInstance.objects.filter(pk__in=some)
    yield from gaps_in_history(rows)
    yield from miscounted_parked(rows.live())
    yield from wrong_steps(rows)
    for row in rows.filter(definition__kind=ProcessManager.kind):
        yield from _unknown_steps(row)


def _unknown_steps(instance: ProcessInstance) -> Iterator[str]:
    """Yield a visit of a process manager that is of no step of its definition."""
    steps = {str(one) for one in definitions.manager_of(instance).Step}
    for run in instance.step_runs.exclude(node__in=steps)[:1]:
        yield Text(
            "%(process)s has visited %(node)s, which is no step",
            instance.pk,
            repr(run.node),
        )


MISSING = Text("the %(name)s %(key)s is referred to, and not in it")
SOMETHING_HERE = Text("something of it is here already (%(why)s)")
HERE = {
    "event": Text(
        "an event of it was received here before, with the same source and id: both cannot be true (%(why)s)"
    ),
    "action": Text("an operator's action of it is here already (%(why)s)"),
    "command": Text("a command of it is here already (%(why)s)"),
}
"""The reason why a row conflicts with a row of this installation, by the name of its table."""


@dataclass
class _Import:
    """The import of one export: its rows and their new keys.

    Args:
        exported_at: the time of the export.
        now: the database's time.
        tree: the stored processes, with the names and keys of their definitions, and their starts.
        new: the name of a table -> old key -> new key.
    """

    exported_at: datetime
    now: datetime
    tree: dict[UUID, tuple[str, int, datetime]] = field(default_factory=dict)
    commands: set[UUID] = field(default_factory=set)
    new: dict[str, dict[int, int]] = field(default_factory=dict)
    known_graphs: dict[str, str] = field(default_factory=dict)
    caused: dict[UUID, set[str]] = field(default_factory=dict)
    _outside_ids: list[OutsideId] = field(default_factory=list)
    _waiting: list[tuple[int | None, Model]] = field(default_factory=list)
    _name: str = ""

    def store(self, reading: ExportFile) -> list[UUID]:
        """Store all rows; return the process ids, the outermost process first."""
        for row in reading.rows():
            self._add(row.part, dict(row.values), row.beside)
        self._flush()
        OutsideId.objects.bulk_create(self._outside_ids, AT_ONCE)
        self._count_follow_ups()
        if not self.tree:
            raise OperationRefused(Text("there is no process in it"))
        return list(self.tree)

    def _add(
        self, part: ExportedTable, values: dict[str, Any], beside: dict[str, Any]
    ) -> None:
        if part.name != self._name or len(self._waiting) >= AT_ONCE:
            self._flush()
            self._name = part.name
        old = None
        if part.name not in ("process", "command"):
            old = values.pop("id")
            if old in self.new.setdefault(self._name, {}):
                raise OperationRefused(
                    "the %(name)s %(key)s is in it twice", self._name, old
                )
            self.new[self._name][old] = 0
        if part.name == "process":
            values |= self._of_process(values, beside)
        elif values[part.process] is not None or not part.stray:
            self._check_mine(values[part.process])
        if (change := CHANGES.get(part.name)) is not None:
            change(self, values)
        self._waiting.append((old, part.model(**values)))

    def _flush(self) -> None:
        if not self._waiting:
            return
        rows = [row for _, row in self._waiting]
        try:
            type(rows[0])._default_manager.bulk_create(rows)
        except IntegrityError as error:
            here = HERE.get(self._name, SOMETHING_HERE)
            raise OperationRefused(here.filled(str(error).strip())) from None
        for old, row in self._waiting:
            if old is not None:
                self.new[self._name][old] = row.pk
        self._waiting = []

    def _of_process(
        self, values: dict[str, Any], beside: dict[str, Any]
    ) -> dict[str, Any]:
        """Check a process; return the keys of its definition and owner in this installation."""
        pk = values["id"]
        self._check_new(pk, values["parent_id"])
        definition: PinnedDefinition = beside["definition"]
        if definition.name != values["name"]:
            raise OperationRefused("the process %(process)s has two names", pk)
        if values["finished_at"] is None:
            instances.check_free(values["name"], values["correlation_key"])
        known = registry.find_definition(definition.name, definition.version)
        if isinstance(values["data"], dict):
            ids = identifiers(known.outside_ids, values["data"])
            self._outside_ids += outside_id_rows(pk, values["started_at"], ids)
        # The owner is the active user of that name in this installation, if there is one.
        owner = active_person(beside["owner"]) if beside["owner"] else None
        pinned = _definition(definition, values["data"], self.known_graphs)
        self.tree[pk] = values["name"], pinned, values["started_at"]
        return {"definition_id": pinned, "owner": owner}

    def _check_new(self, pk: UUID, parent: UUID | None) -> None:
        """Refuse a process outside the tree, or one that this installation has."""
        if (parent is None) != (not self.tree) or (parent and parent not in self.tree):
            raise OperationRefused(
                "the process %(process)s is no part of the others", pk
            )
        if ProcessInstance.objects.filter(pk=pk).exists():
            raise OperationRefused(
                "the process %(process)s is here already: nothing is ever overwritten",
                pk,
            )

    def _command(self, values: dict[str, Any]) -> None:
        self.commands.add(values["id"])

    def _event(self, values: dict[str, Any]) -> None:
        if values["caused_by_id"] not in self.commands:
            values["caused_by_id"] = None  # a command of another process
        else:
            caused = self.caused.setdefault(values["caused_by_id"], set())
            caused.add(values["event_id"])
        self._release(values)

    def _visit(self, values: dict[str, Any]) -> None:
        values["definition"], *own = self.tree[values["instance_id"]]
        pinned, start = own if values["item"] is None else (None, None)
        values |= {"stored_definition_id": pinned, "process_started_at": start}
        if values["child_id"] is not None:
            self._check_mine(values["child_id"])
        if values["owner"] and values["status"] == StepStatus.RUNNING:
            why = Text("it was exported while a worker was at it")
            values |= lost_columns(Lost.DIED, why)
        self._release(values)

    def _release(self, values: dict[str, Any]) -> None:
        """Make claimed work due at the moment of the export."""
        if values["owner"]:
            values |= {"owner": "", "wake_at": self.exported_at}

    def _action(self, values: dict[str, Any]) -> None:
        values["event_id"] = self.new.get("event", {}).get(values["event_id"])
        values["address"] = values["address"] and str(values["address"])

    def _incident(self, values: dict[str, Any]) -> None:
        mine = self.tree.get(values["instance_id"])
        values["stored_definition_id"] = mine and mine[1]
        command = values["command_id"]
        if command is not None and command not in self.commands:
            raise OperationRefused(MISSING.filled("command", command))
        for name, column in (("event", "event_id"), ("visit", "step_run_id")):
            if values[column] is not None:
                values[column] = self._known(name, values[column])

    def _checkpoint(self, values: dict[str, Any]) -> None:
        """Replace the key in a checkpoint's cause by the new key."""
        text = values["cause"]
        try:
            cause = Cause.parse(text)
            if (names := REFERRED.get(cause.kind)) is None:
                return
            number = int(cause.ref)
        except ValueError:
            raise OperationRefused("%(text)s is no cause", repr(text[:50])) from None
        known = (name for name in names if number in self.new.get(name, {}))
        new = self._known(next(known, names[0]), number)
        values["cause"] = str(Cause(cause.kind, str(new), cause.part))

    def _known(self, name: str, old: int) -> int:
        new = self.new.get(name, {}).get(old)
        if not new:
            raise OperationRefused(MISSING.filled(name, old))
        return new

    def _check_mine(self, process: UUID | None) -> None:
        if process not in self.tree:
            raise OperationRefused(MISSING.filled("process", process))

    def _count_follow_ups(self) -> None:
        """Let each command count only the caused events of this tree, without events for other processes."""
        rows = IssuedCommand.objects.filter(pk__in=self.commands, follow_ups__gt=0)
        for row in rows.only("follow_ups").iterator(AT_ONCE):
            here = len(self.caused.get(row.pk, ()))
            if row.follow_ups != here:
                IssuedCommand.objects.filter(pk=row.pk).update(follow_ups=here)


CHANGES: dict[str, Callable[[_Import, dict[str, Any]], None]] = {
    "command": _Import._command,
    "event": _Import._event,
    "visit": _Import._visit,
    "action": _Import._action,
    "incident": _Import._incident,
    "checkpoint": _Import._checkpoint,
}
"""The functions that adapt the values of a row, by the name of its table."""

REFERRED: dict[CauseKind, tuple[str, ...]] = {
    CauseKind.EVENT: ("event",),
    CauseKind.EVENT_FAILED: ("event",),
    CauseKind.STEP: ("visit",),
    CauseKind.DEADLINE: ("visit",),
    CauseKind.STEP_FAILED: ("visit",),
    CauseKind.PARENT: ("visit",),
    CauseKind.SETTLED: ("event", "visit"),
}
"""The tables whose new keys the causes of a kind name."""


def _definition(name: PinnedDefinition, data: Any, known_graphs: dict[str, str]) -> int:
    """Return the key of the definition of a process, which must equal the definition in the running code.

    Args:
        name: the exported definition.
        data: the data of the process.
        known_graphs: the known fingerprints of static graphs.

    Raises:
        OperationRefused: the running code lacks the definition, or has another one of the same name and version.
    """
    known = registry.find_definition(name.name, name.version)
    fingerprint, key = _current(known, data, known_graphs)
    if fingerprint != name.fingerprint or known.kind != name.kind:
        raise OperationRefused(
            "%(name)s version %(version)s is another one here than the one it ran on (fingerprint %(here)s, not "
            "%(there)s): run the code that it ran on, or migrate it there",
            name.name,
            name.version,
            fingerprint[:12],
            ascii(name.fingerprint[:12]),
        )
    return key()


def _current(
    known: registry.DefinitionClass, data: Any, known_graphs: dict[str, str]
) -> tuple[str, Callable[[], int]]:
    """Return the fingerprint of a definition in the running code, and what finds or stores its row."""
    if issubclass(known, Workflow) and known.static is None:
        pin = definitions.make_pin(known, decode(known.Input, data))
        return str((pin.columns or {}).get("fingerprint")), pin.row
    said = f"{known.name} {known.version}"
    if said not in known_graphs:
        known_graphs[said] = known.graph().fingerprint()
    return known_graphs[said], partial(definitions.row_key, known)
