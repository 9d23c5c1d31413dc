"""The limit of the database itself: one UPDATE and one INSERT, committed, by Django's cursor."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import BrokenBarrierError
from typing import Any

from django.db import connection, transaction

from bench import checks
from bench.game import BenchFailed, Figures, Game, Size
from bench.workers import Team, end_after, fork

COUNTS, LOG = "bench_limit", "bench_limit_log"
ROWS = 100
"""How many rows each client updates in turn; no other client updates them."""
WARM = 50
LIMIT = "limit, 2 clients"
"""The limit to compare the engine with two workers with."""

CREATE = (
    f"CREATE TABLE {COUNTS} (id INTEGER PRIMARY KEY, done INTEGER NOT NULL, at VARCHAR(40) NOT NULL)",
    f"CREATE TABLE {LOG} (counted INTEGER NOT NULL, done INTEGER NOT NULL, PRIMARY KEY (counted, done))",
)
DROP = (f"DROP TABLE IF EXISTS {COUNTS}", f"DROP TABLE IF EXISTS {LOG}")
UPDATE = f"UPDATE {COUNTS} SET done = %s, at = %s WHERE id = %s"  # noqa: S608  # our own names
INSERT = f"INSERT INTO {LOG} (counted, done) VALUES (%s, %s)"  # noqa: S608
BOTH = f"WITH counted AS ({UPDATE} RETURNING id, done) INSERT INTO {LOG} (counted, done) SELECT id, done FROM counted"  # noqa: S608


class Limit(Game):
    """Clients that each send one statement after the other."""

    unit = "commit"

    def __init__(self, size: Size, clients: int) -> None:
        super().__init__(size)
        self.clients = clients
        self.each = size.count // clients
        self.name = f"limit, {clients} client{'s' * (clients > 1)}"
        self.team = Team([])
        self.gate: Any = None

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        _execute(*DROP, *CREATE)
        try:
            yield
        finally:
            _execute(*DROP)

    def prepare(self) -> None:
        rows = [(row, 0, "") for row in range(self.clients * ROWS)]
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO {COUNTS} VALUES (%s, %s, %s)", rows)  # noqa: S608
        self.gate = multiprocessing.Barrier(self.clients + 1)

    def run(self) -> Figures:
        pids = [fork(lambda n=n: self._work(n)) for n in range(self.clients)]  # type: ignore[misc]
        self.team = Team(pids)
        with end_after(pids):
            self._pass_gate()
            before, begun = self.team.used(), time.perf_counter()
            self._pass_gate()
            seconds = time.perf_counter() - begun
            units = self.each * self.clients
            return {
                "per_second": units / seconds,
                **self.team.figures(before, units),
            }

    def check(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT COUNT(*) FROM {LOG} WHERE done > {WARM}")  # noqa: S608
            found = cursor.fetchone()[0]
        checks.check_equal(f"{self.name}: rows", found, self.each * self.clients)

    def _work(self, client: int) -> None:
        for number in range(1, WARM + self.each + 1):
            if number == WARM + 1:
                self._pass_gate()
            _commit(client * ROWS + number % ROWS, number)
        self._pass_gate()
        time.sleep(self.size.patience)  # its processor time is read before it is ended

    def _pass_gate(self) -> None:
        try:
            self.gate.wait(self.size.patience)
        except BrokenBarrierError:
            raise BenchFailed(
                f"{self.name}: a client did not come to its end within {self.size.patience:g} s"
            ) from None


def limits(size: Size) -> list[Limit]:
    """Return the games with one client and with two."""
    return [Limit(size, 1), Limit(size, 2)]


def _commit(row: int, number: int) -> None:
    """Commit one update and one inserted row, on PostgreSQL in one statement."""
    update = (number, "now", row)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(BOTH, update)
            return
        with transaction.atomic():
            cursor.execute(UPDATE, update)
            cursor.execute(INSERT, (row, number))


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
