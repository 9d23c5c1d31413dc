"""The tables that the engine writes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import Model

from orchestrator.engine.sql.event_table import EventTable
from orchestrator.engine.sql.outside_id_table import OutsideIdTable
from orchestrator.engine.sql.table import Table
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
    """The statements of the processes: a lock reads few bytes, however large the process's input is.

    A process manager's data decides its next event, and is read with the row. A workflow's data is its input, which
    never changes: it is cached (`inputs`), and read only when a step asks for it.
    """

    def __init__(self) -> None:
        super().__init__(ProcessInstance)
        self._data = self.attnames.index("data")
        self._others = [name for name in self.attnames if name != "data"]

    def check_free(self, name: str, key: str) -> None:
        """Check that a correlation key is free, as a constraint of the table would.

        Args:
            name: the definition's name.
            key: the correlation key; "" is always free.

        Raises:
            KeyTaken: a live process of the definition has the key.
        """
        if not key:
            return
        same = self.model.objects.live().filter(name=name, correlation_key=key)
        holder = same.values_list("pk", flat=True).first()
        if holder is not None:
            raise KeyTaken(name, key, holder)

    def lock_live(self, pk: UUID) -> tuple[ProcessInstance, datetime]:
        """Return a live process, locked, and the database's time.

        Raises:
            LeaseLost: the process has ended, or is gone.
        """
        instance, now = self.lock(pk)
        if instance is None or instance.finished_at is not None:
            raise LeaseLost("the process has ended")
        return instance, now

    @property
    def _listed(self) -> str:
        """The columns, without the data of a row with open steps: only a live workflow counts these."""
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
"""The columns of a join that decide about it."""


class JoinTable(Table[StepRun]):
    """Reads joins without their steps' elements and results, which may be large. `step_runs` writes them.

    Nearly every step of a graph reads some, so the SQL is written out: a queryset takes five times as long, a third of
    the whole time of such a step.
    """

    def __init__(self) -> None:
        super().__init__(StepRun)
        self.columns = [field for field in self.columns if field.name in READ]
        self.attnames = tuple(field.attname for field in self.columns)

    def of(self, process: UUID, names: Sequence[str]) -> dict[str, StepRun]:
        """Return the last rows of these steps of a process, by the steps' names."""
        key = self._param(self.fields["instance_id"], process)
        postgresql = connection.vendor == "postgresql"
        these = "= ANY(%s)" if postgresql else f"IN ({', '.join(['%s'] * len(names))})"
        given: list[Any] = [list(names)] if postgresql else list(names)
        # Not prepared: PostgreSQL would cache the plan of a small table, and read the whole table ever after.
        with connection.cursor() as cursor:
            cursor.execute(
                f"{self._rows} AND node {these} ORDER BY round", [key, *given]
            )
            rows = cursor.fetchall()
        return {row.node: row for row in map(self._object, rows)}

    @cached_property
    def _rows(self) -> str:
        # The second condition on the kind is that of the index.
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
"""The tables of the work that workers claim."""


def table_of(row: Model) -> Table[Any]:
    """Return the table that a row belongs to."""
    return TABLES[type(row)]


TABLES: dict[type[Model], Table[Any]] = {
    table.model: table for table in (instances, step_runs, commands, events)
}
