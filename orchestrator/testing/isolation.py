"""Work inside the one transaction of a test, as if each piece of work had its own transactions.

A worker calls steps and after-commit handlers outside any transaction. A failed statement there undoes only itself.
Inside the transaction of a `TestCase` it would make all later statements fail.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from orchestrator.testing.replacements import add_stand_in

OF_SAVEPOINTS = ("SAVEPOINT", "RELEASE", "ROLLBACK")


@contextmanager
def isolate_statements() -> Iterator[None]:
    """Undo only the failed statement if a statement outside the code's own transactions fails."""
    if not connection.in_atomic_block:
        yield
        return
    block = _TestTransaction(len(connection.savepoint_ids))
    with connection.execute_wrapper(block.execute), add_stand_in(block.stand_in):
        yield


@dataclass
class _TestTransaction:
    """The transaction of a test; `depth` is the number of its savepoints."""

    depth: int

    def accept_statements(self) -> None:
        """Let Django accept statements after a failed one outside the code's own transactions."""
        if len(connection.savepoint_ids) == self.depth:
            connection.needs_rollback = False

    def execute(
        self, run: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
    ) -> Any:
        """Execute a statement; outside the code's own transactions in a savepoint of its own."""
        self.accept_statements()
        # A block without its own savepoint, such as that of `bulk_create`, undoes nothing.
        inside = any(connection.savepoint_ids[self.depth :])
        of_savepoints = sql.lstrip().upper().startswith(OF_SAVEPOINTS)
        # SQLite continues after a failed statement; PostgreSQL aborts the whole transaction.
        if inside or of_savepoints or connection.vendor != "postgresql":
            return run(sql, params, many, context)
        with transaction.atomic():
            return run(sql, params, many, context)

    def stand_in(
        self, asked: Callable[..., Any], so_far: Callable[..., Any]
    ) -> Callable[..., Any]:
        """Return the function with later statements accepted, even if it fails."""

        @functools.wraps(so_far)
        def call(*args: Any, **given: Any) -> Any:
            try:
                return so_far(*args, **given)
            finally:
                self.accept_statements()

        return call
