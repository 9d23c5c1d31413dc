"""From a commit to the pages that watch: sockets on a real web server, and events that move processes."""

from __future__ import annotations

import statistics
import tempfile
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing import Event
from pathlib import Path
from typing import Any
from uuid import UUID

from bench import checks, clock
from bench.event_game import EventGame
from bench.fetching import FetchingPages
from bench.game import Figures, Size
from bench.measurement import Measurement
from bench.ping import PingPong
from bench.real_page import RealPage
from bench.site import site, viewer
from bench.sockets import Sockets, Told, allow_files
from bench.workers import end_after, fork
from orchestrator.engine.processes.events import Envelope
from orchestrator.models import Checkpoint

SECONDS = 10
"""For how many seconds the game makes changes."""
LATE_SECONDS = 10
"""How long after the last change a page may get its hint."""
LIST = "overview"
CHANGES = 50
"""The usual number of changes a second."""


Changed = tuple[UUID, int, float]
"""A process, its revision, and the time of the commit."""

Delays = Callable[[Sequence[Changed], Sequence[Told]], list[list[float | None]]]


class LiveGame(EventGame):
    """`changes` a second, and `count` sockets that each watch a process of its own, or the whole list.

    Args:
        size: `count` sockets.
        changes: a second.
        on_list: whether all watch the list.
    """

    unit = "change"

    def __init__(self, size: Size, changes: int, *, on_list: bool) -> None:
        where = "the list" if on_list else "a process each"
        name = f"{size.count:,} sockets on {where}, {changes} changes a second"
        super().__init__(size, name, PingPong)
        self.changes = changes
        self.on_list = on_list
        self.matches = self.matches if on_list else size.count

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        allow_files(self.size.count)
        with (
            tempfile.TemporaryDirectory() as folder,
            super().at_hand(),
            site(Path(folder) / "site.log", self.size.patience) as address,
            viewer() as cookie,
        ):
            self.clients = self._clients(address, cookie, Path(folder))
            with end_after([fork(client.run) for client in self.clients]):
                for client in self.clients:
                    self.wait(client.open.is_set, "the connection of all clients")
                yield

    def prepare(self) -> None:
        """Do nothing: the sockets are connected."""

    def run(self) -> Figures:
        units = SECONDS * self.changes
        last = self._checkpoints().latest("pk").pk
        before, begun = self.team.used(), time.time()
        for _ in pace(units, self.changes):
            self._send_one()
        self._wait()
        seconds = time.time() - begun
        used = self.team.figures(before, units)
        time.sleep(LATE_SECONDS)
        for client in self.clients:
            client.over.set()
            self.wait(client.file.exists, "what the clients were told")
        changes = self._checkpoints().filter(pk__gt=last)
        return {"per_second": units / seconds, **used, **self._delays(changes)}

    def _clients(
        self, address: str, cookie: str, folder: Path
    ) -> list[Sockets | RealPage]:
        """Return the clients that listen, each opened in a process of its own."""
        self.sockets = Sockets(
            address, cookie, self._watched(), folder / "told", Event(), Event()
        )
        return [self.sockets]

    def _watched(self) -> list[str]:
        if self.on_list:
            return [LIST] * self.size.count
        return [f"instance:{process}" for process in self.waiting]

    def _checkpoints(self) -> Any:
        return Checkpoint.objects.filter(instance__name=self.definition.name)

    def _delays(self, changes: Any) -> Figures:
        """Return the milliseconds from each commit to each socket that it concerns, and to the last of them."""
        found = delays_on_list if self.on_list else delays_of_each
        each = self._heard(changes, self.sockets.told(), found)
        taken = [delay for delays in each for delay in delays]
        return {
            "p50_ms": statistics.median(taken),
            "p95_ms": statistics.quantiles(taken, n=20)[18],
            "last_p50_ms": statistics.median(max(delays) for delays in each),
        }

    def _heard(
        self, changes: Any, told: Sequence[Told], found: Delays
    ) -> list[list[float]]:
        """Return the milliseconds from each commit to each hint of it.

        Raises:
            BenchFailed: a client got no hint.
        """
        rows = changes.values_list(
            "instance_id", "revision", clock.commit_time(changes, "at")
        )
        each = found([(id, rev, at.timestamp()) for id, rev, at in rows], told)
        missed = sum(not delays or None in delays for delays in each)
        checks.check_equal(
            f"{self.name}: changes of which a socket never heard", missed, 0
        )
        return [
            [delay * 1000 for delay in delays if delay is not None] for delays in each
        ]


