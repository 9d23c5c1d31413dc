"""The process that stores a supervisor's reports.

The supervisor itself never waits for the database: a connection may fall silent while workers must be killed, replaced
and stopped. It is a process and not a thread, because the supervisor forks.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from django.db import Error as DatabaseError
from django.db import connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from orchestrator import process_group
from orchestrator.definition.codec import decode, encode
from orchestrator.workers.report import WorkerReport

log = logging.getLogger(__name__)

NAME = "procession-db"
ANSWER_SECONDS = 5.0
"""How long a report may take before the process is killed and replaced."""
LOCK_SECONDS = 0.5
"""How long a statement waits for a lock of the database."""
LIMIT_LOCKS = f"SET LOCAL lock_timeout = {int(LOCK_SECONDS * 1000)}"
IDLE = 0
"""libpq's status of a connection on which no transaction has begun."""


class DatabaseProcess(process_group.Helper):
    """Stores one report at a time; `send` starts it, also again after it has died."""

    _line: Connection[Any, Any]

    def __init__(self) -> None:
        super().__init__(NAME)
        self._report: WorkerReport | None = None
        self._since = 0.0
        self.calls = False
        """Whether it has seen calls that are due."""

    @property
    def busy(self) -> bool:
        """Whether it has a report of unknown outcome."""
        return self._report is not None

    def send(self, report: WorkerReport) -> None:
        """Give it a report to store; it must not be busy."""
        if self.is_gone:
            self._line, its = Pipe()
            self.begin(lambda: _store_all(its))
            its.close()
        self._report, self._since = report, time.monotonic()
        try:
            self._line.send_bytes(json.dumps(encode(report)).encode())
        except OSError as error:  # it has died; that is its answer
            log.warning("process %s takes no report: %s", self.pid, error)

    def answer(self) -> tuple[WorkerReport, bool] | None:
        """Return its report and whether that was stored; None while that is not known."""
        report = self._report
        if report is None:
            return None
        if self._line.poll():
            stored = self._receive()
        elif time.monotonic() - self._since > ANSWER_SECONDS:
            log.error("the database does not answer, process %s is killed", self.pid)
            self.end()
            stored = False
        else:
            return None
        self._report = None
        return report, stored

    def wait(self, until: float) -> bool:
        """Wait for its answer until a time of the monotonic clock; return whether it has no report any more."""
        while self.busy and time.monotonic() < until:
            self.answer()
            time.sleep(0.01)
        return not self.busy

    def end(self) -> None:
        """Kill it; its report may be stored or not."""
        super().end()
        self._report = None

    def _receive(self) -> bool:
        try:
            calls: bool | None = json.loads(self._line.recv_bytes())
        except (EOFError, OSError):
            log.error("process %s, which writes to the database, is gone", self.pid)
            self.end()
            return False
        self.calls = self.calls or bool(calls)
        return calls is not None


def _store_all(line: Connection[Any, Any]) -> None:
    """Store report after report, until the supervisor has ended or kills this process."""
    with limit_lock_waiting(), suppress(EOFError):
        while True:
            report = decode(WorkerReport, json.loads(line.recv_bytes()))
            line.send_bytes(json.dumps(_store(report)).encode())


def _store(report: WorkerReport) -> bool | None:
    """Store a report; return whether calls are due, None if the database has refused it."""
    try:
        return report.store()
    except DatabaseError as error:
        log.warning("the database refused the supervisor, trying again: %s", error)
        connections.close_all()
        return None


def limit_lock_waiting() -> AbstractContextManager[None]:
    """Limit how long a statement waits for a lock: its holder may be a worker that must be killed."""
    if connection.vendor == "postgresql":
        return connection.execute_wrapper(_limit_locks)
    connection_created.connect(_limit_sqlite_locks)
    return nullcontext()


def _limit_locks(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
) -> Any:
    """Set the limit as each transaction begins: through a pooler, the next one may have another session."""
    if not connection.in_atomic_block:
        with transaction.atomic():
            return _limit_locks(execute, sql, params, many, context)
    if connection.connection.info.transaction_status == IDLE:
        with connection.wrap_database_errors:
            connection.connection.execute(LIMIT_LOCKS)
    return execute(sql, params, many, context)


def _limit_sqlite_locks(connection: BaseDatabaseWrapper, **signal: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}")
