"""The tables that the engine writes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, cached_property
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Model

from orchestrator.definition.declarations.outside_ids import (
    MOST,
    Identifier,
    identifiers,
)
from orchestrator.definition.declarations.process_definition import ProcessDefinition
from orchestrator.engine.sql.batch import NOW, Statement, Touched, database_now
from orchestrator.engine.sql.json_rows import JsonColumn
from orchestrator.engine.sql.row_objects import read_row
from orchestrator.engine.sql.row_statements import Condition
from orchestrator.engine.sql.step_table import StepTable
from orchestrator.engine.sql.table import Table
from orchestrator.exceptions import KeyTaken, LeaseLost
from orchestrator.models import (
    BulkItem,
    BulkOperation,
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    Occurrence,
    OperatorAction,
    OutsideId,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)

T = TypeVar("T")

UNDECIDED = "wake_at IS NOT NULL AND handled_at IS NULL"
UNDECIDED_OF_KEY = f"{UNDECIDED} AND NOT (correlation_key = '')"
"""The conditions of the indexes of undecided events, word by word: else SQLite does not use the indexes."""

BY_ID = Condition(f" AND {UNDECIDED}", ())
BY_KEY = Condition(f" AND {UNDECIDED_OF_KEY}", ())
"""The undecided events of one process, found through the index of its id or of its key."""


class EventTable(Table[InboxEvent]):
    """The statements of the inbox, whose events are claimed in the order of their receipts.

    An event comes after all earlier undecided events of its process, whether they name the process by its id or by its
    key. Events name a process that does not exist yet by the same id or key; the event that starts it has both. The
    model defines undecided events and their indexes.
    """

    def __init__(self) -> None:
        super().__init__(InboxEvent)

    def besides(
        self, ids: Collection[UUID], keys: Collection[tuple[str, str]]
    ) -> Condition:
        """Return the condition that excludes the events of some processes, by id, or by target and correlation key."""
        sql, params = "", list[Any]()
        if ids:
            known = _padded(ids)
            marks = ", ".join(["%s"] * len(known))
            sql += f" AND (process_id IS NULL OR process_id NOT IN ({marks}))"
            params += [self._param(self.fields["process_id"], one) for one in known]
        if keys:
            pairs = _padded(keys)
            rows = ", ".join(["(%s, %s)"] * len(pairs))
            sql += f" AND (target, correlation_key) NOT IN (VALUES {rows})"
            params += [text for pair in pairs for text in pair]
        return Condition(sql, tuple(params))

    @cache  # noqa: B019  # there is one, for the life of the process
    def _ahead(self, vendor: str, limit: int) -> str:
        """The column with the keys of older undecided events of a claimed event's process, at most a batch."""
        this, process = self.name, f'"{ProcessInstance._meta.db_table}"'
        # SQLite finds nothing by index for a column of the row that it returns, only for an expression.
        its = f"+{this}" if vendor == "sqlite" else this
        live = (
            f"(SELECT p.id FROM {process} AS p WHERE p.name = {its}.target AND p.finished_at IS NULL"  # noqa: S608  # names are the models'
            f" AND p.correlation_key = {its}.correlation_key AND NOT (p.correlation_key = ''))"
        )
        own = f"FROM {process} AS p WHERE p.id = {its}.process_id"
        by_id = f"process_id = COALESCE({this}.process_id, {live}) AND {UNDECIDED}"
        by_key = (
            f"target = COALESCE((SELECT p.name {own}), {this}.target) AND {UNDECIDED_OF_KEY}"
            f" AND correlation_key = COALESCE((SELECT p.correlation_key {own}), {this}.correlation_key)"
        )
        found = " UNION ".join(
            f"SELECT * FROM (SELECT id FROM {this} AS older WHERE {same} AND older.id < {this}.id"  # noqa: S608  # names are the models'
            f" ORDER BY id LIMIT {limit}) AS {name}"
            for name, same in (("by_id", by_id), ("by_key", by_key))
        )
        keys = "GROUP_CONCAT(id)"
        if vendor == "postgresql":
            keys = "STRING_AGG(id::text, ',')"
        return f", (SELECT {keys} FROM ({found}) AS ahead)"  # noqa: S608  # names are the models'