class PagesGame(LiveGame):
    """`changes` a second, and `count` open pages, of which all but one are clients that fetch as pages do.

    The first is a real one, and its process has every tenth of the changes.
    """

    REAL = 10
    """Of so many changes one is the real page's."""

    def __init__(self, size: Size, changes: int) -> None:
        super().__init__(size, changes, on_list=False)
        self.name = f"{size.count:,} open pages that fetch, {changes} changes a second"

    def _clients(
        self, address: str, cookie: str, folder: Path
    ) -> list[Sockets | RealPage]:
        real, *others = self.waiting
        watched = [f"instance:{process} overview" for process in others]
        self.sockets = FetchingPages(
            address, cookie, watched, folder / "told", Event(), Event()
        )
        self.page = RealPage(
            address, cookie, str(real), folder / "shown", Event(), Event()
        )
        return [self.sockets, self.page]

    def _envelope(self) -> Envelope:
        sent = super()._envelope()
        its_turn = self.sent % self.REAL == 0
        return replace(sent, process_id=self.waiting[0]) if its_turn else sent

    def _delays(self, changes: Any) -> Figures:
        told = super()._delays(changes.exclude(instance_id=self.waiting[0]))
        own = changes.filter(instance_id=self.waiting[0])
        each = self._heard(own, self.page.told(), delays_of_each)
        shown = [delay for delays in each for delay in delays]
        return {
            **told,
            "shown_p50_ms": statistics.median(shown),
            "shown_p95_ms": statistics.quantiles(shown, n=20)[18],
        }


def pace(number: int, a_second: float) -> Iterator[int]:
    """Yield so many numbers at so many a second; after a delay they come faster, until it is made up for."""
    begun = time.time()
    for one in range(number):
        yield one
        early = begun + (one + 1) / a_second - time.time()
        time.sleep(max(early, 0))


def delays_of_each(
    changes: Sequence[Changed], told: Sequence[Told]
) -> list[list[float | None]]:
    """Return for each change how long its socket waited for the hint of it, or of a later one."""
    heard = defaultdict[UUID, list[Told]](list)
    for one in told:
        heard[one.process].append(one)
    return [
        [next((o.at - at for o in heard[process] if o.revision >= revision), None)]
        for process, revision, at in changes
    ]


def delays_on_list(
    changes: Sequence[Changed], told: Sequence[Told]
) -> list[list[float | None]]:
    """Return for each change how long each socket waited for the next hint of the list."""
    heard = defaultdict[int, list[float]](list)
    for one in told:
        heard[one.socket].append(one.at)
    return [[next_after(at, times) for times in heard.values()] for _, _, at in changes]


def next_after(at: float, times: Sequence[float]) -> float | None:
    """Return the time from a moment to the next of these times."""
    place = bisect_left(times, at)
    return times[place] - at if place < len(times) else None


def measurement(size: Size, changes: int = CHANGES) -> Measurement:
    """Return the games of sockets that each watch a process, and of sockets that all watch the list."""
    return Measurement(
        "live",
        [
            *(LiveGame(size, changes, on_list=where) for where in (False, True)),
            PagesGame(size, changes),
        ],
        note=f"For {SECONDS} s. From the commit to the receipt of a hint by the socket; on the list of the next hint, "
        "as one tells of all changes before it. The last is the slowest socket of a change, in the median of changes.",
    )
