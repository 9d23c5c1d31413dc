"""How a piece of work spends its time, and the journal of what has begun and ended."""

import ctypes
import os
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

from tests.services.journal import Journal

JOURNAL = Journal("long_work.journal")

ACTIONS: dict[str, Callable[[], object]] = {}
"""What a test has a piece of work do in its own process, by the name of the work."""


class Entry(NamedTuple):
    """Something that began or ended, at a time of the monotonic clock, in a process."""

    what: str
    name: str
    at: float
    worker: int


def spend(name: str, how: str) -> str:
    """Spend time as one is told: "at once", "sleep 3", "hold 3", while nothing else of the process runs, or "kill"."""
    note("begin", name)
    way, _, seconds = how.partition(" ")
    if way in WAYS:
        WAYS[way](float(seconds))
    if way == "kill" and count(name) == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    ACTIONS.get(name, lambda: None)()
    note("end", name)
    return name


def count(name: str) -> int:
    """Return how often a piece of work has begun."""
    return sum(entry.name == name for entry in entries())


def hold(seconds: float) -> None:
    """Stay in one call that does not let go of the interpreter."""
    ctypes.PyDLL(None).usleep(int(seconds * 1_000_000))


WAYS = {"sleep": time.sleep, "hold": hold}


def note(what: str, name: str) -> None:
    """Write an entry, which nothing rolls back."""
    JOURNAL.note(what, name, time.monotonic(), os.getpid())


def entries(what: str = "begin") -> list[Entry]:
    """Return what has begun, or ended, in order."""
    return [
        Entry(kind, name, float(at), int(worker))
        for kind, name, at, worker in JOURNAL.lines()
        if kind == what
    ]