def _padded(values: Collection[T]) -> list[T]:
    """The values, with the last one repeated up to a power of two, so that few different statements exist."""
    found = list(values)
    return found + found[-1:] * ((1 << (len(found) - 1).bit_length()) - len(found))


IN_LINE = Condition(" AND wake_at IS NOT NULL AND NOT (line = '')", ())
"""The unsettled reactions of one line, found through their index."""


class CommandTable(Table[IssuedCommand]):
    """The statements of the commands; the reactions of one line are claimed in the order of their events."""

    def __init__(self) -> None:
        super().__init__(IssuedCommand)

    @property
    def in_order(self) -> Condition:
        """The condition of commands that may be claimed: no worker has claimed one before them in their line."""
        this = self.name
        before = (
            f"SELECT 1 FROM {this} AS older WHERE older.type = {this}.type AND older.line = {this}.line"  # noqa: S608  # names are the model's
            f" AND older.wake_at IS NOT NULL AND NOT (older.line = '') AND NOT older.owner = ''"
            f" AND (older.issued_at, older.id) < ({this}.issued_at, {this}.id)"
        )
        return Condition(f" AND (line = '' OR NOT EXISTS ({before}))", ())

    def place(self, row: IssuedCommand) -> Any:
        return row.issued_at, row.pk

    def _of_new(self, column: JsonColumn) -> str:
        """A reaction is issued after the unsettled ones of its line, also where the clock has gone back meanwhile."""
        if column.column.field.name != "issued_at":
            return super()._of_new(column)
        last = (
            f"SELECT older.issued_at AS at FROM {self.name} AS older WHERE older.type = new.type"  # noqa: S608  # names are the model's
            " AND older.line = new.line AND older.wake_at IS NOT NULL AND NOT (older.line = '')"
            " ORDER BY older.issued_at DESC LIMIT 1"
        )
        if connection.vendor == "postgresql":
            tick = "(new.place + 1) * INTERVAL '1 microsecond'"
            return f"GREATEST(new.issued_at, ({last}) + {tick})"
        # SQLite calculates in milliseconds: the microseconds are a number of their own.
        ticks = "SUBSTR(at || '.000000', 21, 6) + new.place + 1"
        second = f"DATETIME(SUBSTR(at, 1, 19), (({ticks}) / 1000000) || ' seconds')"
        later = f"{second} || PRINTF('.%%06d', ({ticks}) %% 1000000)"
        return f"MAX(new.issued_at, COALESCE((SELECT {later} FROM ({last})), ''))"  # noqa: S608  # names are the model's


MOST_FIELDS = 50
"""The most fields whose ids are read for one process; no definition has more."""


class OutsideIdTable(Table[OutsideId]):
    """The statements of the outside ids."""

    def __init__(self) -> None:
        super().__init__(OutsideId)

    def changes(
        self,
        definition: type[ProcessDefinition],
        process: ProcessInstance,
        was: Mapping[str, Any],
        now: Mapping[str, Any],
    ) -> list[Statement]:
        """Return the writes by which a process's outside ids follow its data; none where nothing changes.

        Args:
            definition: the definition, with the fields of its outside ids.
            process: the process.
            was: the stored data; empty for a new process.
            now: the new data.
        """
        if not definition.outside_ids:
            return []
        before = identifiers(definition.outside_ids, was)
        return self._replaced(process, before, identifiers(definition.outside_ids, now))

    def renewals(
        self,
        process: ProcessInstance,
        definition: type[ProcessDefinition],
        now: Mapping[str, Any],
    ) -> list[Statement]:
        """Return the same after a change of the definition: the stored ids are read from the table.

        Args:
            process: the process.
            definition: the new definition, with the fields of its outside ids.
            now: the process's data.
        """
        rows = OutsideId.objects.filter(instance=process.pk)
        stored = rows.values_list("field", "value")[: MOST * MOST_FIELDS]
        before = dict.fromkeys(Identifier(*row) for row in stored)
        return self._replaced(process, before, identifiers(definition.outside_ids, now))

    def _replaced(
        self,
        process: ProcessInstance,
        before: Mapping[Identifier, None],
        after: Mapping[Identifier, None],
    ) -> list[Statement]:
        gone = [one for one in before if one not in after]
        new = [one for one in after if one not in before]
        removal = [self._removed(process.pk, gone)] if gone else []
        rows = outside_id_rows(process.pk, process.started_at, new)
        return [*removal, *self.inserts(list(rows))]

    def _removed(self, process: UUID, gone: list[Identifier]) -> Statement:
        marks = ", ".join(["(%s, %s)"] * len(gone))
        return Statement(
            f"DELETE FROM {self.name} WHERE instance_id = %s AND (field, value) IN (VALUES {marks})",  # noqa: S608  # names are the model's
            [
                self._param(self.fields["instance"], process),
                *(part for one in gone for part in one),
            ],
            Touched(self.table, "keys", frozenset((process, *one) for one in gone)),
        )


