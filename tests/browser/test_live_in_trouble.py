"""Many open pages while half of what they are to be told is lost and Valkey dies: soon after that none is stale."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from multiprocessing import Array, Event, Value
from multiprocessing.sharedctypes import Synchronized, SynchronizedArray
from pathlib import Path
from statistics import fmean
from typing import Any
from uuid import UUID, uuid4

import pytest
from channels_redis.pubsub import RedisSingleShardConnection
from playwright.sync_api import Page, Route, expect

from bench import clock
from bench.fetching import FetchingPages
from bench.live import pace
from bench.ping import Missed, PingPong, Returned, Served, register_handlers
from bench.run import QUEUE, registered_definition
from bench.site import viewer
from bench.sockets import allow_files
from bench.workers import end_after as children
from bench.workers import fork, workers
from orchestrator import send_event, start_process
from orchestrator.definition import Event as Happened
from orchestrator.engine.loops.drain import drain
from orchestrator.models import Checkpoint, InboxEvent, ProcessInstance
from tests.browser.conftest import live
from tests.browser.orders import failed
from tests.services.patience import crowding, wait_for
from tests.services.site import Site
from tests.services.sizes import size
from tests.services.valkey import ValkeyServer

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.once]

PAGES = size(12, full=200)
"""How many are open: one shows the list, each of the others a process of its own."""

CHANGES = size(20, full=50)
"""A second."""

SECONDS = size(10, full=20)
"""For how long there are so many, until the last of each process."""

ITS_TURN = 10
"""One in so many changes is of the process that the browser shows."""

STALE = 12.0
"""Seconds after the last commit in which nothing is old on any page, for most of which each has to ask.

