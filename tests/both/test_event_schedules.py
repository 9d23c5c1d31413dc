"""Any way of claiming, batching and killing gives what one event at a time gives."""

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import count
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from uuid6 import uuid7

from orchestrator import Permanent, send_event, start_process
from orchestrator.definition import (
    Event,
    ProcessManager,
    Workflow,
    during,
    ignore,
    park,
    reject,
    then,
    wait,
    when,
)
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.events.other_definitions import FIRST_LOOK
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.operations import pause, redeliver, retry, unpause
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.sql.tables import events
from orchestrator.engine.work.claims import ClaimedElsewhere, postpone
from orchestrator.engine.work.leases import end_leases
from orchestrator.engine.work.worker_slice import Reporting
from orchestrator.models import InboxEvent, Incident, Lost, ProcessInstance
from orchestrator.queue import suppress_all_wakes
from orchestrator.testing import run
from orchestrator.testing.clock import move_times_back
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.left import undone
from tests.services.sizes import size

pytestmark = pytest.mark.django_db


class Ordered(Event):
    coat: str


class Work(Event):
    coat: str
    number: int
    good: bool = True


class Cut(Work): ...


class Sewn(Work): ...


class Pressed(Work): ...


class Sold(Work): ...


@dataclass(frozen=True)
class Coat:
    coat: str
    done: tuple[int, ...] = ()


broken: set[str] = set()
"""The coats with work that cannot be read."""
HARD = (3, 6)
"""The numbers of such work."""


def one_more(data: Coat, event: Work) -> tuple[int, ...]:
    if event.number in HARD and event.coat in broken:
        raise Permanent("unreadable")
    return (*data.done, event.number)


class Tailoring(ProcessManager):
    """A coat is cut, sewn and pressed, again and again; only good work counts."""

    class Step(StrEnum):
        NEW = "New"
        CUTTING = "Cutting"
        SEWING = "Sewing"
        PRESSING = "Pressing"
        OVER = "Over"

    Data = Coat
    correlation = "coat"
    transitions = (
        during(Step.NEW, when(Ordered).go_to(Step.CUTTING)),
        during(
            Step.CUTTING,
            when(Cut).set(done=one_more).go_to(Step.SEWING),
            ignore(Pressed),
        ),
        during(
            Step.SEWING,
            when(Sewn, good=True).set(done=one_more).go_to(Step.PRESSING),
            park(Sewn),
        ),
        during(
            Step.PRESSING,
            when(Pressed, good=True).set(done=one_more).go_to(Step.CUTTING),
            reject(Pressed),
            when(Cut).set(done=one_more),
            when(Sold).go_to(Step.OVER),
        ),
    )


def measure() -> None:
    """Takes no time."""


def fit() -> None:
    """Takes no time."""


class Fitting(Workflow):
    """Waits for one piece of work after the other."""

    Input = Coat
    correlation = "coat"
    flow = (
        then(
            wait(Cut, "first"),
            measure,
            wait(Sewn, "second", good=True),
            fit,
            wait(Cut, "third"),
            wait(Pressed, "fourth"),
        ),
    )


known = knowing(Tailoring, Fitting)
keys = (f"coat {number}" for number in count())


def send(event: Event, pk: UUID | None = None) -> int:
    return send_event(event, id=next(keys), process_id=pk).number


def taken(*numbers: int) -> list[str]:
    return [InboxEvent.objects.get(pk=number).verdict for number in numbers]


def start(definition: Any, pk: UUID | None = None) -> UUID:
    given: Any = Ordered("C") if definition is Tailoring else Coat("C")
    return start_process(definition, given, process_id=pk).process_id


def test_what_is_claimed_behind_a_move_waits_for_the_parked_event_that_it_offers() -> (
    None
):
    pk = start(Tailoring)
    parked = send(Sewn("C", 1), pk)
    draining.drain()
    cut, later = send(Cut("C", 2), pk), send(Sewn("C", 3), pk)
    draining.drain()

    assert taken(parked, cut, later) == ["moved", "moved", "parked"]


def test_what_is_claimed_behind_a_start_waits_for_the_early_events() -> None:
    pk = uuid7()
    early = send(Cut("C", 1), pk)
    draining.drain()
    start(Tailoring, pk)
    later = send(Cut("C", 2), pk)
    draining.drain()

    assert taken(early, later) == ["moved", "parked"]


def test_what_another_worker_holds_waits_for_the_parked_event_that_a_step_comes_to_take() -> (
    None
):
    pk = start(Fitting)
    parked = [send(Cut("C", 1), pk), send(Sewn("C", 2), pk)]
    for item in events.claim("default", "a worker", 2, 10):
        deliver_claimed(item.work)
    later = send(Sewn("C", 4), pk)
    [held] = events.claim("default", "another worker", 1, 10)

    @contextmanager
    def later_first(
        seconds: float, work: str, heartbeat: float | None = None
    ) -> Iterator[Reporting]:
        if work.startswith("inboxevent"):
            deliver_claimed(held.work)
        yield nullcontext

    draining.drain(watch=later_first)

    assert taken(*parked, later) == ["moved", "moved", "parked"]


