"""The tables that the engine writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model

from orchestrator.engine.storage.event_table import EventTable
from orchestrator.engine.storage.outside_id_table import OutsideIdTable
from orchestrator.engine.storage.table import Table
from orchestrator.exceptions import KeyTaken, LeaseLost
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    Checkpoint,
    Incident,
    IssuedCommand,
    Occurrence,
    OperatorAction,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)


class InstanceTable(Table[ProcessInstance]):
    """The statements of the processes: what a lock or a claim reads of one is small, however large its input is.

    The data of a process manager is what its next event is decided with, and is read with the row. A workflow's is its
    input: it never changes, is kept by whoever has read it (`inputs`), and so is read only when it is asked for.
    """

    def __init__(self) -> None:
        super().__init__(ProcessInstance)
        self._data = self.attnames.index("data")
        self._others = [name for name in self.attnames if name != "data"]

    def check_free(self, name: str, key: str) -> None:
        """Says which live process stands in the way of another one with its key, as a constraint of the table would.

        Args:
            name: of the definition.
            key: the correlation key; "" belongs to no process.

        Raises:
            KeyTaken: a live process of the definition has it.
        """
        if not key:
            return
        same = self.model.objects.live().filter(name=name, correlation_key=key)
        holder = same.values_list("pk", flat=True).first()
        if holder is not None:
            raise KeyTaken(name, key, holder)

    def lock_live(self, pk: UUID) -> tuple[ProcessInstance, datetime]:
        """A process that has not ended, locked, and the database's time.

        Raises:
            LeaseLost: it has ended, or is gone.
        """
        instance, now = self.lock(pk)
        if instance is None or instance.finished_at is not None:
            raise LeaseLost("the process has ended")
        return instance, now

    @property
    def _listed(self) -> str:
        """Without the data where steps are open, which only a live workflow counts."""
        names = [self._column(field) for field in self.columns]
        names[self._data] = f"CASE WHEN open_steps = 0 THEN {names[self._data]} END"
        return ", ".join(names)

    def _object(self, row: Sequence[Any]) -> ProcessInstance:
        if row[self._data] is not None:
            return super()._object(row)
        values = self._values(row)
        del values[self._data]
        return self.model.from_db(DEFAULT_DB_ALIAS, self._others, values)


READ = {
    "id",
    "instance",
    "node",
    "kind",
    "visit",
    "item",
    "round",
    "redo",
    "status",
    "arrived",
    "taken",
    "progress",
    "error",
    "child",
    "finished_at",
}
"""By which columns it is decided how a join stands, and what becomes of one that is over."""


class JoinTable(Table[StepRun]):
    """How joins are read: without what their steps were given or have found, which may be large.

    Nearly every step of a graph asks for some, and so it is written out once: through a queryset's methods it takes
    five times as long, a third of all that such a step takes. They are written like all visits.
    """

    def __init__(self) -> None:
        super().__init__(StepRun)
        self.columns = [field for field in self.columns if field.name in READ]
        self.attnames = tuple(field.attname for field in self.columns)

    def of(self, process: UUID, names: Sequence[str]) -> dict[str, StepRun]:
        """The last rows of these steps of a process, as far as they have any."""
        key = self._param(self.fields["instance_id"], process)
        postgresql = connection.vendor == "postgresql"
        these = "= ANY(%s)" if postgresql else f"IN ({', '.join(['%s'] * len(names))})"
        given: list[Any] = [list(names)] if postgresql else list(names)
        # Not prepared: it would be planned once, while the table is small, and read all of it ever after.
        with connection.cursor() as cursor:
            cursor.execute(
                f"{self._rows} AND node {these} ORDER BY round", [key, *given]
            )
            rows = cursor.fetchall()
        return {row.node: row for row in map(self._object, rows)}

    @cached_property
    def _rows(self) -> str:
        # What is said of the kind twice is the condition of the index.
        return (
            f"SELECT {self._listed} FROM {self.name} WHERE instance_id = %s"  # noqa: S608  # names are the model's
            f" AND visit = 1 AND item IS NULL AND NOT (kind = '') AND kind <> '{StepKind.UNDO}' AND NOT redo"
            f" AND status <> '{StepStatus.SUPERSEDED}'"
        )


instances = InstanceTable()
outside_ids = OutsideIdTable()
step_runs = Table(StepRun)
joins = JoinTable()
checkpoints = Table(Checkpoint)
commands = Table(IssuedCommand)
events = EventTable()
incidents = Table(Incident)
occurrences = Table(Occurrence)
bulk_operations = Table(BulkOperation)
bulk_items = Table(BulkItem)
operator_actions = Table(OperatorAction)

WORK: tuple[Table[Any], ...] = (events, commands, step_runs, bulk_operations)
"""The tables of what workers claim."""


def table_of(row: Model) -> Table[Any]:
    """The table that a row belongs to."""
    return TABLES[type(row)]


TABLES: dict[type[Model], Table[Any]] = {
    table.model: table for table in (instances, step_runs, commands, events)
}
