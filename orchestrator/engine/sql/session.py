"""The session of the engine's connection, which code of the application uses too.

A session holds more than its transactions: settings such as `search_path` and `TimeZone`, the role, locks, temporary
tables, cursors and channels. Code that has sent something leaves the session as it was before: one message more. Code
that sends nothing costs none.

On PostgreSQL each answer that psycopg waits for counts, also one that Django does not know. A setting goes back to the
value that it had when the connection was new: `DISCARD ALL` would also drop prepared statements, and `RESET ALL` alone
the time zone that Django has set. On SQLite only other statements than those of the ORM change a session, which is then
opened anew.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from operator import attrgetter
from typing import Any

from django.core.cache import caches
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

PLAIN = (
    *("SELECT", "INSERT", "UPDATE", "DELETE", "REPLACE", "WITH", "EXPLAIN"),
    *("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE"),
)
"""The beginnings of statements that change no session of SQLite: those of the ORM."""

OPTIONS = (
    *("isolation_level", "read_only", "deferrable"),
    *("row_factory", "cursor_factory", "prepare_threshold"),
)
"""The attributes of a connection of psycopg that change what the next transactions and cursors do."""

read_options = attrgetter(*OPTIONS)

IDLE, IN_ERROR = 0, 3
"""libpq's statuses of a connection: outside of a transaction, and in one that can only be rolled back."""


SQLITE_OPTIONS = ("row_factory", "text_factory", "isolation_level")
"""The same of a connection of SQLite."""

read_sqlite_options = attrgetter(*SQLITE_OPTIONS)


class _Watched:
    """A connection of psycopg whose answers are counted."""

    def __init__(self, raw: Any) -> None:
        self.answers = self.restored = 0
        """The number of answers, and that at which the session was last restored."""
        self.settings: str = raw.execute(SETTINGS, prepare=False).fetchone()[0]
        self.options = read_options(raw)
        plain = raw.wait

        def wait(*args: Any, **kwargs: Any) -> Any:
            self.answers += 1
            return plain(*args, **kwargs)

        raw.wait = wait


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

    is_left_open = False
    """Whether the code has begun a transaction by a statement, and has not ended it."""

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


class _EngineSession(DatabaseSession):
    """A session that is the engine's: it is restored."""

    def __init__(self, db: BaseDatabaseWrapper) -> None:
        self.db = db
        self.raw: Any = db.connection
        self.wrappers = tuple(db.execute_wrappers)
        self.was_open = False
        """Whether code around this code has begun a transaction that Django does not know of."""
        self.around: _EngineSession | None = vars(db).get(INNERMOST)
        """The session of the code inside which this code runs: what that may have set is restored when it ends."""
        vars(db)[INNERMOST] = self

    def restore(self) -> None:
        vars(self.db)[INNERMOST] = self.around
        if tuple(self.db.execute_wrappers) != self.wrappers:
            self.db.execute_wrappers[:] = self.wrappers
        if self.db.connection is not self.raw:
            self.renew()  # the code has opened it
        elif self.raw is not None:
            self._restore_raw()

    def _restore_raw(self) -> None:
        """Restore what the driver's connection holds."""

    def renew(self) -> None:
        """Close the connection, after the running transaction if there is one; the next statement opens another."""
        if not self.db.in_atomic_block:
            end_connection(self.db)
            return
        vars(self.db)[SPOILT] = True  # a transaction that is rolled back calls no hook
        self.db.on_commit(close_after_rollback, robust=True)

    def _leave_transaction(self) -> None:
        """Roll a transaction of the code back, which would hold all that the engine stores from now on."""
        self.is_left_open = True
        self.renew()


