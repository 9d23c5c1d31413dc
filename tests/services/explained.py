"""How the database goes about what is asked of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from django.db import connection


@contextmanager
def explained() -> Iterator[list[str]]:
    """Give how the database goes about each statement of the block."""
    found: list[str] = []
    postgresql = connection.vendor == "postgresql"

    def explain(
        execute: Callable[..., object], sql: str, params: object, *rest: object
    ) -> object:
        with connection.cursor() as cursor:
            if postgresql:  # it goes through a small table of processes
                cursor.cursor.execute("SET LOCAL enable_seqscan = off")
            how = "EXPLAIN" if postgresql else "EXPLAIN QUERY PLAN"
            cursor.cursor.execute(f"{how} {sql}", params)
            found.append("\n".join(str(row[-1]) for row in cursor.cursor.fetchall()))
        return execute(sql, params, *rest)

    with connection.execute_wrapper(explain):
        yield found
