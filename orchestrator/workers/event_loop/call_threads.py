"""The threads in which calls run ordinary functions, by `sync_to_async` and `asyncio.to_thread`.

All calls of a worker share them. A function leaves its thread as it found it: the session of its connection, without a
transaction, and without a lost connection. As in the engine's session, this is one message more for a function that has
sent any, and none for another one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created

from orchestrator.engine.sql.left_connections import close_spoilt
from orchestrator.engine.sql.session import (
    INNERMOST,
    DatabaseSession,
    own_session,
    session_of,
)
from orchestrator.exceptions import Permanent

T = TypeVar("T")


class _Here(threading.local):
    """The session of this thread's connection; None in other threads than these."""

    session: DatabaseSession | None = None


_here = _Here()


def _note_session(connection: BaseDatabaseWrapper, **signal: object) -> None:
    """Note the session of a connection that a function in these threads opens."""
    is_own = connection is connections[DEFAULT_DB_ALIAS]
    if _here.session is not None and is_own and connection.vendor == "postgresql":
        _here.session = _outermost_session(connection)


def _outermost_session(db: BaseDatabaseWrapper) -> DatabaseSession:
    """The session of a connection before a function of a call, inside which no other code runs with it."""
    vars(db).pop(INNERMOST, None)
    return session_of(db)


connection_created.connect(_note_session)


class CallThreads(ThreadPoolExecutor):
    """Threads for functions of calls, which no call can shut down.

    Args:
        most: the most threads; None for the default of asyncio.
        name: what their names begin with.
        step_name: returns the name of the step whose call runs, in the context of that call.
        afterwards: is called after each function, in its thread and in the context of its call.
    """

    def __init__(
        self,
        most: int | None,
        name: str,
        step_name: Callable[[], str],
        afterwards: Callable[[], None],
    ) -> None:
        super().__init__(most, name)
        self._step_name, self._afterwards = step_name, afterwards

    def submit(
        self, function: Callable[..., T], /, *args: Any, **kwargs: Any
    ) -> Future[T]:
        called = partial(function, *args, **kwargs)
        return super().submit(copy_context().run, self._run, called)

    def _run(self, function: Callable[[], T]) -> T:
        try:
            return _run_alone(self._step_name, function)
        finally:
            self._afterwards()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing: other calls use these threads."""


def _run_alone(step_name: Callable[[], str], function: Callable[[], T]) -> T:
    """Call a function; leave the connections of this thread as they were before.

    Raises:
        Permanent: the function left a transaction open.
        Exception: any error of the function.
    """
    own_session()
    _here.session = _outermost_session(connections[DEFAULT_DB_ALIAS])
    left_open = False
    try:
        result = function()
    finally:
        session, _here.session = _here.session, None
        for db in connections.all(initialized_only=True):
            left_open |= close_spoilt(db)
        if connections[DEFAULT_DB_ALIAS] is session.db:
            session.restore()
    if left_open:
        raise Permanent(
            "%(function)s left a database transaction open; what it wrote there is undone",
            step_name(),
        )
    return result
