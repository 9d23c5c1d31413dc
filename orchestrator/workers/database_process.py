"""The process in which a supervisor's reports are stored.

The supervisor itself never waits for the database: a connection may fall silent, and there are workers to kill, to
replace and to stop. A process and not a thread, because the supervisor forks.
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

from orchestrator.definition.codec import decode, encode
from orchestrator.workers import group
from orchestrator.workers.report import WorkerReport

log = logging.getLogger(__name__)

NAME = "procession-db"
ANSWER_SECONDS = 5.0
"""A process that has not stored a report by then is killed and replaced."""
LOCK_SECONDS = 0.5
"""How long it waits for a lock of the database."""
SOON = f"SET LOCAL lock_timeout = {int(LOCK_SECONDS * 1000)}"
IDLE = 0
"""How libpq calls a connection on which no transaction has begun."""


class DatabaseProcess(group.Helper):
    """Stores one report at a time; started with the first one, and started again after it was killed or has died."""

    _line: Connection[Any, Any]

    def __init__(self) -> None:
        super().__init__(NAME)
        self._report: WorkerReport | None = None
        self._since = 0.0
        self.calls = False
        """Whether it has seen work that waits outside."""

    @property
    def busy(self) -> bool:
        """Whether it has a report whose outcome has not been asked for."""
        return self._report is not None

    def send(self, report: WorkerReport) -> None:
        """Gives it a report to store; it must not be busy."""
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
        """The report that it was given and whether it was stored; None as long as that is not known."""
        report = self._report
        if report is None:
            return None
        if self._line.poll():
            stored = self._heard()
        elif time.monotonic() - self._since > ANSWER_SECONDS:
            log.error("the database does not answer, process %s is killed", self.pid)
            self.end()
            stored = False
        else:
            return None
        self._report = None
        return report, stored

    def wait(self, until: float) -> bool:
        """Waits for its answer until a moment of the monotonic clock; whether it is at nothing any more."""
        while self.busy and time.monotonic() < until:
            self.answer()
            time.sleep(0.01)
        return not self.busy

    def end(self) -> None:
        """Kills it; what it was at may be stored or not."""
        super().end()
        self._report = None

    def _heard(self) -> bool:
        try:
            calls: bool | None = json.loads(self._line.recv_bytes())
        except (EOFError, OSError):
            log.error("process %s, which writes to the database, is gone", self.pid)
            self.end()
            return False
        self.calls = self.calls or bool(calls)
        return calls is not None


def _store_all(line: Connection[Any, Any]) -> None:
    """Stores report after report, until the supervisor has ended or kills this process."""
    with limit_lock_waiting(), suppress(EOFError):
        while True:
            report = decode(WorkerReport, json.loads(line.recv_bytes()))
            line.send_bytes(json.dumps(_stored(report)).encode())


def _stored(report: WorkerReport) -> bool | None:
    """Whether work is due that waits outside; None where the database has refused the report."""
    try:
        return report.store()
    except DatabaseError as error:
        log.warning("the database refused the supervisor, trying again: %s", error)
        connections.close_all()
        return None


def limit_lock_waiting() -> AbstractContextManager[None]:
    """Limits how long a statement waits for a lock: its holder may be a worker that must be killed."""
    if connection.vendor == "postgresql":
        return connection.execute_wrapper(_soon)
    connection_created.connect(_sqlite_soon)
    return nullcontext()


def _soon(
    execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
) -> Any:
    """Says it as each transaction begins: through a pooler, the next one has another session, and others have this."""
    if not connection.in_atomic_block:
        with transaction.atomic():
            return _soon(execute, sql, params, many, context)
    if connection.connection.info.transaction_status == IDLE:
        with connection.wrap_database_errors:
            connection.connection.execute(SOON)
    return execute(sql, params, many, context)


def _sqlite_soon(connection: BaseDatabaseWrapper, **signal: object) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"PRAGMA busy_timeout = {int(LOCK_SECONDS * 1000)}")
