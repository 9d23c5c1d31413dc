"""Limits for the database connections of worker processes, in whatever project they run.

A line can fall silent: what is sent is neither answered nor refused, and nobody is told. Where packets are lost, the
system notices by itself (`environment.POSTGRES_LINE`). Where somebody in between takes them and goes on no further,
only the server can say that it is not at what we wait for: it is asked on another connection.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from orchestrator.environment import limited

Answer = Generator[Any, Any, Any]

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""How long an answer may take before the server is asked what it is doing, and again each time."""
LOOKS = 2
"""After so many of them in a row on which it was not at it, the connection is given up."""

WORKS = """
    SELECT pg_backend_pid() <> %s OR EXISTS (
        SELECT FROM pg_stat_activity WHERE pid = %s
        AND COALESCE(state, '') NOT LIKE 'idle%%' AND wait_event_type IS DISTINCT FROM 'Client'
    )
"""
"""Whether a session's server works, and does not wait for us. Behind a pooler, whose sessions are others, it may."""


def limit() -> None:
    """Sets limits for all PostgreSQL connections that this process and its children will open.

    What a project's own OPTIONS say holds. Through a pooler the limits are the role's. No connection comes from a pool
    of this process: a worker has one, and a pool must not be shared with children.
    """
    for db in connections.all(initialized_only=False):
        if db.vendor == "postgresql":
            db.close()
            options = db.settings_dict["OPTIONS"]
            # Behind a pooler each transaction has another; such a project does without server-side cursors.
            sessions = not db.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
            options.update(limited(options, sessions=sessions))
            if sessions:
                # Else Django would set it with a question, before the connection is watched.
                options["options"] += f" -c TimeZone={db.timezone_name}"
            options.pop("pool", None)
    connection_created.connect(_watch)


def _watch(connection: BaseDatabaseWrapper, **signal: object) -> None:
    if connection.vendor == "postgresql":
        db: Any = connection.connection
        be_answered(db, partial(_works, connection, db.pgconn.backend_pid))


def be_answered(db: Any, works: Callable[[], bool]) -> None:
    """Lets a psycopg connection raise OperationalError instead of waiting for an answer that will not come.

    Args:
        db: the connection.
        works: whether the server is at what was asked of it.
    """
    plain = db.wait

    def wait(answer: Answer, *args: Any, **kwargs: Any) -> Any:
        return plain(_answered(db, answer, works), *args, **kwargs)

    db.wait = wait


def _answered(db: Any, answer: Answer, works: Callable[[], bool]) -> Answer:
    """An answer that psycopg waits for: it yields what it waits for, and is sent what is there, 0 for nothing yet."""
    silence = None
    try:
        wanted = next(answer)
        while True:
            there = yield wanted
            if there:
                silence = None
            elif silence is None:
                silence = Silence(db, works)
            else:
                silence.go_on()
            wanted = answer.send(there)
    except StopIteration as end:
        return end.value


class Silence:
    """A time in which nothing comes of an answer."""

    def __init__(self, db: Any, works: Callable[[], bool]) -> None:
        self.db, self.works = db, works
        self.looks = 0
        self.look_at = time.monotonic() + LOOK_SECONDS

    def go_on(self) -> None:
        """Asks from time to time whether anything will come.

        Raises:
            OperationalError: nothing will, and the connection is closed.
        """
        if time.monotonic() < self.look_at or not _is_asked(self.db):
            return
        self.looks = 0 if self.works() else self.looks + 1
        if self.looks == LOOKS:
            self.db.pgconn.finish()
            raise self.db.OperationalError(
                f"no answer for {LOOKS * LOOK_SECONDS:g} s, and the server is at nothing: the connection is silent"
            )
        self.look_at = time.monotonic() + LOOK_SECONDS


def _is_asked(db: Any) -> bool:
    """Whether the server owes an answer; who listens to notifications waits for none."""
    return bool(db.info.transaction_status.name == "ACTIVE")


def _works(connection: BaseDatabaseWrapper, session: int) -> bool:
    """Whether the server says that it is at what was asked of it in a session."""
    django: Any = connection
    errors = django.Database
    params = {**django.get_connection_params(), "connect_timeout": int(LOOK_SECONDS)}
    try:
        with django.Database.connect(**params, autocommit=True) as db:
            be_answered(db, lambda: False)
            return bool(
                db.execute(WORKS, [db.pgconn.backend_pid, session]).fetchone()[0]
            )
    except errors.Error as error:
        log.info("asked what it is doing, the database said: %s", error)
        return getattr(error, "sqlstate", None) is not None  # it lives, and is busy
