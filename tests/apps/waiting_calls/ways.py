"""How a call spends its time, and the journal of what has begun and ended."""

import asyncio
import inspect
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from decimal import getcontext
from pathlib import Path
from typing import Any, NamedTuple

from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import OperationalError, connection

from orchestrator.models import Worker
from tests.services.journal import Journal

JOURNAL = Journal("waiting_calls.journal")


class Entry(NamedTuple):
    """Something that happened to a call, in a process."""

    what: str
    name: str
    worker: int


async def spend(name: str, how: str) -> str:
    """Spend time as one is told: at once, or in one of the ways."""
    note("begin", name)
    way, _, given = how.partition(" ")
    try:
        await WAYS[way](given)
    except asyncio.CancelledError:
        note("cancelled", name)
        raise
    note("end", name)
    return name


async def at_once(given: str) -> None:
    """Take no time."""


async def wait(seconds: str) -> None:
    await asyncio.sleep(float(seconds))


async def gate(name: str) -> None:
    """Wait until a gate is open."""
    while not is_open(name):  # noqa: ASYNC110  # another process opens it
        await asyncio.sleep(0.02)


async def block(name: str) -> None:
    """Hold up all others, the first time only."""
    if not is_open(name):
        open_gate(name)
        time.sleep(300)  # noqa: ASYNC251  # that is what it is for


async def deaf(given: str) -> None:
    """Pay no heed to being cancelled, the first time only."""
    if is_open(given):
        return
    open_gate(given)
    while True:
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.02)


async def fail(times: str) -> None:
    raise ValueError("it did not work")


async def leave(given: str) -> None:
    raise SystemExit(3)


async def leave_in_a_task(given: str) -> None:
    await asyncio.gather(asyncio.create_task(leave(given)))


async def end_the_loop(how: str) -> None:
    """Leave something in the event loop that ends it, the first time only."""
    if is_open("ended"):
        return
    open_gate("ended")
    loop = asyncio.get_running_loop()
    loop.call_soon(loop.stop if how == "stop" else sys.exit)
    await asyncio.sleep(0.2)


async def have_no_threads(given: str) -> None:
    """Have the machine start no thread for a call as long as a gate is open."""
    start = threading.Thread.start

    def refused(thread: threading.Thread) -> None:
        if is_open(given) and thread.name.startswith("steprun"):
            raise RuntimeError("can't start new thread")
        start(thread)

    threading.Thread.start = refused  # type: ignore[assignment,method-assign]


async def look(given: str) -> None:
    """Look at the tasks that it has begun, as libraries do before they cancel one."""
    task = asyncio.create_task(asyncio.sleep(300))
    state = inspect.getcoroutinestate(task.get_coro())  # type: ignore[arg-type]
    assert state == inspect.CORO_CREATED
    await asyncio.sleep(0)
    state = inspect.getcoroutinestate(task.get_coro())  # type: ignore[arg-type]
    assert state == inspect.CORO_SUSPENDED
    [frame] = task.get_stack()
    assert frame.f_code.co_name == "sleep"
    task.cancel()


async def spoil(how: str) -> None:
    """Close what all calls need, the first time only."""
    if is_open("spoilt"):
        return
    open_gate("spoilt")
    loop: Any = asyncio.get_running_loop()
    if how == "files":
        os.closerange(3, 1024)
    elif how == "files, and wait":
        os.closerange(3, 1024)
        await asyncio.sleep(0)
    elif how == "files in a thread":
        await asyncio.to_thread(os.closerange, 3, 1024)
    elif how == "selector":
        loop._selector.close()
    elif how == "selector later":
        loop.call_soon(loop._selector.close)
        await asyncio.sleep(300)


def tell(statement: str) -> None:
    """Send a statement, of which the connection may be lost."""
    with suppress(OperationalError), connection.cursor() as cursor:
        cursor.execute(statement)


SET = {
    "postgresql": "SET search_path TO tenant_a",
    "sqlite": "PRAGMA query_only = ON",
}
ASK = {
    "postgresql": "SELECT current_setting('search_path')",
    "sqlite": "PRAGMA query_only",
}


async def leave_behind(what: str) -> None:
    """Leave something in the worker that other calls would meet."""
    if what == "decimals":
        getcontext().prec = 3
    elif what == "session":
        await sync_to_async(tell)(SET[connection.vendor])
    elif what == "session of a thread":
        await asyncio.to_thread(tell, SET[connection.vendor])
    elif what == "lost connection":
        await sync_to_async(tell)("SELECT pg_terminate_backend(pg_backend_pid())")
    elif what == "executor":
        await asyncio.get_running_loop().shutdown_default_executor()
    elif what == "other executor":
        with ThreadPoolExecutor() as threads:
            asyncio.get_running_loop().set_default_executor(threads)
    elif what == "transaction":
        await sync_to_async(tell)("BEGIN")


def ask_session() -> str:
    with connection.cursor() as cursor:
        cursor.execute(ASK[connection.vendor])
        return str(cursor.fetchone()[0])


async def seen() -> str:
    """Return what a call meets: decimals, sessions, and whether a table can be written."""
    await sync_to_async(note)("seen", "")
    await Worker.objects.filter(id="nobody").adelete()
    sessions = await sync_to_async(ask_session)(), await asyncio.to_thread(ask_session)
    return f"{getcontext().prec} {sessions}"


async def cancel_all(given: str) -> None:
    """Cancel all other tasks of the event loop."""
    for task in asyncio.all_tasks():
        if task is not asyncio.current_task():
            task.cancel()
    await asyncio.sleep(0.1)


async def gather(name: str) -> None:
    """Wait in tasks of one's own until a gate is open."""
    await asyncio.gather(gate(name), gate(name))


WAYS: dict[str, Callable[[str], Awaitable[None]]] = {"": at_once} | {
    way.__name__: way
    for way in (
        *(wait, gate, block, deaf, fail, leave, look),
        *(leave_in_a_task, end_the_loop, have_no_threads),
        *(spoil, leave_behind, cancel_all, gather),
    )
}


def spend_thread(name: str, how: str) -> str:
    """Spend time in a thread: at once, or until a gate is open."""
    note("begin", name)
    way, _, given = how.partition(" ")
    while way == "gate" and not is_open(given):
        time.sleep(0.02)
    if way == "fail":
        raise ValueError("it did not work")
    note("end", name)
    return name


def is_open(name: str) -> bool:
    """Whether a gate is open."""
    return gate_file(name).exists()


def open_gate(name: str) -> None:
    """Let all go on that wait for a gate."""
    gate_file(name).touch()


def gate_file(name: str) -> Path:
    return Path(settings.DATA_DIR / f"waiting_calls.{name}.gate")


def note(what: str, name: str) -> None:
    """Write an entry, which nothing rolls back."""
    JOURNAL.note(what, name, os.getpid())


def entries(what: str = "begin", name: str = "") -> list[Entry]:
    """Return what has begun, or ended, in order."""
    rows = [Entry(kind, its, int(worker)) for kind, its, worker in JOURNAL.lines()]
    return [row for row in rows if row.what == what and name in ("", row.name)]


def journal() -> Path:
    """Return where the journal is."""
    return JOURNAL.path


def forget() -> None:
    """Close all gates and empty the journal."""
    for path in settings.DATA_DIR.glob("waiting_calls.*"):
        path.unlink(missing_ok=True)
