"""The time until a page shows something on a phone, beside a page without content."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.event_game import EventGame
from bench.game import Figures, Size
from bench.measurement import Measurement, Ratio
from bench.phone import Phone
from bench.ping import PingPong
from bench.site import site, viewer
from bench.workers import end_after, fork

NOTHING, HOME, PROCESS = "nothing but a word", "the first page", "a process"
PAINT = "paint_p50_ms"


class FirstPaint(EventGame):
    """One page, opened so often, with 200 waiting processes.

    Args:
        size: `count` visits.
        name: the name of the page.
        path: its address, in which {process} is the id of one of them.
        shows: a selector of what the page must show.
    """

    unit = "page"
    has_workers = False

    def __init__(self, size: Size, name: str, path: str, shows: str) -> None:
        super().__init__(size, name, PingPong)
        self.path = path
        self.shows = shows

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with (
            tempfile.TemporaryDirectory() as folder,
            super().at_hand(),
            site(Path(folder) / "site.log", self.size.patience) as address,
            viewer() as cookie,
        ):
            path = self.path.format(process=self.waiting[0])
            file = Path(folder) / "painted"
            count = self.size.count
            self.phone = Phone(address, cookie, path, self.shows, count, file)
            yield

    def prepare(self) -> None:
        """Do nothing: the phone opens the page in `run`."""

    def run(self) -> Figures:
        begun = time.perf_counter()
        with end_after([fork(self.phone.run)]):
            self.wait(self.phone.file.exists, "the visits")
        painted = self.phone.painted()
        first, again = zip(*painted, strict=True)
        return {
            "per_second": 2 * len(painted) / (time.perf_counter() - begun),
            PAINT: statistics.median(first),
            "paint_p95_ms": statistics.quantiles(first, n=20)[18],
            "again_p50_ms": statistics.median(again),
        }

    def check(self) -> None:
        """Do nothing: the phone has waited for the selector."""


def measurement(size: Size) -> Measurement:
    """Return the first page and a process's, beside an answer of one word."""
    return Measurement(
        "paint",
        [
            FirstPaint(size, NOTHING, "/livez", "body"),
            FirstPaint(size, HOME, "/", "#live"),
            FirstPaint(size, PROCESS, "/processes/{process}/", "#live"),
        ],
        [Ratio("of nothing", PAINT, [HOME, PROCESS], NOTHING)],
        note="To the first contentful paint, in Chromium with the processor slowed down four times, and "
        "a line of 1.6 Mbit/s with 150 ms there and back. Of a first visit; again: of a second.",
    )
