"""Runs work inside the one transaction of a test as if each piece had its own transactions.

Where nothing else is open, the engine calls steps and after-commit handlers outside any transaction: a statement that
fails there undoes itself alone. Inside the transaction of a `TestCase` it would spoil everything that follows.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection, transaction

from orchestrator.testing.stand_ins import standing_in

OF_SAVEPOINTS = ("SAVEPOINT", "RELEASE", "ROLLBACK")


@contextmanager
def isolated() -> Iterator[None]:
    """Undoes only the failed statement if a statement outside the code's own transactions fails."""
    if not connection.in_atomic_block:
        yield
        return
    depth = len(connection.savepoint_ids)

    def go_on() -> None:
        """Lets Django accept statements again: the failed one outside the code's own transactions is undone."""
        if len(connection.savepoint_ids) == depth:
            connection.needs_rollback = False

    def alone(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        go_on()
        # A block without its own savepoint, such as that of `bulk_create`, undoes nothing.
        inside = any(connection.savepoint_ids[depth:])
        of_savepoints = sql.lstrip().upper().startswith(OF_SAVEPOINTS)
        # SQLite continues after a failed statement; PostgreSQL aborts the whole transaction.
        if inside or of_savepoints or connection.vendor != "postgresql":
            return execute(sql, params, many, context)
        with transaction.atomic():
            return execute(sql, params, many, context)

    def going_on(
        asked: Callable[..., Any], so_far: Callable[..., Any]
    ) -> Callable[..., Any]:
        @functools.wraps(so_far)
        def call(*args: Any, **given: Any) -> Any:
            try:
                return so_far(*args, **given)
            finally:
                go_on()

        return call

    with connection.execute_wrapper(alone), standing_in(going_on):
        yield
