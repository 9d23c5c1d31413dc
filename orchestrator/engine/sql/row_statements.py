"""Writes that keep their rows until they are sent, so that writes of several changes can be merged before."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Field, JSONField, Model

from orchestrator.engine.sql.batch import Later, Raw, Statement, Touched

WrittenTable = Any
"""The `Table` whose rows are written; `table` imports this module, so its class cannot be named here."""


class Condition(NamedTuple):
    """A further condition on the rows of a statement: SQL that begins with AND, and its parameters."""

    sql: str
    params: tuple[Any, ...]


ALL = Condition("", ())


class RowStatement(Statement):
    """A write of one table's rows; its SQL is made only when it is sent by itself."""

    __slots__ = ()

    @property
    def sql(self) -> str:
        return self._text()[0]

    @property
    def params(self) -> Sequence[Any]:
        return self._text()[1]

    def _text(self) -> tuple[str, Sequence[Any]]:
        if not self._sql:
            self._sql, self._params = self._compiled()
        return self._sql, self._params

    @abstractmethod
    def _compiled(self) -> tuple[str, Sequence[Any]]:
        """Compile its SQL and its parameters."""


class Insert(RowStatement):
    """New rows of one table.

    Args:
        table: the table.
        items: the rows; the database makes the automatic key of rows without one.
        known: whether the rows get their keys from the database's answer, in their order.
    """

    __slots__ = ("items", "known", "table")

    def __init__(
        self, table: WrittenTable, items: Sequence[Model], *, known: bool = False
    ) -> None:
        keys = [item.pk for item in items] if items[0].pk is not None else ()
        touched = Touched(table.table, "insert")
        super().__init__("", (), touched, None if known else len(items), None, keys)
        self.table, self.items, self.known = table, items, known
        if known:
            self.receive = self._receive

    @property
    def form(self) -> object:
        return self.table.table, self.known, self.items[0].pk is None

    def _receive(self, rows: list[Any]) -> None:
        for item, (key,) in zip(self.items, rows, strict=True):
            item.pk = key

    def _compiled(self) -> tuple[str, Sequence[Any]]:
        sql, params = self.table.compiled_insert(self.items)
        return f"{sql} RETURNING {self.table.key}" if self.known else sql, params


class Update(RowStatement):
    """Values set in rows of one table.

    Args:
        table: the table.
        values: the values that are set.
        where: the values that a row must have.
        rows: the number of rows that it must hit.
        which: a further condition on the rows.
    """

    __slots__ = ("table", "values", "where", "which")

    def __init__(
        self,
        table: WrittenTable,
        values: Mapping[str, Any],
        where: Mapping[str, Any],
        rows: int | None,
        which: Condition,
    ) -> None:
        key = where.get("id")
        how = Touched(table.table, "condition")
        if key is not None:
            how = Touched(table.table, "key", key)
        super().__init__("", (), how, rows)
        self.table, self.values, self.where, self.which = table, values, where, which

    @property
    def form(self) -> object:
        if self.which != ALL:
            return None
        nulls = tuple((name, value is None) for name, value in self.where.items())
        return self.table.table, self.rows, tuple(self.values), nulls

    def _compiled(self) -> tuple[str, Sequence[Any]]:
        sql, params = self.table.compiled_update(self.values, self.where, self.which)
        return sql, params


PLAIN = frozenset(("", 0, 1))
"""The commonest values, which are parts of a statement instead of its parameters."""

PLAIN_TYPES = {
    "AutoField",
    "BigAutoField",
    "BooleanField",
    "CharField",
    "DateTimeField",
    "ForeignKey",
    "PositiveIntegerField",
    "PositiveSmallIntegerField",
    "TextField",
    "UUIDField",
}
"""Kinds of fields whose values psycopg takes without a conversion."""


def plain_text(field: Field[Any, Any], value: Any) -> str | None:
    """Return the SQL of the commonest values: a statement with fewer parameters is sent and parsed faster."""
    if value is None:
        return "NULL"
    kind = type(value)
    if kind is Later or kind is Raw:
        return str(value.sql)
    if kind not in (str, int, bool) or value not in PLAIN:
        return None
    if value is True or isinstance(field, JSONField):
        return None
    return "FALSE" if value is False else str(value) or "''"
