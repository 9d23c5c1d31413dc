"""The SQL of the hot path, compiled once for each model and shape; a queryset would build it anew each time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Generic, TypeVar

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Field, Model

from orchestrator.engine.sql.batch import (
    NOW,
    Statement,
    Touched,
    chunks,
    database_now,
    prepared_cursor,
)
from orchestrator.engine.sql.json_rows import JsonColumn, JsonRows, RowsWrite, recordset
from orchestrator.engine.sql.row_objects import read_row
from orchestrator.engine.sql.row_statements import (
    ALL,
    PLAIN_TYPES,
    Condition,
    Insert,
    Update,
    plain_text,
)

CHUNK = 100
"""The most rows in one insert."""

M = TypeVar("M", bound=Model)

Texts = tuple[tuple[str, str | None], ...]
"""Columns that are set, with the SQL of a value that is a part of the statement."""

Nulls = tuple[tuple[str, bool], ...]
"""Columns that are compared, with whether they are to be null."""

Prepare = Callable[[Any, Any], Any]
"""Converts a value for a connection's database."""


@dataclass(frozen=True)
class Claimed(Generic[M]):
    """A claimed row, and the keys of rows that must be settled before it."""

    work: M
    ahead: frozenset[int] = frozenset()


class Table(Generic[M]):
    """The compiled statements of one model, for the default database."""

    def __init__(self, model: type[M]) -> None:
        self.model = model
        self._pk: Field[Any, Any] = model._meta.pk
        self.fields: dict[str, Field[Any, Any]] = {
            name: field
            for field in model._meta.concrete_fields
            for name in (field.attname, field.name)
        }
        self.columns = list(model._meta.concrete_fields)
        self.table = model._meta.db_table
        self.attnames = tuple(field.attname for field in self.columns)
        self.unkeyed = [field for field in self.columns if not field.primary_key]
        self.unkeyed_attnames = tuple(field.attname for field in self.unkeyed)

    def insert(self, *objects: M) -> Insert:
        """Return an insert of new rows; the database makes an automatic key."""
        return Insert(self, objects)

    def compiled_insert(self, objects: Sequence[M]) -> tuple[str, list[Any]]:
        """Return the SQL and the parameters of an insert."""
        # The wrapper itself: `connection` looks it up at every attribute.
        db = connections[DEFAULT_DB_ALIAS]
        keyed = objects[0].pk is not None
        fields = self.columns if keyed else self.unkeyed
        rows = [[getattr(item, field.attname) for field in fields] for item in objects]
        plain: tuple[str | None, ...] = (None,) * len(fields)
        if len(rows) == 1:
            plain = tuple(map(plain_text, fields, rows[0]))
        prepare = self._prepared(db.vendor)
        params = [
            prepare[field](value, db)
            for row in rows
            for field, value, text in zip(fields, row, plain, strict=True)
            if text is None
        ]
        return self._insert(len(rows), keyed, plain), params

    def inserts(self, objects: Sequence[M]) -> list[Statement]:
        """Return inserts of any number of new rows, CHUNK rows each."""
        return [self.insert(*some) for some in chunks(objects, CHUNK)]

    def insert_known(self, *items: M) -> Insert:
        """Return an insert that also gives the objects their keys, for work that goes on with them."""
        return Insert(self, items, known=True)

    def insert_if(
        self,
        objects: Sequence[M],
        which: Condition,
        into: list[Any],
        rows_hit: int | None = None,
    ) -> Statement:
        """Return an insert of the new rows that meet a condition and no unique constraint forbids, in order.

        Args:
            objects: the rows; the database makes the keys of rows without one.
            which: the condition, in which `new` is the row.
            into: the list that gets the keys of the inserted rows.
            rows_hit: the number of rows that must be inserted, None for any number.
        """
        rows = JsonRows(len(objects))
        columns = RowsWrite.of([self.insert(*objects)], rows).columns
        text = self._insert_if(columns, which.sql)

        def receive(found: list[Any]) -> None:
            into.extend(key for (key,) in found)

        touched = Touched(self.table, "insert")
        params = [rows.text(), *which.params]
        return Statement(text, params, touched, rows_hit, receive)

    @cache  # noqa: B019  # there is one Table a model, for the life of the process
    def _insert_if(self, columns: tuple[JsonColumn, ...], which: str) -> str:
        names = ", ".join(column.quoted for column in columns)
        new = ", ".join(f"{one.typed('given')} AS {one.quoted}" for one in columns)
        stored = ", ".join(self._of_new(column) for column in columns)
        return (
            f"INSERT INTO {self.name} ({names}) SELECT {stored} FROM"  # noqa: S608  # names are the model's
            f" (SELECT given.place, {new} FROM {recordset(columns)}) AS new WHERE TRUE{which}"
            f" ORDER BY place ON CONFLICT DO NOTHING RETURNING {self.key}"
        )

    def _of_new(self, column: JsonColumn) -> str:
        """The SQL of a column's value in the row `new`, which is about to be inserted; `new.place` counts from 0."""
        return column.quoted

    @cache  # noqa: B019  # there is one Table a model, for the life of the process
    def _insert(self, count: int, keyed: bool, plain: tuple[str | None, ...]) -> str:
        fields = self.columns if keyed else self.unkeyed
        names = ", ".join(self._column(field) for field in fields)
        row = f"({', '.join(text or '%s' for text in plain)})"
        return f"INSERT INTO {self.name} ({names}) VALUES {', '.join([row] * count)}"  # noqa: S608  # names are the model's

    def update(
        self,
        values: Mapping[str, Any],
        where: Mapping[str, Any],
        rows: int | None = 1,
        which: Condition = ALL,
    ) -> Update:
        """Return an update of the rows with the values of `where`; None there means "is null"."""
        return Update(self, values, where, rows, which)

    def compiled_update(
        self, values: Mapping[str, Any], where: Mapping[str, Any], which: Condition
    ) -> tuple[str, list[Any]]:
        """Return the SQL and the parameters of an update."""
        db = connections[DEFAULT_DB_ALIAS]
        sets, params = self._set(values, db)
        nulls, compared = self._compared(where, db)
        text = self._update(sets, nulls) + which.sql
        return text, [*params, *compared, *which.params]

    def _set(self, values: Mapping[str, Any], db: Any) -> tuple[Texts, list[Any]]:
        """The columns that are set, with the SQL of plain values, and the parameters of the others."""
        fields, prepare = self.fields, self._prepared(db.vendor)
        sets = tuple((n, plain_text(fields[n], value)) for n, value in values.items())
        params = [
            prepare[fields[name]](values[name], db)
            for name, text in sets
            if text is None
        ]
        return sets, params

    def _compared(self, where: Mapping[str, Any], db: Any) -> tuple[Nulls, list[Any]]:
        """The columns that are compared, each with whether it must be null, and the parameters of the others."""
        fields, prepare = self.fields, self._prepared(db.vendor)
        nulls = tuple((name, value is None) for name, value in where.items())
        params = [
            prepare[fields[name]](where[name], db) for name, null in nulls if not null
        ]
        return nulls, params

    def keyed(self, keys: Sequence[Any], *, but_for: bool = False) -> Condition:
        """Return the condition of the rows with these keys, or of all others."""
        marks = ", ".join(["%s"] * len(keys))
        sql = f" AND {self.key} {'NOT ' * but_for}IN ({marks})"
        return Condition(sql, tuple(self._param(self._pk, key) for key in keys))

    def but_for(self, field: str, values: Sequence[Any]) -> Condition:
        """Return the condition that excludes rows whose field has one of these values."""
        if not values:
            return ALL
        marks = ", ".join(["%s"] * len(values))
        sql = f" AND {self._column(self.fields[field])} NOT IN ({marks})"
        return Condition(sql, tuple(values))

    @cache  # noqa: B019  # there is one Table a model, for the life of the process
    def _update(self, values: Texts, where: Nulls) -> str:
        return f"UPDATE {self.name} SET {self._assigned(values)} WHERE {self._conditions(where)}"  # noqa: S608  # names are the model's

    @cache  # noqa: B019  # there is one Table a model, for the life of the process
    def _prepared(self, vendor: str) -> dict[Field[Any, Any], Prepare]:
        """The conversion of each field's values for the database; psycopg takes most as they are."""
        return {
            field: _as_it_is
            if vendor == "postgresql" and field.get_internal_type() in PLAIN_TYPES
            else field.get_db_prep_save
            for field in self.columns
        }

    def lock(self, pk: Any) -> tuple[M | None, datetime]:
        """Return a row, locked until the transaction ends, and the database's time; None and the time for no key."""
        postgresql = connection.vendor == "postgresql"  # SQLite locks by transaction
        return self._one(pk, "= %s FOR UPDATE" if postgresql else "= %s")

    def read(self, pk: Any) -> tuple[M | None, datetime]:
        """Return a row, not locked, and the database's time."""
        return self._one(pk, "= %s")

    def _one(self, pk: Any, which: str) -> tuple[M | None, datetime]:
        vendor, row = connection.vendor, None
        if pk is not None:
            with prepared_cursor() as cursor:
                cursor.execute(self._read(vendor, which), [self._param(self._pk, pk)])
                row = cursor.fetchone()
        if row is None:
            return None, database_now()
        now = row[-1] if vendor == "postgresql" else database_now()
        return self._object(row), now

    def read_many(self, pks: Collection[Any]) -> tuple[dict[Any, M], datetime]:
        """Return the rows that exist, not locked, by their keys, and the database's time."""
        if connection.vendor != "postgresql":
            found = self.model._default_manager.filter(pk__in=pks)
            return {row.pk: row for row in found}, database_now()
        with prepared_cursor() as cursor:
            cursor.execute(self._read(connection.vendor, "= ANY(%s)"), [list(pks)])
            rows = cursor.fetchall()
        known = {item.pk: item for item in map(self._object, rows)}
        return known, rows[0][-1] if rows else database_now()

    @cache  # noqa: B019  # there is one Table a model, for the life of the process
    def _read(self, vendor: str, which: str) -> str:
        """The query of the rows whose key meets a condition; PostgreSQL adds its time."""
        now = f", {NOW}" if vendor == "postgresql" else ""
        return f"SELECT {self._listed}{now} FROM {self.name} WHERE {self.key} {which}"  # noqa: S608  # names are the model's

    def last(self, where: Mapping[str, Any], by: str) -> M | None:
        """Return the last row by a column, of those with the values of `where`; None there means "is null"."""
        nulls, params = self._compared(where, connections[DEFAULT_DB_ALIAS])
        with prepared_cursor() as cursor:
            cursor.execute(self._last(nulls, by), params)
            row = cursor.fetchone()
        return None if row is None else self._object(row)

    @cache  # noqa: B019  # there is one Table a model, for the life of the process
    def _last(self, where: Nulls, by: str) -> str:
        these, order = self._conditions(where), self._column(self.fields[by])
        return f"SELECT {self._listed} FROM {self.name} WHERE {these} ORDER BY {order} DESC LIMIT 1"  # noqa: S608  # names are the model's

    def claim(
        self,
        queue: str,
        owner: str,
        limit: int,
        lease: float,
        which: Condition = ALL,
        /,
        **values: Any,
    ) -> list[Claimed[M]]:
        """Claim due rows of a queue, oldest first: raise the attempt, and set owner and lease.

        Args:
            queue: the queue.
            owner: this worker's boot id.
            limit: the most rows.
            lease: seconds until another worker may claim them.
            which: a further condition on the rows.
            values: further columns to set.
        """
        vendor, now = connection.vendor, datetime.now(UTC)
        term = timedelta(seconds=lease)
        sets, extra = self._set(values, connections[DEFAULT_DB_ALIAS])
        if vendor == "postgresql":
            params: list[Any] = [owner, term, *extra, queue, *which.params, limit]
        else:
            moments = (now, now + term)
            now_, ends = map(connection.ops.adapt_datetimefield_value, moments)
            params = [owner, ends, *extra, queue, now_, *which.params, limit]
        with prepared_cursor() as cursor:
            cursor.execute(self._claim(vendor, sets, limit, which.sql), params)
            rows = cursor.fetchall()
        taken = (Claimed(self._object(row), self._keys(row)) for row in rows)
        return sorted(taken, key=lambda claimed: self.place(claimed.work))

    def place(self, row: M) -> Any:
        """Return what decides about the order of claimed rows."""
        return row.pk

    @cache  # noqa: B019  # there is one Table a model, for the life of the process
    def _claim(self, vendor: str, values: Texts, limit: int, which: str) -> str:
        postgresql = vendor == "postgresql"
        now, ends = (NOW, f"{NOW} + %s") if postgresql else ("%s", "%s")
        more = f", {self._assigned(values)}" if values else ""
        due = (
            f"SELECT {self.key} FROM {self.name} WHERE queue = %s AND wake_at <= {now}{which}"  # noqa: S608  # names are the model's
            f" ORDER BY wake_at, {self.key} LIMIT %s"
            f"{' FOR UPDATE SKIP LOCKED' if postgresql else ''}"
        )
        # PostgreSQL evaluates an array once. It may evaluate a subquery again for each row of a table that it takes for
        # small, each time with other keys, as the rows before are claimed: that would claim more than the limit.
        these = f"= ANY(ARRAY({due}))" if postgresql else f"IN ({due})"
        return (
            f"UPDATE {self.name}"  # noqa: S608  # names are the model's
            f" SET attempt = attempt + 1, owner = %s, wake_at = {ends}{more}"
            f" WHERE {self.key} {these} RETURNING {self._listed}{self._ahead(vendor, limit)}"
        )

    def _assigned(self, values: Texts) -> str:
        """The SQL that sets values: plain ones as text, the others as parameters."""
        return ", ".join(
            f"{self._column(self.fields[name])} = {text or '%s'}"
            for name, text in values
        )

    def _conditions(self, where: Nulls) -> str:
        """The SQL of the condition that rows have values, or null."""
        found = (
            f"{self._column(self.fields[name])} {'IS NULL' if null else '= %s'}"
            for name, null in where
        )
        return " AND ".join(found) or "TRUE"

    def _ahead(self, vendor: str, limit: int) -> str:
        """The SQL of a further column in a table with an order: the keys ahead of a claimed row, in one text."""
        return ""

    def _keys(self, row: Sequence[Any]) -> frozenset[int]:
        """The keys in the further column of a claimed row."""
        ahead = row[len(self.columns) :]
        return frozenset(map(int, ahead[0].split(","))) if any(ahead) else frozenset()

    @property
    def name(self) -> str:
        return connection.ops.quote_name(self.model._meta.db_table)

    @property
    def key(self) -> str:
        return self._column(self._pk)

    @property
    def _listed(self) -> str:
        return ", ".join(self._column(field) for field in self.columns)

    def _column(self, field: Field[Any, Any]) -> str:
        return connection.ops.quote_name(str(field.column))

    def _param(self, field: Field[Any, Any], value: Any) -> Any:
        return field.get_db_prep_save(value, connection)

    def _object(self, row: Sequence[Any]) -> M:
        return read_row(self.model, self.attnames, self._values(row))

    def _values(self, row: Sequence[Any]) -> list[Any]:
        """The values of a row's columns, converted for the model."""
        db = connections[DEFAULT_DB_ALIAS]
        values = list(row[: len(self.columns)])
        for place, expression, converters in self._converters(db.vendor):
            for convert in converters:
                values[place] = convert(values[place], expression, db)
        return values

    @cache  # noqa: B019  # there is one Table a model, for the life of the process
    def _converters(self, vendor: str) -> list[tuple[int, Any, list[Any]]]:
        """The columns whose values need a conversion: place, expression and functions."""
        found = []
        for place, field in enumerate(self.columns):
            col = field.get_col(self.model._meta.db_table)
            converters = [
                *connection.ops.get_db_converters(col),
                *col.get_db_converters(connection),
            ]
            if converters:
                found.append((place, col, converters))
        return found


def _as_it_is(value: Any, db: Any) -> Any:
    return value
