"""What is asked of the database, as it is sent: of a prepared statement the log of queries has no text."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection


@contextmanager
def noting() -> Iterator[list[tuple[str, Any]]]:
    """Give the statements of the block, each with its parameters."""
    found: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, *rest: Any) -> Any:
        found.append((sql, params))
        return execute(sql, params, *rest)

    with connection.execute_wrapper(note):
        yield found
