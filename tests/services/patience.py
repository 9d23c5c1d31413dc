"""Waiting for what other processes do, on machines that others use too."""

import time
from collections.abc import Callable

from tests.services.sizes import FULL

SHARED = 10.0
"""How many times longer than on a quiet machine something may take on one that has much else to do."""

A_MINUTE = 60.0
"""Seconds for which what must happen is waited for at least: waiting costs nothing where it does happen."""


def wait_for(
    ready: Callable[[], bool], seconds: float, what: Callable[[], object] = lambda: ""
) -> None:
    """Wait until `ready`, looking again every 50 ms.

    Args:
        ready: what is waited for.
        seconds: how long that takes at most on a quiet machine; it is given much more.
        what: what to say when it does not happen.

    Raises:
        TimeoutError: it did not happen; with what `what` says then.
    """
    patience = max(A_MINUTE, seconds * SHARED)
    deadline = time.monotonic() + patience
    while not ready():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {patience:g} s: {what()}")
        time.sleep(0.05)


def bar(seconds: float) -> float:
    """Return how many seconds something may last that takes less than so many on a quiet machine.

    Full runs are held to it, as far as their own other stages let them; others tell what is slow from what never comes.
    """
    return seconds * (crowding(work=0.2) if FULL else SHARED)


def quickest(
    action: Callable[[], object],
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
) -> float:
    """Time an action up to three times, until it takes less than so many seconds; return the least that it took.

    Others' load only ever makes something slower, so the quickest is the action's own.
    """
    lasted: list[float] = []
    while len(lasted) < 3 and not (lasted and lasted[-1] < seconds):
        begun = clock()
        action()
        lasted.append(clock() - begun)
    return min(lasted)


def crowding(work: float = 0.02) -> float:
    """Measure how many times longer than alone a program takes just now, because others use the machine.

    Args:
        work: seconds of computing to measure it by.
    """
    begun, worked = time.monotonic(), time.process_time()
    while time.process_time() - worked < work:
        pass
    return max(1.0, (time.monotonic() - begun) / work)