def test_what_another_worker_holds_waits_for_the_early_events_of_a_process_that_starts() -> (
    None
):
    pk = uuid7()
    early = send(Cut("C", 1), pk)
    draining.drain()
    later = send(Cut("C", 2), pk)
    [held] = events.claim("default", "another worker", 1, 10)
    start(Fitting, pk)
    deliver_claimed(held.work)
    draining.drain()

    assert taken(early, later) == ["moved", "parked"]


def test_what_another_worker_holds_waits_for_an_event_that_goes_on_with_its_process() -> (
    None
):
    pk = start(Tailoring)
    draining.drain()
    suspended = send(Cut("C", 1), pk)
    pause(pk, request=asked())
    later = send(Cut("C", 2), pk)
    [held] = events.claim("default", "another worker", 1, 10)
    unpause(pk, request=asked())
    deliver_claimed(held.work)
    draining.drain()

    assert taken(suspended, later) == ["moved", "parked"]


def test_the_inbox_is_not_read_where_nothing_is_parked() -> None:
    pk = start(Tailoring)
    draining.drain()
    send(Cut("C", 1), pk)
    [held] = events.claim("default", "a worker", 1, 10)

    with CaptureQueriesContext(connection) as queries:
        deliver_claimed(held.work)

    inbox = InboxEvent._meta.db_table
    assert not [
        q for q in queries if q["sql"].startswith("SELECT") and inbox in q["sql"]
    ]


def test_what_follows_a_skipped_event_is_skipped_however_it_names_its_process() -> None:
    """Else a worker claims and releases it again and again, for as long as another one has the event before it."""
    pk = start(Tailoring)
    draining.drain()
    send(Cut("C", 1), pk)
    [held] = events.claim("default", "another worker", 1, 10)
    by_id = send(Cut("C", 2), pk)
    by_key = send_event(Cut("C", 3), id=next(keys), correlation_key="C").number
    skipped = ClaimedElsewhere()
    skipped.note(InboxEvent.objects.filter(pk=by_id))
    early = Claimed(InboxEvent.objects.get(pk=by_key), frozenset({by_id}))

    assert postpone("default", "a worker", [early], skipped) == [early.work]
    assert postpone("default", "a worker", [early], ClaimedElsewhere()) == []
    deliver_claimed(held.work)
    draining.drain()


class Killed(KeyboardInterrupt):
    """A worker dies: all else that comes out of a piece of work is its failed attempt."""


