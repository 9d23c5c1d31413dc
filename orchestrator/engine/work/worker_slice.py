"""A worker at a queue for one time slice: the watch over its work, its unbegun claims and its unstored results.

While a worker runs a function it can neither begin its other claims nor store its results. It shows both to its
supervisor, which after a moment has other workers take them over (`take_over`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from orchestrator.configuration.conf import conf
from orchestrator.engine.work import leases
from orchestrator.models import Work

T = TypeVar("T")

MOST = 50
"""The most results in one commit."""

BEGIN_SECONDS = 0.1
"""How long after a claim a worker begins claimed work; it releases the rest."""

HOLD_SECONDS = 0.01
"""How long a worker holds a result while it goes on with other work."""

TAKE_SECONDS = HOLD_SECONDS + 0.006
"""How long results are held before other workers store them.

By then they see what the worker wrote in its own time. Most often the worker itself stores its results together with
that of a quick element that is running.
"""


MOST_LATE = 10.0
"""How many times longer a worker takes at most for its bounds when the machine is crowded."""

MEASURED_SECONDS = 0.1
"""The running and waiting of a thread after which its lateness is measured anew."""


FORGOTTEN_SECONDS = 1.0
"""The time after which a lateness that is not measured anew no longer holds: the thread hardly runs."""


class Lateness:
    """How much longer the work of this thread takes, because it has to wait for a processor.

    The bounds above are for a thread that runs when it can. On a crowded machine they would be over before a second
    result came, and each would be stored by itself, which takes far more of the processor. So a worker multiplies them.
    Linux tells how long a thread ran and how long it waited (proc_pid_schedstat(5)); elsewhere the factor is 1.
    """

    def __init__(self) -> None:
        self.factor = 1.0
        self._before = (0.0, 0.0)
        self._at = 0.0
        self._looked = float("-inf")

    def measure(self) -> None:
        """Measure the factor anew, if enough has run since the last time. It holds for one batch of work.

        A thread that mostly sleeps is not late, whatever was measured before.
        """
        at = time.monotonic()
        if at - self._looked < MEASURED_SECONDS:
            return
        self._looked = at
        ran, waited = now = _processor_times()
        ran, waited = ran - self._before[0], waited - self._before[1]
        is_same = min(ran, waited) >= 0  # else it is a new process
        enough = is_same and ran + waited > MEASURED_SECONDS
        if is_same and not enough and at - self._at < FORGOTTEN_SECONDS:
            return
        self._before, self._at, self.factor = now, at, 1.0
        if enough:
            self.factor = min((ran + waited) / max(ran, 0.001), MOST_LATE)


lateness = Lateness()
"""The lateness of the thread that runs this process's work."""


def _processor_times() -> tuple[float, float]:
    """Return for how many seconds this thread has run, and has waited for a processor."""
    try:
        ran, waited, _slices = Path("/proc/thread-self/schedstat").read_text().split()
    except (OSError, ValueError):
        return 0.0, 0.0
    return int(ran) / 1e9, int(waited) / 1e9


class UnstoredResult(NamedTuple):
    """A result that is not stored yet.

    Args:
        key: its visit's key.
        attempt: the attempt that returned it.
        result: its JSON values.
        checksum: their checksum.
    """

    key: int
    attempt: int
    result: Any
    checksum: str


class Claim(NamedTuple):
    """A piece of claimed work.

    Args:
        work: its name (`leases.work_name`).
        order: the same text for work that must run in order; "" for work without an order.
    """

    work: str
    order: str


class HeldWork:
    """The place where a worker shows its unbegun claims and its unstored results.

    This class is for a worker without a supervisor: such a worker releases its claims, and stores each result at once.
    """

    def show_claimed(self, claims: Sequence[Claim], asked: float) -> None:
        """Show claims in the order in which they begin, asked for at a monotonic time; the first has begun."""

    def show_begun(self, number: int, free: int = 0) -> None:
        """Show that the worker has come to another claim. Only then it looks whether it may still begin it.

        Args:
            number: the claim's number, counted from 0.
            free: the number of first claims that other workers may take over nevertheless: they are only decided.
        """

    def release(self) -> None:
        """Show that no claim waits any more."""

    def show_result(self, result: UnstoredResult) -> bool:
        """Show a held result. Return False if no supervisor sees it: the worker must store it now."""
        return False

    def show_calling(self) -> None:
        """Show that the worker is about to call another function, which may take its time.

        Until then, and from the next result on, the worker stores its results itself.
        """

    def show_stored(self) -> None:
        """Show that no result is held any more."""


UNSEEN = HeldWork()


class Holding(Generic[T]):
    """Results that are held for a moment before they are stored, so that several share a commit."""

    def __init__(self) -> None:
        self._held: dict[Hashable, T] = {}
        self._since = 0.0

    def __bool__(self) -> bool:
        return bool(self._held)

    def __contains__(self, key: object) -> bool:
        return key in self._held

    def hold(self, key: Hashable, one: T) -> None:
        """Hold a result under a key of its own."""
        if not self._held:
            self._since = time.monotonic()
        self._held[key] = one

    @property
    def waited(self) -> float:
        """Seconds since the first result was held."""
        return time.monotonic() - self._since

    @property
    def are_due(self) -> bool:
        """Whether the results are to be stored now."""
        full = len(self._held) >= MOST
        late = self.waited > HOLD_SECONDS * lateness.factor
        return bool(self._held) and (full or late)

    def take(self) -> list[T]:
        """Return the held results, to be stored."""
        held, self._held = self._held, {}
        return [*held.values()]


Reporting = Callable[[], AbstractContextManager[None]]
"""Reports a heartbeat of the piece of work. The engine's own work inside this context does not count against it."""


class Watch(Protocol):
    """A context manager around one piece of work."""

    def __call__(
        self, seconds: float, work: str, heartbeat: float | None = None
    ) -> AbstractContextManager[Reporting]:
        """Watch it.

        Args:
            seconds: how long it may take.
            work: its name, for `leases.end_leases`.
            heartbeat: seconds within which it must report, again and again.
        """


def no_watch(
    seconds: float, work: str, heartbeat: float | None = None
) -> AbstractContextManager[Reporting]:
    """Watch nothing."""
    return nullcontext(nullcontext)


@dataclass(frozen=True)
class WorkerSlice:
    """A worker at a queue, for one time slice.

    Args:
        queue: the queue's name.
        owner: the worker's boot id.
        over: returns whether the slice has ended or the worker is to stop; called between pieces of work.
        watch: wraps each piece of work, with the seconds that it may take.
        held: where the worker shows its unbegun claims and its unstored results.
    """

    queue: str
    owner: str
    over: Callable[[], bool] = lambda: False
    watch: Watch = no_watch
    held: HeldWork = UNSEEN

    def watched(
        self, work: Work, seconds: float = 0
    ) -> AbstractContextManager[Reporting]:
        """Watch the handling of a piece of work: for its own seconds, and for as long as a transaction may take.

        The supervisor ends a worker that hangs, and the lost attempt counts.
        """
        return self.watch(seconds + conf().EVENT_TIMEOUT, leases.work_name(work))
