"""Calling the application's code, which can end neither its worker nor the worker's transaction."""

from __future__ import annotations

import logging
import os
import time
import traceback
from collections import Counter
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Mapping,
)
from contextvars import copy_context
from decimal import getcontext, setcontext
from functools import partial
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from orchestrator.engine.sql import left_connections
from orchestrator.engine.sql.connection import (
    is_idle_timeout,
    passes,
    rollback_error,
)
from orchestrator.engine.sql.session import end_connection, session_of
from orchestrator.engine.storage.application_code.descriptors import end_spoilt_process
from orchestrator.engine.storage.application_code.errors import (
    FROM_APPLICATION,
    marked_error,
)
from orchestrator.exceptions import (
    ExitRefused,
    InvalidMessage,
    Outcome,
    Permanent,
    StoodIdle,
    TransactionAborted,
)
from orchestrator.text import Text

log = logging.getLogger(__name__)

T = TypeVar("T")

SHORTEST_IDLE_LIMIT = 1.0
"""Seconds that every database lets a transaction stand idle."""

LAZY = (Iterator, AsyncIterator, Awaitable)
"""Types without a value yet: reading one would run the step's code after its timeout and inside the engine's commit."""


def apply(function: Callable[..., Any], arguments: Mapping[str, Any], name: str) -> Any:
    """Call the function of the step of that name.

    Raises:
        ExitRefused: the function raised an exception that ends programs.
        Permanent: the function left a transaction open.
        TransactionAborted: a statement of the function failed in the engine's transaction, and the function went on.
        InvalidMessage: its result is still to be computed.
        Exception: any error of the function.
    """
    return _value(call_application(name, partial(function, **arguments)), name)


async def await_function(
    function: Callable[..., Awaitable[Any]], arguments: Mapping[str, Any], name: str
) -> Any:
    """Await the asynchronous function of the step of that name, in the event loop of many calls.

    Raises:
        Exception: as `apply`. A cancelled function ends with ExitRefused, unless it ignores the cancellation.
    """
    with ApplicationCall(name):
        result = await function(**arguments)
    return _value(result, name)


def _value(result: Any, name: str) -> Any:
    """The result of a function, if that is a value.

    Raises:
        InvalidMessage: the result is still to be computed.
    """
    if isinstance(result, Outcome):  # it is raised where its message must not be asked
        with ApplicationCall(name):
            marked_error(result, name, ())
    if isinstance(result, LAZY):
        _let_go(result)
        raise InvalidMessage(
            Text(
                "the result of %(step)s: a %(type)s has no value yet; give back the value, or a list",
                name,
                type(result).__name__,
            )
        )
    return result


class CommitHook:
    """Code of the application that runs after a commit, such as a hook of `transaction.on_commit`.

    Its error comes too late to undo the commit, and is logged.

    Args:
        name: the name of the code that left it to the commit.
        function: the code.
    """

    def __init__(self, name: str, function: Callable[[], object]) -> None:
        self.name, self.function = name, function

    def __call__(self) -> None:
        try:
            call_application(self.name, self.function)
        except Exception as error:  # noqa: BLE001  # it may raise anything
            # The log has the error's place and not its message, which may contain a secret.
            kind = type(error.__cause__ if isinstance(error, ExitRefused) else error)
            place = "".join(traceback.format_tb(error.__traceback__))
            told = "what %s left to the commit raised %s:\n%s"
            log.error(told, self.name, kind.__name__, place)


def _name_hooks(db: BaseDatabaseWrapper, first: int, name: str) -> None:
    """Let no hook from this place on end the work whose commit calls it."""
    hooks: list[Any] = db.run_on_commit
    for place in range(first, len(hooks)):
        savepoints, function, *_ = hooks[place]
        if not isinstance(function, CommitHook):
            hooks[place] = (savepoints, CommitHook(name, function), False)


def call_application(
    name: str,
    function: Callable[..., T],
    *arguments: Any,
    ours: Collection[type[Exception]] = (),
) -> T:
    """Call code of the application, in context variables of its own.

    A language or a time zone that it activates ends with it, and so does what it changes in the context of decimals.

    Args:
        name: the name of the code.
        function: the code.
        arguments: of the function, by place.
        ours: the classes of errors that the engine itself raises there.

    Raises:
        ExitRefused, Permanent: as `apply`.
    """
    with ApplicationCall(name, ours):
        return copy_context().run(_with_own_decimals, function, arguments)


def _with_own_decimals(function: Callable[..., T], arguments: Collection[object]) -> T:
    """Call code with a context of decimals of its own: a copy of the context variables shares that object."""
    setcontext(getcontext().copy())
    return function(*arguments)


LOST = "_session_was_lost"
"""The mark of an error of code inside which the database has ended the session."""

LOST_IN_A_ROW = Counter[object]()
"""How often in a row the session of this process was lost inside a piece of code."""

FREE_LOSSES = 10
"""The number of losses in a row that are taken for the database's: code may end its own session each time."""