@dataclass
class Schedule:
    """What is sent in which order; how it is carried out, chance decides."""

    chance: random.Random
    coat: str = field(default_factory=lambda: next(keys))
    kills: int = 3
    depth: int = 0

    def __post_init__(self) -> None:
        broken.add(self.coat)
        self.ids = {one: uuid7() for one in (Tailoring, Fitting)}
        self.owners = count()

    def send(self, act: tuple[str, ...]) -> None:
        what, way, number = act
        if what == "Mend":
            self.mend()
            return
        if what in ("Tailoring", "Fitting"):
            definition, id = globals()[what], self.ids[globals()[what]]
            given = Ordered(self.coat) if what == "Tailoring" else Coat(self.coat)
            start_process(definition, given, process_id=id)
            return
        event = globals()[what](self.coat, int(number), number[-1] in "02468")
        addresses: dict[str, dict[str, UUID | str]] = {
            "id": {"process_id": self.ids[Tailoring]},
            "wait": {"process_id": self.ids[Fitting]},
            "key": {"correlation_key": self.coat},
        }
        send_event(event, id=f"{self.coat} {number}", **addresses[way])  # type: ignore[arg-type]

    def mend(self, *, by_retry: bool = False) -> None:
        """Deploy readable code; operators try the failed events again."""
        broken.discard(self.coat)
        mine = InboxEvent.objects.filter(event_id__startswith=f"{self.coat} ")
        failed = mine.filter(verdict="failed").order_by("pk")
        for number, pk in list(failed.values_list("pk", "process")):
            live = ProcessInstance.objects.live().filter(pk=pk).exists()
            if not (by_retry and live):  # one that has ended refuses a retry
                redeliver(number, request=asked())
            elif InboxEvent.objects.filter(pk=number, verdict="failed").exists():
                retry(pk, request=asked())

    def mend_among_later(self) -> None:
        """What is sent after the operators' action is claimed before it, and delivered after it."""
        run()
        del self.left[0]
        for _ in range(self.chance.randint(0, 3)):
            if self.left and self.left[0][0] != "Mend":
                self.send(self.left.pop(0))
        held = events.claim("default", "another worker", 1, 60)
        self.mend(by_retry=self.chance.random() < 0.5)
        for item in held:
            if not item.ahead:
                deliver_claimed(item.work)
        end_leases(["another worker"])

    def singly(self, acts: list[tuple[str, ...]]) -> None:
        for act in acts:
            self.send(act)
            draining.drain()
        self.look_again()

    def anyhow(self, acts: list[tuple[str, ...]]) -> None:
        self.left = list(acts)
        while self.left:
            self.meddle()
        run()
        self.look_again()

    def look_again(self) -> None:
        """Let events that wait for the decision of another definition look at it."""
        for _ in range(2):
            move_times_back(60 * FIRST_LOOK)
            run()

    def meddle(self) -> None:
        """Send some events, let the unrouted ones look again, or have another worker begin."""
        if self.chance.random() < 0.1:
            move_times_back(FIRST_LOOK)
        for _ in range(self.chance.randint(0, 4)):
            if self.left and self.left[0][0] != "Mend":
                self.send(self.left.pop(0))
        if self.left and self.left[0][0] == "Mend" and not self.depth:
            self.mend_among_later()
        if self.chance.random() < 0.6:
            self.work()

    def work(self) -> None:
        owner, pieces = f"worker {next(self.owners)}", self.chance.choice([1, 3, 99])
        running: dict[str, Lost] = {}

        @contextmanager
        def watch(
            seconds: float, work: str, heartbeat: float | None = None
        ) -> Iterator[Reporting]:
            nonlocal pieces
            pieces -= 1
            self.may_die(running, work)
            if self.depth < 3 and self.chance.random() < 0.4:
                self.meddle()
            yield nullcontext
            self.may_die({}, work)

        draining.FEW = self.chance.choice([1, 2, 4, 16])
        self.depth += 1
        try:
            with suppress(Killed):
                draining.drain(owner=owner, watch=watch, stop=lambda: pieces < 1)
                return
            end_leases([owner], running=running)
        finally:
            self.depth -= 1

    def may_die(self, running: dict[str, Lost], work: str) -> None:
        if self.kills and self.chance.random() < 0.05:
            self.kills -= 1
            if work.startswith("inboxevent") and self.chance.random() < 0.5:
                running[work] = Lost.DIED
            raise Killed

    def outcome(self) -> dict[str, object]:
        rows = InboxEvent.objects.filter(event_id__startswith=f"{self.coat} ")
        moved = {
            one.__name__: ProcessInstance.objects.get(pk=pk)
            for one, pk in self.ids.items()
        }
        taken = rows.filter(revision__gt=0).order_by("revision", "pk")
        numbers = [row.event_id.split()[-1] for row in rows.order_by("pk")]
        return {
            "verdicts": list(
                zip(
                    numbers,
                    rows.order_by("pk").values_list("target", "verdict"),
                    strict=True,
                )
            ),
            "parked": {name: one.parked for name, one in moved.items()},
            "stands": {name: (one.status, one.step) for name, one in moved.items()},
            "taken": {
                name: [row.body["number"] for row in taken.filter(process=one)]
                for name, one in moved.items()
            },
            "incidents": Incident.objects.filter(
                instance__in=self.ids.values()
            ).count(),
        }


def some_acts(chance: random.Random) -> list[tuple[str, ...]]:
    acts = [
        (
            chance.choice([*3 * ["Cut", "Sewn", "Pressed"], "Sold"]),
            chance.choice(["id", "wait", "key"]),
        )
        for _ in range(chance.randint(4, 10))
    ]
    for start in ("Tailoring", "Fitting"):
        acts.insert(chance.randint(0, 6), (start, ""))
    if chance.random() < 0.5:
        acts.insert(chance.randint(3, len(acts)), ("Mend", ""))
    return [(*act, str(number)) for number, act in enumerate(acts)]


OF_POSTGRESQL = size(1, full=1, soak=6)
"""The parts of a full run that are played on PostgreSQL, where they take longer; SQLite has the others."""


@pytest.mark.django_db(transaction=True)
@pytest.mark.full_size("2,000 schedules in 4 parts", seconds=900)
@pytest.mark.parametrize("part", range(size(1, full=4, soak=20)))
def test_any_schedule_gives_what_one_event_at_a_time_gives(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = part < OF_POSTGRESQL
    if size(0, full=1) and first != (connection.vendor == "postgresql"):
        pytest.skip("the other database plays it")
    monkeypatch.setattr(draining, "FEW", draining.FEW)
    with suppress_all_wakes():
        for number in range(size(20, full=500)):
            chance = random.Random(500 * part + number)
            acts = some_acts(chance)
            one_by_one, any_way = Schedule(chance), Schedule(chance)
            with undone():  # else each schedule would cost what all before it have left
                one_by_one.singly(acts)
                any_way.anyhow(acts)
                assert any_way.outcome() == one_by_one.outcome(), acts
