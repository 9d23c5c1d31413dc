"""Work inside the one transaction of a test, as if each piece had transactions of its own.

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
    """Lets each statement that stands alone fail alone, if the test runs in a transaction."""
    if not connection.in_atomic_block:
        yield
        return
    depth = len(connection.savepoint_ids)

    def go_on() -> None:
        """What failed outside the code's own transactions has undone itself: Django need not refuse what follows."""
        if len(connection.savepoint_ids) == depth:
            connection.needs_rollback = False

    def alone(
        execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        go_on()
        # A block without a savepoint of its own, as of `bulk_create`, undoes nothing by itself.
        inside = any(connection.savepoint_ids[depth:])
        of_savepoints = sql.lstrip().upper().startswith(OF_SAVEPOINTS)
        # SQLite goes on after a statement that failed, and PostgreSQL gives up all of the transaction.
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