As all times here on a machine that has nothing else to do.
"""

SHOWS_STEP = """([revision, step]) => [document.getElementById("state").dataset.revision,
    document.documentElement.dataset.highlighted].includes(String(revision))
    && [...document.querySelectorAll(".picture .is-current")].map(group => group.id).join() === `n_${step}`"""

SHOWS_STATUSES = """(statuses) => {
    const rows = [...document.querySelectorAll("#rows [data-row]")];
    const right = row => row.querySelector(".chip").textContent.trim() === statuses[row.dataset.row];
    return rows.length > 0 && rows.every(right);
}"""


@dataclass(frozen=True)
class Losing:
    """What becomes of announcements that are made here, and in processes that are forked here."""

    dice: random.Random = field(default_factory=lambda: random.Random(7))
    all: Any = field(default_factory=Event)
    """Set when no more of them are to arrive at all: the worst half is one with the last change of each process."""
    sent: Synchronized[int] = field(default_factory=lambda: Value("q"))
    lost: Synchronized[int] = field(default_factory=lambda: Value("q"))

    def lose(self) -> bool:
        """Tell whether the next one is to be lost."""
        lost = self.all.is_set() or self.dice.random() < 0.5
        count = self.lost if lost else self.sent
        with count:
            count.value += 1
        return lost


@pytest.fixture
def losing(monkeypatch: pytest.MonkeyPatch) -> Losing:
    """Half of the announcements get no further than to the connection that would take them to Valkey."""
    losing, publish = Losing(), RedisSingleShardConnection.publish

    async def perhaps(shard: object, channel: str, message: bytes) -> None:
        if not losing.lose():
            await publish(shard, channel, message)

    monkeypatch.setattr(RedisSingleShardConnection, "publish", perhaps)
    return losing


@dataclass(frozen=True)
class WatchedPages(FetchingPages):
    """Pages in a process of their own of which others can see what each shows."""

    fetched: SynchronizedArray[int]
    painted: SynchronizedArray[int]

    def shows(self, number: int, revision: int) -> None:
        self.fetched[number] = revision
        self.paints(number, revision)

    def paints(self, number: int, revision: int) -> None:
        self.painted[number] = max(self.painted[number], revision)


@contextmanager
def opened(
    site: Site, processes: Sequence[UUID], folder: Path
) -> Iterator[WatchedPages]:
    """Open a page for each process, which fetches as one in a browser does."""
    watched = [f"instance:{process} overview" for process in processes]
    revisions = Array("q", len(watched)), Array("q", len(watched))
    allow_files(len(watched))
    with viewer() as cookie:
        pages = WatchedPages(
            site.url, cookie, watched, folder / "told", Event(), Event(), *revisions
        )
        with children([fork(pages.run)]):
            wait_for(pages.open.is_set, 20)
            yield pages


@contextmanager
def moving(number: int) -> Iterator[list[UUID]]:
    """So many processes, and workers that move them for each event."""
    with registered_definition(PingPong), register_handlers():
        processes = [
            start_process(PingPong, Served(uuid4().hex)).process_id
            for _ in range(number)
        ]
        drain(QUEUE, alone=True)
        with workers(QUEUE, 2):
            yield processes


def happened(process: UUID, event: Happened) -> None:
    send_event(event, id=uuid4().hex, source="game", process_id=process)


def last_commit() -> datetime:
    """Wait until all that was sent is done; return when the last of it was committed."""
    left = InboxEvent.objects.filter(handled_at=None)
    wait_for(lambda: not left.exists(), 20, left.count)
    return clock.last_commit(Checkpoint.objects.all(), "at")


def changes(processes: Sequence[UUID], valkey: ValkeyServer, losing: Losing) -> None:
    """Change the processes in turn, at a steady pace; Valkey is killed, and away for a while.

    From then on that nothing is told any more there is time to fetch what was told before: that brings no later change.
    """
    units = SECONDS * CHANGES
    turning_points = {
        units // 5: valkey.kill,
        units * 2 // 5: valkey.start,
        units * 3 // 5: losing.all.set,
    }
    for number in pace(units, CHANGES):
        its_turn = number % ITS_TURN == 0
        happened(processes[0 if its_turn else number % len(processes)], Returned())
        if number in turning_points:
            turning_points[number]()


def last_changes(processes: Sequence[UUID]) -> None:
    """Change each process once more; every second one ends."""
    for number in pace(len(processes), CHANGES):
        happened(processes[number], Missed() if number % 2 else Returned())


def lateness(
    committed: float, checks: Sequence[Callable[[], bool]]
) -> tuple[list[float], float]:
    """Seconds from the last commit until each of these held, and how crowded the machine was meanwhile."""
    late, crowded = dict[int, float](), list[float]()

    def none_left() -> bool:
        crowded.append(crowding())
        for number, check in enumerate(checks):
            if number not in late and check():
                late[number] = time.time() - committed
        return len(late) == len(checks)

    wait_for(
        none_left, 3 * STALE, lambda: f"of {len(checks)} these held: {sorted(late)}"
    )
    return [late[number] for number in range(len(checks))], fmean(crowded)


@pytest.mark.full_size("200 pages, 50 changes a second", seconds=600)
def test_s3_4_soon_after_half_of_what_pages_are_told_was_lost_and_valkey_was_away_none_is_stale(
    losing: Losing,
    valkey: ValkeyServer,
    live_site: Site,
    signed_in: Page,
    another_page: Callable[[str], Page],
    tmp_path: Path,
    record_property: Callable[[str, object], None],
) -> None:
    with (
        moving(PAGES - 1) as processes,
        opened(live_site, processes[1:], tmp_path) as clients,
    ):
        signed_in.goto(f"/processes/{processes[0]}/")
        live(signed_in)
        listing = another_page("/processes/")

        changes(processes, valkey, losing)
        last_changes(processes)
        committed = last_commit().timestamp()

        now = ProcessInstance.objects.in_bulk(processes)
        place = [now[processes[0]].revision, now[processes[0]].step]
        statuses = {str(pk): one.status.capitalize() for pk, one in now.items()}
        last = [now[process].revision for process in processes[1:]]
        (*where, whole), crowded = lateness(
            committed,
            [
                lambda: signed_in.evaluate(SHOWS_STEP, place),
                lambda: listing.evaluate(SHOWS_STATUSES, statuses),
                lambda: clients.painted[:] == last,
                lambda: clients.fetched[:] == last,
            ],
        )
        told = f"{max(where):.1f} s after the last commit where each process is, {whole:.1f} s all of it"
        figure = f"{told}, others' load {crowded:.1f}"
        record_property("stale_for", figure)
        assert set(statuses.values()) == {"Waiting", "Completed"}
        assert 0 < losing.sent.value <= losing.lost.value
        assert max(*where, whole) < STALE * crowded, figure
        for page in (signed_in, listing):
            expect(page.locator("#live")).to_have_attribute("data-state", "live")


def test_s3_4_a_page_that_had_no_turn_to_be_answered_asks_again_a_second_later(
    signed_in: Page,
) -> None:
    process, asked = failed()[0].process_id, list[float]()

    def no_turn(route: Route) -> None:
        asked.append(time.monotonic())
        if len(asked) <= 3:
            route.fulfill(status=503, headers={"Procession-Late": "1"})
        else:
            route.continue_()

    signed_in.route(f"**/processes/{process}/?*since=*", no_turn)
    signed_in.goto(f"/processes/{process}/")
    expect(signed_in.locator("#live")).to_have_attribute("data-state", "stale")
    expect(signed_in.locator("#live")).to_have_attribute("data-state", "live")

    pauses = [after - before for before, after in pairwise(asked[:4])]
    # It also looks when it has been connected for a moment; by itself it would then look every ten seconds.
    assert sum(pauses) < 10 * crowding(), pauses


LOOKS = "() => window.dispatchEvent(new Event('online'))"
"""Has a page look for changes."""


def test_s3_4_a_page_that_had_no_turn_does_not_ask_at_once_for_what_it_was_told_meanwhile(
    signed_in: Page,
) -> None:
    process = failed()[0].process_id
    signed_in.goto(f"/processes/{process}/")
    live(signed_in)
    signed_in.wait_for_timeout(2_000)  # it has looked once more since it was connected
    asked = list[tuple[float, Route]]()
    signed_in.route(
        f"**/processes/{process}/?*since=*",
        lambda route: asked.append((time.monotonic(), route)),
    )

    def asks(number: int) -> Route:
        while len(asked) < number:
            signed_in.wait_for_timeout(20)
        return asked[number - 1][1]

    signed_in.evaluate(LOOKS)
    first = asks(1)
    signed_in.evaluate(LOOKS)
    signed_in.wait_for_timeout(500)  # which joins the first look
    first.fulfill(status=503, headers={"Procession-Late": "1"})
    turned_away = time.monotonic()
    asks(2).continue_()

    assert asked[1][0] - turned_away > 0.9
    expect(signed_in.locator("#live")).to_have_attribute("data-state", "live")


COMES_AGAIN = """() => {
    window.came = [];
    window.WebSocket = class extends WebSocket {
        constructor(address) {
            super(address);
            window.came.push(performance.now());
        }
    };
}"""
"""Notes when the page connects from now on."""


def test_s3_4_a_page_that_cannot_be_told_of_changes_comes_again_more_and_more_seldom(
    valkey: ValkeyServer, signed_in: Page
) -> None:
    valkey.stop()
    signed_in.add_init_script(f"({COMES_AGAIN})()")

    signed_in.goto("/processes/")
    signed_in.wait_for_function("() => window.came.length >= 5")

    came = signed_in.evaluate("window.came")
    pauses = [after - before for before, after in pairwise(came[:5])]
    # At least half of 0.8, 1.6, 3.2 and 6.4 s: whoever is busy only makes them longer.
    assert all(a >= b for a, b in zip(pauses, (390, 790, 1590, 3190), strict=True)), (
        pauses
    )

    valkey.start()
    live(signed_in)
