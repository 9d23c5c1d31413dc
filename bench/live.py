"""From a commit to the pages that watch: sockets on a real web server, and events that move processes."""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

from bench import checks, clock
from bench.event_game import EventGame
from bench.game import Figures, Size
from bench.measurement import Measurement
from bench.ping import PingPong
from bench.site import site, viewer
from bench.sockets import Sockets, Told, allow_files
from bench.workers import fork, running
from orchestrator.models import Checkpoint

SECONDS = 10
"""For how long changes are made."""
LATE_SECONDS = 10
"""How long after the last change a page may be told of it."""
LIST = "overview"
CHANGES = 50
"""A second, usually."""


class LiveGame(EventGame):
    """So many changes a second, and so many sockets that each watch a process of its own, or all the list.

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
            self.sockets = Sockets(
                address,
                cookie,
                self._watched(),
                Path(folder) / "told",
                multiprocessing.Event(),
                multiprocessing.Event(),
            )
            pid = fork(self.sockets.run)
            with running([pid]):
                self.wait(self.sockets.open.is_set, "the connection of all sockets")
                yield

    def prepare(self) -> None:
        """They are connected."""

    def run(self) -> Figures:
        units = SECONDS * self.changes
        last = self._checkpoints().latest("pk").pk
        before, begun = self.team.used(), time.time()
        for number in range(units):
            self._send_one()
            early = begun + (number + 1) / self.changes - time.time()
            time.sleep(max(early, 0))
        self._wait()
        seconds = time.time() - begun
        used = self.team.figures(before, units)
        time.sleep(LATE_SECONDS)
        self.sockets.over.set()
        self.wait(self.sockets.file.exists, "what the sockets were told")
        changes = self._checkpoints().filter(pk__gt=last)
        return {"per_second": units / seconds, **used, **self._delays(changes)}

    def _watched(self) -> list[str]:
        if self.on_list:
            return [LIST] * self.size.count
        return [f"instance:{process}" for process in self.waiting]

    def _checkpoints(self) -> Any:
        return Checkpoint.objects.filter(instance__name=self.definition.name)

    def _delays(self, changes: Any) -> Figures:
        """Milliseconds from each commit to each socket that it concerns, and to the last of them."""
        rows = changes.values_list(
            "instance_id", "revision", clock.committed(changes, "at")
        )
        told = self.sockets.told()
        found = delays_on_list if self.on_list else delays_of_each
        each = found([(id, rev, at.timestamp()) for id, rev, at in rows], told)
        missed = sum(not delays or None in delays for delays in each)
        checks.equal(f"{self.name}: changes of which a socket never heard", missed, 0)
        taken = [delay * 1000 for delays in each for delay in delays if delay]
        last = [max(delay * 1000 for delay in delays if delay) for delays in each]
        return {
            "p50_ms": statistics.median(taken),
            "p95_ms": statistics.quantiles(taken, n=20)[18],
            "last_p50_ms": statistics.median(last),
        }


Changed = tuple[UUID, int, float]
"""A process, its revision, and when that was committed."""


def delays_of_each(
    changes: Sequence[Changed], told: Sequence[Told]
) -> list[list[float | None]]:
    """For each change: until the socket that watches its process was told of it, or of a later one."""
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
    """For each change: until each socket was told for the next time that the list has changed."""
    heard = defaultdict[int, list[float]](list)
    for one in told:
        heard[one.socket].append(one.at)
    return [[next_after(at, times) for times in heard.values()] for _, _, at in changes]


def next_after(at: float, times: Sequence[float]) -> float | None:
    """How long after a moment the next of these times is."""
    place = bisect_left(times, at)
    return times[place] - at if place < len(times) else None


def measurement(size: Size, changes: int | None = None) -> Measurement:
    """Sockets that each watch a process, and sockets that all watch the list."""
    pace = changes or CHANGES
    return Measurement(
        "live",
        [LiveGame(size, pace, on_list=where) for where in (False, True)],
        note=f"For {SECONDS} s. From the commit to the receipt of a hint by the socket; on the list of the next hint, "
        "as one tells of all changes before it. The last is the slowest socket of a change, in the median of changes.",
    )