class ApplicationCall:
    """The context in which code of the application runs.

    An asynchronous function is awaited inside; its task has context variables of its own.

    An exception that ends programs (SystemExit, KeyboardInterrupt, ...) becomes an error like any other: only its
    supervisor stops a worker. A child process that the code has forked ends here: it must not use the worker's database
    connection. Changes that the code has made to the session of that connection are undone. An error is not the
    application's where the database has ended that session.

    It is no generator, since each call needs one: entering and leaving a generator takes three times as long.

    Args:
        name: the name of the code.
        ours: the classes of errors that the engine itself raises there.

    Raises:
        ExitRefused, Permanent, TransactionAborted: as `apply`.
    """

    reads_traceback = True
    """Whether the traceback of an error is kept with it."""

    def __init__(self, name: str, ours: Collection[type[Exception]] = ()) -> None:
        self.name = name
        self.ours = tuple(ours)

    def __enter__(self) -> None:
        self.worker = os.getpid()
        self.db = db = connections[DEFAULT_DB_ALIAS]
        self.depth, self.hooks = _depth(db), len(db.run_on_commit)
        self.others = left_connections.others_in_transaction(db)
        self.former_error = rollback_error(db)
        self.needed_rollback = db.needs_rollback
        # Last: where something above raises, no session would be restored, and all later ones would be inside it.
        self.session = session_of(db)

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        db, session, failure = self.db, self.session, None
        try:
            if error is not None:
                failure = self._failure(error)
            elif LOST_IN_A_ROW:
                LOST_IN_A_ROW.pop(self._key, None)
            if len(db.run_on_commit) > self.hooks:
                _name_hooks(db, self.hooks, self.name)
        finally:
            end_spoilt_process(self.worker, self.name)
            session.restore()
            left_open = session.is_left_open or _depth(db) != self.depth
            if left_open:
                _clear(db, self.depth)
            left_open |= left_connections.close_spoilt_others(db, self.others)
        if failure is not None:
            if failure is not error:
                raise failure from error
            return
        needs_rollback = db.needs_rollback and not self.needed_rollback
        if left_open or session.has_spoilt_transaction or needs_rollback:
            self._refuse_transaction(left_open)

    def _refuse_transaction(self, left_open: bool) -> None:
        """Raise the error about a transaction in which the engine cannot go on, unless the cause passes by itself.

        Raises:
            Permanent, TransactionAborted: as `apply`.
        """
        if left_open:
            raise Permanent(
                "%(function)s left a database transaction open; what it wrote there is undone",
                self.name,
            )
        if self.session.is_read_only:
            raise Permanent(
                "%(function)s made the transaction read only in which the engine stores its result",
                self.name,
            )
        if not passes(broken_by := self._broken_by()):
            raise TransactionAborted(
                "%(function)s left a transaction that can only be rolled back, as after a statement that has failed: "
                "run such a statement inside transaction.atomic()",
                self.name,
            ) from broken_by

    def _broken_by(self) -> BaseException | None:
        """The error of the code because of which Django will roll its transaction back."""
        found = rollback_error(self.db) if self.db.needs_rollback else None
        return found if found is not self.former_error else None

    def _failure(self, error: BaseException) -> Exception:
        """The error that leaves the context, marked as the application's or the engine's."""
        if vars(error).pop(LOST, False):
            # Maybe in an earlier call, which decided about that one: code may raise one object again.
            del vars(error)[FROM_APPLICATION]
        inner = FROM_APPLICATION in vars(error)
        failure = marked_error(
            error, self.name, self.ours, with_traceback=self.reads_traceback
        )
        if inner:
            return failure  # the call inside which it was raised has decided
        if not self.session.is_lost:
            LOST_IN_A_ROW.pop(self._key, None)
            return failure
        LOST_IN_A_ROW[self._key] += 1
        if LOST_IN_A_ROW[self._key] <= FREE_LOSSES:
            vars(failure).update({FROM_APPLICATION: False, LOST: True})
        return failure

    @property
    def _key(self) -> object:
        return type(self), self.name


class ReadingCall(ApplicationCall):
    """The context in which a stored value is read, whose class may have code of its own."""

    reads_traceback = False


class BlockingTransaction:
    """Code of the application in a transaction of the engine, which the database ends if it stands idle too long.

    Only here the engine knows that this code was the reason, and not a busy machine. It is no generator, which would
    change each error that passes, and some cannot be changed.

    Args:
        name: the name of the code.

    Raises:
        StoodIdle: the database has ended the transaction.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        self.begun = time.monotonic()

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if error is None:
            if time.monotonic() - self.begun > SHORTEST_IDLE_LIMIT:
                self._ask()
            return
        failure = marked_error(error, self.name, ())
        if isinstance(failure, DatabaseError) and is_idle_timeout(failure):
            raise self._stood_idle() from failure
        if failure is not error:
            raise failure from error

    def _ask(self) -> None:
        try:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        except DatabaseError as error:
            if not is_idle_timeout(error):
                raise
            raise self._stood_idle() from error

    def _stood_idle(self) -> StoodIdle:
        return StoodIdle(
            "%(function)s kept its transaction waiting until the database ended it: do what takes long after "
            "the commit",
            self.name,
        )


def _depth(db: BaseDatabaseWrapper) -> tuple[bool, int, bool]:
    """The nesting of the connection's transactions, and whether one was begun by hand."""
    by_hand = db.connection is not None and not db.autocommit
    return db.in_atomic_block, len(db.savepoint_ids), by_hand


def _clear(db: BaseDatabaseWrapper, before: tuple[bool, int, bool]) -> None:
    """Make the connection usable again; the error that follows rolls a transaction of the engine back."""
    in_atomic_block, savepoints, _ = before
    if in_atomic_block:
        del db.savepoint_ids[savepoints:]
        del db.atomic_blocks[savepoints + 1 :]
        return
    db.in_atomic_block = False
    db.savepoint_ids.clear()
    db.atomic_blocks.clear()
    end_connection(db)


def _let_go(result: Any) -> None:
    """Close a generator or a coroutine, so that Python does not warn later."""
    if callable(close := getattr(result, "close", None)):
        close()
