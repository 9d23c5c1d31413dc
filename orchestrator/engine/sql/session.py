"""The session of the engine's connection, which code of the application uses too.

A session holds more than its transactions: settings such as `search_path` and `TimeZone`, the role, locks, temporary
tables, cursors and channels. Code that has sent something leaves the session as it was before: one message more. Code
that sends nothing costs none.

On PostgreSQL each answer that psycopg waits for counts, also one that Django does not know. A setting goes back to the
value that it had when the connection was new: `DISCARD ALL` would also drop prepared statements, and `RESET ALL` alone
the time zone that Django has set. On SQLite only other statements than those of the ORM change a session.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from orchestrator.engine.sql.connection import forget_idle_limit, idle_limit_call

log = logging.getLogger(__name__)

SETTINGS = """
SELECT string_agg(format('pg_catalog.set_config(%L, %L, false)', name, setting), ', ') FROM (
    SELECT name, setting FROM pg_catalog.pg_settings
    WHERE source = 'session' AND name <> 'idle_in_transaction_session_timeout'
    UNION ALL SELECT 'role', pg_catalog.current_setting('role')
) AS known
"""
"""The calls that set again what was set since the session began.

The idle limit is none of them: the engine raises it for a transaction, maybe for the one that runs now.
"""

RESTORE = """
RESET SESSION AUTHORIZATION; RESET ALL; CLOSE ALL; UNLISTEN *; DISCARD TEMP; DISCARD SEQUENCES;
SELECT pg_catalog.current_setting('transaction_read_only') = 'on', pg_catalog.pg_advisory_unlock_all(), {settings}
"""

PLAIN = ("SELECT", "INSERT", "UPDATE", "DELETE", "SAVEPOINT", "RELEASE", "ROLLBACK")
"""The statements of the ORM, which change no session of SQLite."""


class _Watched:
    """A connection of psycopg whose answers are counted."""

    def __init__(self, raw: Any) -> None:
        self.answers = self.restored = 0
        """The number of answers, and that at which the session was last restored."""
        self.settings: str = raw.execute(SETTINGS, prepare=False).fetchone()[0]
        self.options = _options(raw)
        plain = raw.wait

        def wait(*args: Any, **kwargs: Any) -> Any:
            self.answers += 1
            return plain(*args, **kwargs)

        raw.wait = wait


def _options(raw: Any) -> tuple[object, ...]:
    """The options of psycopg for the next transactions and cursors."""
    return raw.isolation_level, raw.read_only, raw.deferrable, raw.row_factory


class DatabaseSession:
    """The session of a connection, before code of the application runs.

    Args:
        db: the connection.
    """

    def __init__(self, db: BaseDatabaseWrapper) -> None:
        self.db = db

    is_read_only = False
    """Whether the running transaction can write nothing any more, which nothing can undo."""

    is_aborted = False
    """Whether the running transaction can only be rolled back, because a statement in it has failed."""

    @property
    def has_spoilt_transaction(self) -> bool:
        """Whether the engine cannot go on in the running transaction. The last `restore` has found it out."""
        return self.is_read_only or self.is_aborted

    @property
    def is_lost(self) -> bool:
        """Whether the database has ended the session."""
        return False

    def restore(self) -> None:
        """Leave the session as it was before."""

    def renew(self) -> None:
        """Close the connection, after the running transaction if there is one; the next statement opens another."""
        if not self.db.in_atomic_block:
            self.db.close()
        else:
            self.db.on_commit(self.db.close, robust=True)


class PostgresSession(DatabaseSession):
    """The session of a connection of psycopg."""

    def __init__(self, db: BaseDatabaseWrapper) -> None:
        self.db = db
        self.raw: Any = db.connection
        self.watched = _watch(db, self.raw)
        self.answers = self.watched.answers if self.watched is not None else 0
        if not db.in_atomic_block:
            forget_idle_limit(db)

    @property
    def is_lost(self) -> bool:
        return bool(getattr(self.raw, "broken", False))

    def restore(self) -> None:
        raw, watched = self.raw, self.watched
        if self.db.connection is not raw:
            self.renew()  # the code has opened it
        elif watched is not None:
            if raw.closed or _options(raw) != watched.options:
                self.renew()
            elif watched.answers not in (self.answers, watched.restored):
                self._send(watched)

    def _send(self, watched: _Watched) -> None:
        if self.raw.info.transaction_status.name == "INERROR":
            self.is_aborted = self.db.in_atomic_block
            return  # its rollback undoes what was set
        try:
            settings = watched.settings + idle_limit_call(self.db)
            restore = RESTORE.format(settings=settings)
            found = self.raw.execute(restore, prepare=False)
            while found.nextset():
                pass
            self.is_read_only = self.db.in_atomic_block and found.fetchone()[0]
            watched.restored = watched.answers
        except self.raw.Error as error:
            log.info("a session could not be restored: %s", error)
            self.renew()


def _watch(db: BaseDatabaseWrapper, raw: Any) -> _Watched | None:
    """The watched connection; None if there is none, it does not answer, or its driver is not psycopg 3."""
    if not hasattr(raw, "wait") or raw.closed or db.needs_rollback:
        return None
    found: _Watched | None = getattr(raw, "procession_watched", None)
    if found is None:
        try:
            found = raw.procession_watched = _Watched(raw)
        except raw.Error as error:
            log.info("the session could not be read: %s", error)
    return found


class SqliteSession(DatabaseSession):
    """A connection of SQLite."""

    def __init__(self, db: BaseDatabaseWrapper) -> None:
        self.db, self.changed = db, False
        db.execute_wrappers.append(self._note)

    def _note(self, execute: Callable[..., Any], sql: str, *about: Any) -> Any:
        self.changed |= not sql.lstrip().upper().startswith(PLAIN)
        return execute(sql, *about)

    def restore(self) -> None:
        self.db.execute_wrappers.remove(self._note)
        raw: Any = self.db.connection
        if self.changed and raw is not None:
            raw.execute("PRAGMA query_only = OFF")
            self.renew()


OWNED = "procession_owned"
"""The mark of a connection whose session is the engine's."""

SESSIONS = {"postgresql": PostgresSession, "sqlite": SqliteSession}


def own_session() -> None:
    """Let the session of this thread's connection be the engine's.

    A web server's session is its request's: the project may have set the search path of a tenant there.
    """
    vars(connections[DEFAULT_DB_ALIAS])[OWNED] = True


def session_of(db: BaseDatabaseWrapper) -> DatabaseSession:
    """Return the session of a connection, before code of the application runs; only the engine's is restored."""
    kind = SESSIONS.get(db.vendor) if OWNED in vars(db) else None
    return (kind or DatabaseSession)(db)
