"""Calling the application's own code, so that it can end neither the worker it runs in nor the worker's bookkeeping.

What it raises is told apart from what the engine raises: a step may well end with a LeaseLost or an UnknownEventType of
something that it has called, and has failed then like with any other error.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from django.db import DEFAULT_DB_ALIAS, DatabaseError, connection, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from orchestrator.engine.storage.passing_errors import stood_idle
from orchestrator.exceptions import (
    ExitRefused,
    InvalidMessage,
    Permanent,
    StoodIdle,
)

A_MOMENT = 1.0
"""Seconds that any database lets a transaction stand idle."""

LAZY = (Iterator, AsyncIterator, Awaitable)
"""What has no value yet: taking it from there would run the step's code outside its time and inside our commit."""


def call(function: Callable[..., Any], arguments: Mapping[str, Any], name: str) -> Any:
    """Calls the function of the step of that name.

    Raises:
        ExitRefused: it raised what ends programs.
        Permanent: it left a transaction open.
        InvalidMessage: what it gave back is still to be computed.
        Exception: whatever it raises.
    """
    with contained(name):
        result = function(**arguments)
    return _value(result, name)


async def awaited(
    function: Callable[..., Awaitable[Any]], arguments: Mapping[str, Any], name: str
) -> Any:
    """Awaits the asynchronous function of the step of that name, in an event loop in which others are awaited too.

    Raises:
        Exception: as `call`. One that is cancelled ends with ExitRefused, unless it pays no heed to that.
    """
    with contained(name):
        result = await function(**arguments)
    return _value(result, name)


def _value(result: Any, name: str) -> Any:
    """What a function has given back, if that is a value.

    Raises:
        InvalidMessage: it is still to be computed.
    """
    if isinstance(result, LAZY):
        _let_go(result)
        raise InvalidMessage(
            f"the result of {name}: a {type(result).__name__} has no value yet; give back the value, or a list"
        )
    return result


@contextmanager
def applications(*ours: type[Exception]) -> Iterator[None]:
    """Notes whose an error is that comes out of the application's code.

    Args:
        ours: what the engine itself raises there.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, ours):
            vars(error).setdefault(WHOSE, True)
        raise


@contextmanager
def engines() -> Iterator[None]:
    """Notes that an error is the engine's own which goes through the application's code."""
    try:
        yield
    except Exception as error:
        vars(error).setdefault(WHOSE, False)
        raise


WHOSE = "_of_the_application"


def is_applications(error: BaseException) -> bool:
    """Whether an error came out of the application's code."""
    return bool(vars(error).get(WHOSE))


def is_engines(error: BaseException, kinds: Any) -> bool:
    """Whether an error is of one of these kinds, and the engine's own: not out of the application's code."""
    return isinstance(error, kinds) and not is_applications(error)


@contextmanager
def contained(name: str, *ours: type[Exception]) -> Iterator[None]:
    """Runs code of the application's; `ours` is what the engine itself raises there.

    What ends programs (SystemExit, KeyboardInterrupt, ...) is an error like any other: a worker is stopped by its
    supervisor, and never by an exception while such code runs. A copy of the worker that the code has made by a fork
    ends here: it shares the worker's database connection and must not go on.

    Raises:
        ExitRefused, Permanent: see `call`.
    """
    worker = os.getpid()
    db = connections[DEFAULT_DB_ALIAS]
    before = _depth(db)
    try:
        with applications(*ours):
            yield
    except Exception:
        raise
    except BaseException as ending:
        said = f": {ending}" if str(ending) else ""
        raise ExitRefused(
            "%(function)s raised %(error)s, which ends programs; a step fails by raising an Exception",
            name,
            f"{type(ending).__name__}{said}",
        ) from ending
    finally:
        if os.getpid() != worker:
            os._exit(0)
        left_open = _depth(db) != before
        if left_open:
            _clear(db, before)
    if left_open:
        raise Permanent(
            "%(function)s left a database transaction open; what it wrote there is undone",
            name,
        )


@contextmanager
def blocking_transaction(name: str) -> Iterator[None]:
    """Runs code of the application's in a transaction of ours, which the database ends if it stands idle for too long.

    Only here is known that this code was why, and not the engine on a machine that others keep busy.

    Raises:
        StoodIdle: the database has ended it.
    """
    begun = time.monotonic()
    try:
        with applications():
            yield
        if time.monotonic() - begun > A_MOMENT:
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
    except DatabaseError as error:
        if not stood_idle(error):
            raise
        raise StoodIdle(
            "%(function)s kept its transaction waiting until the database ended it: do what takes long after "
            "the commit",
            name,
        ) from error


def _depth(db: BaseDatabaseWrapper) -> tuple[bool, int, bool]:
    """How deep the connection is in transactions, and whether one is begun by hand."""
    by_hand = db.connection is not None and not db.autocommit
    return db.in_atomic_block, len(db.savepoint_ids), by_hand


def _clear(db: BaseDatabaseWrapper, before: tuple[bool, int, bool]) -> None:
    """Makes the connection usable again; in a transaction of ours the error that follows rolls it back."""
    in_atomic_block, savepoints, _ = before
    if in_atomic_block:
        del db.savepoint_ids[savepoints:]
        del db.atomic_blocks[savepoints + 1 :]
        return
    db.in_atomic_block = False
    db.savepoint_ids.clear()
    db.atomic_blocks.clear()
    db.close()


def _let_go(result: Any) -> None:
    """Closes a generator or a coroutine, so that Python does not complain of it later."""
    if callable(close := getattr(result, "close", None)):
        close()
