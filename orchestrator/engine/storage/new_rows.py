"""The values of new rows as SQL."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from django.db.models import Field, JSONField, Model

from orchestrator.engine.storage.batch import Later

Prepare = Callable[[Any, Any], Any]
"""Makes a value fit for a connection's database."""


class NewValue(NamedTuple):
    """One value of one row: its text, and its parameter if it has one."""

    sql: str
    params: tuple[Any, ...] = ()


class NewColumn:
    """How the values of one column are written.

    Args:
        field: the column.
        prepare: how a value is made fit for the database.
        db: a connection to it.
    """

    def __init__(self, field: Field[Any, Any], prepare: Prepare, db: Any) -> None:
        self.field, self._prepare = field, prepare
        self.attname = str(field.attname)
        self.name = str(db.ops.quote_name(field.column))
        self._given, self._null = "%s", "NULL"
        if db.vendor == "postgresql":
            # Of a query's columns nothing else says the types. A length would cut off what is too long.
            kind = str(field.db_type(db)).partition("(")[0]
            self._given, self._null = f"CAST(%s AS {kind})", f"CAST(NULL AS {kind})"

    def cell(self, value: Any, db: Any) -> NewValue:
        """One value of it."""
        if value is None:
            return NewValue(self._null)
        text = plain_text(self.field, value)
        return (
            NewValue(text)
            if text
            else NewValue(self._given, (self._prepare(value, db),))
        )


class NewRows:
    """New rows as a query, so that a condition can say which of them are inserted."""

    def __init__(self, columns: Sequence[NewColumn]) -> None:
        self.columns = columns
        self.names = ", ".join(column.name for column in columns)

    def query(self, objects: Sequence[Model], db: Any) -> tuple[str, list[Any]]:
        """The query, and its parameters; of several rows `place` is their order.

        What is the same in all is sent once.
        """
        picked: list[str] = []
        params: list[Any] = []
        different: list[list[NewValue]] = []
        for column in self.columns:
            values = [getattr(item, column.attname) for item in objects]
            if all(value == values[0] for value in values[1:]):
                cell = column.cell(values[0], db)
                text = cell.sql
                params += cell.params
            else:
                different.append([column.cell(value, db) for value in values])
                text = f"column{len(different) + 1}"
            picked.append(f"{text} AS {column.name}")
        if len(objects) == 1:
            return f"SELECT {', '.join(picked)}", params
        rows = []
        for place, *cells in zip(range(len(objects)), *different, strict=True):
            rows.append(f"({', '.join([str(place), *(cell.sql for cell in cells)])})")
            params += [param for cell in cells for param in cell.params]
        picked.append("column1 AS place")
        return (
            f"SELECT {', '.join(picked)} FROM (VALUES {', '.join(rows)}) AS given",  # noqa: S608  # names are the model's
            params,
        )


def as_it_is(value: Any, db: Any) -> Any:
    return value


PLAIN = frozenset(("", 0, 1))
"""The commonest values, which are parts of a statement instead of its parameters."""


def plain_text(field: Field[Any, Any], value: Any) -> str | None:
    """How the commonest values are written in SQL: a statement with fewer parameters is sent and read faster."""
    if value is None:
        return "NULL"
    kind = type(value)
    if kind is Later:
        return str(value.sql)
    if kind not in (str, int, bool) or value not in PLAIN:
        return None
    if value is True or isinstance(field, JSONField):
        return None
    return "FALSE" if value is False else str(value) or "''"