def outside_id_rows(
    process: UUID, started_at: datetime, ids: Iterable[Identifier]
) -> Iterable[OutsideId]:
    """Return new rows of a process, given its key and its start."""
    of_process = {"instance_id": process, "process_started_at": started_at}
    return (OutsideId(field=f, value=v, **of_process) for f, v in ids)


class InstanceTable(Table[ProcessInstance]):
    """The statements of the processes: a lock reads few bytes, however large the process's input is.

    A process manager's data decides its next event, and is read with the row. A workflow's data is its input, which
    never changes: it is cached (`inputs`), and read only when a step asks for it.
    """

    def __init__(self) -> None:
        super().__init__(ProcessInstance)
        self._data = self.attnames.index("data")
        self._others = [name for name in self.attnames if name != "data"]

    def check_free(self, name: str, *keys: str) -> None:
        """Check that correlation keys are free, as a constraint of the table would.

        Args:
            name: the definition's name.
            keys: the correlation keys; "" is always free.

        Raises:
            KeyTaken: a live process of the definition has one of the keys.
        """
        given = [key for key in keys if key]
        if not given:
            return
        same = self.model.objects.live().filter(name=name, correlation_key__in=given)
        holder = same.values_list("correlation_key", "pk").first()
        if holder is not None:
            raise KeyTaken(name, *holder)

    def lock_live(self, pk: UUID) -> tuple[ProcessInstance, datetime]:
        """Return a live process, locked, and the database's time.

        Raises:
            LeaseLost: the process has ended, or is gone.
        """
        instance, now = self.lock(pk)
        if instance is None or instance.finished_at is not None:
            raise LeaseLost("the process has ended")
        return instance, now

    def read_live(
        self, name: str, keys: Collection[str]
    ) -> tuple[dict[str, ProcessInstance], datetime | None]:
        """Return a definition's live processes by their keys, not locked, and the time; None if there are none."""
        vendor = connection.vendor
        given = [list(keys)] if vendor == "postgresql" else _padded(keys)
        # Not prepared: PostgreSQL would cache the plan of a small table, and read the whole table ever after.
        with connection.cursor() as cursor:
            cursor.execute(self._live_rows(vendor, len(given)), [name, *given])
            rows = cursor.fetchall()
        known = {item.correlation_key: item for item in map(self._object, rows)}
        if vendor != "postgresql":
            return known, database_now()
        return known, rows[0][-1] if rows else None

    @cache  # noqa: B019  # there is one, for the life of the process
    def _live_rows(self, vendor: str, number: int) -> str:
        these, now = f"IN ({', '.join(['%s'] * number)})", ""
        if vendor == "postgresql":
            these, now = "= ANY(%s)", f", {NOW}"
        # The conditions besides name and key are those of the index, word by word: else SQLite does not use it.
        return (
            f"SELECT {self._listed}{now} FROM {self.name} WHERE name = %s AND correlation_key {these}"  # noqa: S608  # names are the model's
            " AND finished_at IS NULL AND NOT (correlation_key = '')"
        )

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
        return read_row(self.model, self._others, values)


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
step_runs = StepTable()
joins = JoinTable()
checkpoints = Table(Checkpoint)
commands = CommandTable()
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