class PostgresSession(_EngineSession):
    """The session of a connection of psycopg."""

    def __init__(self, db: BaseDatabaseWrapper) -> None:
        super().__init__(db)
        self.watched = _watch(db, self.raw)
        self.answers = self.watched.answers if self.watched is not None else 0
        if self.watched is not None and not db.in_atomic_block:
            self.was_open = self.raw.pgconn.transaction_status != IDLE
        if not db.in_atomic_block:
            forget_idle_limit(db)

    @property
    def is_lost(self) -> bool:
        return bool(getattr(self.raw, "broken", False))

    def _restore_raw(self) -> None:
        raw, watched = self.raw, self.watched
        if watched is None:
            return
        if raw.closed or raw.autocommit != self.db.autocommit:
            self.renew()
            return
        if read_options(raw) != watched.options:
            self._restore_options(watched)
        if watched.answers not in (self.answers, watched.restored):
            self._send(watched)

    def _restore_options(self, watched: _Watched) -> None:
        """Set the options of psycopg again. Those of transactions cannot be set inside one."""
        for name, value in zip(OPTIONS, watched.options, strict=True):
            try:
                if getattr(self.raw, name) != value:
                    setattr(self.raw, name, value)
            except self.raw.Error:
                self.renew()

    def _send(self, watched: _Watched) -> None:
        status = self.raw.pgconn.transaction_status
        known = self.db.in_atomic_block or self.was_open
        if status != IDLE and not known:
            self._leave_transaction()
            return
        if status == IN_ERROR:
            self.is_aborted = self.db.in_atomic_block
            return  # its rollback undoes what was set
        if self.around is not None:
            return
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


class SqliteSession(_EngineSession):
    """A connection of SQLite, which tells of each statement, also of those that go past Django."""

    def __init__(self, db: BaseDatabaseWrapper) -> None:
        super().__init__(db)
        self.changed = False
        if self.raw is not None:
            self.options = read_sqlite_options(self.raw)
            self.was_open = self.raw.in_transaction
            self.raw.set_trace_callback(self._note)

    def _note(self, sql: str) -> None:
        begins = sql[:200].lstrip()
        note = begins.startswith("--") and "\n" not in sql  # about a trigger
        self.changed |= not (note or begins.upper().startswith(PLAIN))

    def _restore_raw(self) -> None:
        raw = self.raw
        try:
            raw.set_trace_callback(getattr(self.around, "_note", None))
            for name, value in zip(SQLITE_OPTIONS, self.options, strict=True):
                if getattr(raw, name) is not value:
                    setattr(raw, name, value)
            if self.changed:
                raw.execute("PRAGMA query_only = OFF")
            known = self.db.in_atomic_block or self.was_open
            is_left_open = raw.in_transaction and not known
        except raw.Error as error:
            log.info("a connection could not be restored: %s", error)
            self.renew()
            return
        if is_left_open:
            self._leave_transaction()
        elif isinstance(self.around, SqliteSession):
            self.around.changed |= self.changed
        elif self.changed:
            self.renew()


INNERMOST = "procession_session"
"""The attribute of a connection with the session of the innermost code that runs with it."""

SPOILT = "procession_spoilt"
"""The mark of a connection that is closed when its transaction ends."""


def close_after_rollback() -> None:
    """Close this thread's connection if code of the application has spoilt it in a transaction that is over."""
    _close_if_spoilt(connections[DEFAULT_DB_ALIAS])


def _close_if_spoilt(db: BaseDatabaseWrapper) -> None:
    if SPOILT in vars(db) and not db.in_atomic_block:
        del vars(db)[SPOILT]
        end_connection(db)


def end_connection(db: BaseDatabaseWrapper) -> None:
    """Close a connection whose session is spoilt.

    The driver's own connection is closed first: a pool would keep it, with what was set. A database in memory goes on,
    without the open transaction.
    """
    raw: Any = db.connection
    if raw is not None:
        is_in_memory = getattr(db, "is_in_memory_db", bool)()
        with suppress(Exception):  # it may be lost
            raw.rollback() if is_in_memory else raw.close()
    db.close()


OWNED = "procession_owned"
"""The mark of a connection whose session is the engine's."""

SESSIONS = {"postgresql": PostgresSession, "sqlite": SqliteSession}


def own_session() -> None:
    """Let the session of this thread's connection be the engine's.

    A web server's session is its request's: the project may have set the search path of a tenant there.
    """
    vars(connections[DEFAULT_DB_ALIAS])[OWNED] = True


def own_thread() -> None:
    """Let this thread run work: its session is the engine's, and its caches outlive the functions that use them."""
    own_session()
    for alias in caches:
        with suppress(Exception):  # told where it is used
            caches[alias]  # looked up, it is made


def session_of(db: BaseDatabaseWrapper) -> DatabaseSession:
    """Return the session of a connection, before code of the application runs; only the engine's is restored."""
    kind = SESSIONS.get(db.vendor) if OWNED in vars(db) else None
    if kind is None:
        return DatabaseSession(db)
    _close_if_spoilt(db)
    return kind(db)
