"""Limits for the database connections of worker processes, in any project.

A connection can fall silent: the server neither answers nor refuses. The system notices lost packets
(`environment.POSTGRES_KEEPALIVE`). If something in between takes the packets and drops them, only the server can say
that it does not run our statement: a worker asks it on another connection.
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

from orchestrator.configuration.environment import with_limits

LibpqGenerator = Generator[Any, Any, Any]

log = logging.getLogger(__name__)

LOOK_SECONDS = 2.0
"""How long to wait for an answer before each question to the server."""
LOOKS = 2
"""After this number of questions in a row at which the server was idle, the connection is closed."""

SERVER_WORKS = """
    SELECT pg_backend_pid() <> %s OR EXISTS (
        SELECT FROM pg_stat_activity WHERE pid = %s
        AND COALESCE(state, '') NOT LIKE 'idle%%' AND wait_event_type IS DISTINCT FROM 'Client'
    )
"""
"""Whether a session's server runs a statement and does not wait for us; behind a pooler, with other sessions, yes."""


def limit_connections() -> None:
    """Set limits for all PostgreSQL connections that this process and its children will open.

    A project's own OPTIONS take precedence. Through a pooler the limits are those of the role. No connection comes from
    a pool: a worker has one, and children must not share a pool.
    """
    for db in connections.all(initialized_only=False):
        if db.vendor == "postgresql":
            db.close()
            options = db.settings_dict["OPTIONS"]
            # Behind a pooler a transaction may have another session; such a project has no server-side cursors.
            sessions = not db.settings_dict.get("DISABLE_SERVER_SIDE_CURSORS")
            options.update(with_limits(options, sessions=sessions))
            if sessions:
                # Else Django would send a statement for it, before the connection is watched.
                options["options"] += f" -c TimeZone={db.timezone_name}"
            options.pop("pool", None)
    connection_created.connect(_watch)


def _watch(connection: BaseDatabaseWrapper, **signal: object) -> None:
    if connection.vendor == "postgresql":
        db: Any = connection.connection
        watch_answers(db, partial(_server_works, connection, db.pgconn.backend_pid))


def watch_answers(db: Any, works: Callable[[], bool]) -> None:
    """Make a psycopg connection raise OperationalError instead of waiting for an answer that will not come.

    Args:
        db: the connection.
        works: returns whether the server runs the statement.
    """
    plain = db.wait

    def wait(answer: LibpqGenerator, *args: Any, **kwargs: Any) -> Any:
        return plain(_watched_answer(db, answer, works), *args, **kwargs)

    db.wait = wait


def _watched_answer(
    db: Any, answer: LibpqGenerator, works: Callable[[], bool]
) -> LibpqGenerator:
    """Wrap an answer of psycopg's: a generator of what it waits for, which is sent what is ready, 0 for nothing yet."""
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
                silence.ask_server()
            wanted = answer.send(there)
    except StopIteration as end:
        return end.value


class Silence:
    """A time without any part of an answer."""

    def __init__(self, db: Any, works: Callable[[], bool]) -> None:
        self.db, self.works = db, works
        self.looks = 0
        self.look_at = time.monotonic() + LOOK_SECONDS

    def ask_server(self) -> None:
        """Ask the server from time to time whether it runs the statement.

        Raises:
            OperationalError: it does not, and the connection is closed.
        """
        if time.monotonic() < self.look_at or not _owes_answer(self.db):
            return
        self.looks = 0 if self.works() else self.looks + 1
        if self.looks == LOOKS:
            self.db.pgconn.finish()
            raise self.db.OperationalError(
                f"no answer for {LOOKS * LOOK_SECONDS:g} s, and the server runs nothing: the connection is silent"
            )
        self.look_at = time.monotonic() + LOOK_SECONDS


def _owes_answer(db: Any) -> bool:
    """Return whether the server owes an answer; a listener for notifications waits for none."""
    return bool(db.info.transaction_status.name == "ACTIVE")


def _server_works(connection: BaseDatabaseWrapper, session: int) -> bool:
    """Ask the server, on another connection, whether it runs the statement of a session."""
    django: Any = connection
    errors = django.Database
    params = {**django.get_connection_params(), "connect_timeout": int(LOOK_SECONDS)}
    try:
        with django.Database.connect(**params, autocommit=True) as db:
            watch_answers(db, lambda: False)
            found = db.execute(SERVER_WORKS, [db.pgconn.backend_pid, session])
            return bool(found.fetchone()[0])
    except errors.Error as error:
        log.info("asked for its state, the database said: %s", error)
        return getattr(error, "sqlstate", None) is not None  # it lives, and is busy
