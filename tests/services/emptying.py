"""Empties the tables after a test whose commits were real: the ones with rows, by the way that is quick for few.

Django's own way truncates every table and makes permissions and content types anew, which takes longer than most tests.
"""

from functools import lru_cache
from typing import Any

from django.db import OperationalError, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test import TransactionTestCase

from orchestrator.engine.storage.receipts import TURNS, was_deadlock

KEPT = {"django_migrations", "django_content_type", "auth_permission"}
"""Tables that migrations fill and tests only read."""

FEW = 500
"""Rows of a table up to which deleting is quicker than truncating."""


def quicken() -> None:
    """Have Django's transactional tests end this way."""
    TransactionTestCase._fixture_teardown = _empty_all  # type: ignore[attr-defined]  # Django calls it its own


def _empty_all(case: TransactionTestCase) -> None:
    for alias in case._databases_names(include_mirrors=False):  # type: ignore[attr-defined]
        empty(connections[alias])


def empty(connection: BaseDatabaseWrapper) -> None:
    """Removes every row but those of the tables that are kept, once nobody is at them any more.

    A page that is still being read takes its tables in another order: where the two wait for each other, again.
    """
    for _ in range(TURNS):
        try:
            return _empty(connection)
        except OperationalError as error:
            if not was_deadlock(error):
                raise
    return _empty(connection)


def _empty(connection: BaseDatabaseWrapper) -> None:
    tables = _tables(connection.alias)
    quoted = ", ".join(connection.ops.quote_name(table) for table in tables)
    with transaction.atomic(connection.alias), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(f"LOCK TABLE {quoted} IN ACCESS EXCLUSIVE MODE")
        full = _with_rows(cursor, connection, tables)
        if connection.vendor == "postgresql" and max(full.values(), default=0) > FEW:
            cursor.execute(f"TRUNCATE {quoted}")
            return
        for table in full:
            cursor.execute(f"DELETE FROM {connection.ops.quote_name(table)}")  # noqa: S608


@lru_cache
def _tables(alias: str) -> list[str]:
    connection = connections[alias]
    names = connection.introspection.django_table_names(
        only_existing=True, include_views=False
    )
    return [name for name in names if name not in KEPT]


def _with_rows(
    cursor: Any, connection: BaseDatabaseWrapper, tables: list[str]
) -> dict[str, int]:
    """The tables that have rows, with their number up to one more than a few."""
    counts = " UNION ALL ".join(
        f"SELECT '{table}', count(*) FROM (SELECT 1 FROM {connection.ops.quote_name(table)} LIMIT {FEW + 1}) AS first"  # noqa: S608  # names of tables
        for table in tables
    )
    cursor.execute(counts)
    return {table: number for table, number in cursor.fetchall() if number}
