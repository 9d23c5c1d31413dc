"""Events of several processes are written together; what cannot be goes singly, and nothing is lost or done twice.

All of it holds for events that name their processes by their ids, and for those that name them by their keys.
"""

import threading
import time
from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from orchestrator import send_event, start_process
from orchestrator.definition import Event
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel, pause, unpause
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.tables import events
from orchestrator.engine.work.worker_slice import BEGIN_SECONDS
from orchestrator.models import Checkpoint, InboxEvent, ProcessInstance
from orchestrator.workers.current_worker import CurrentWorker
from orchestrator.workers.shared_memory.claims import SharedClaims
from tests.apps.many_together.processes import (
    MEANWHILE,
    Cards,
    CardTurned,
    TableCleared,
    TableLaid,
)
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.supervised import Supervised

pytestmark = pytest.mark.django_db(transaction=True)
postgresql_only = pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite has one writer at a time"
)


cards = knowing(Cards)

BY_KEY: list[str] = []
"""Not empty while events name their processes by their keys."""


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have what is claimed together written together, also on a machine that has much else to do."""
    monkeypatch.setattr("orchestrator.engine.work.worker_slice.HOLD_SECONDS", 30.0)
    monkeypatch.setattr("orchestrator.engine.loops.drain.FEW", 64)
    yield
    MEANWHILE.clear()


@pytest.fixture(autouse=True, params=["by id", "by key"])
def addressed(request: pytest.FixtureRequest) -> Iterator[None]:
    """Send events by the ids of their processes, or by their keys."""
    BY_KEY.extend(["table"] * (request.param == "by key"))
    yield
    BY_KEY.clear()


def laid(tables: int) -> list[UUID]:
    """Start so many processes that wait for the first card."""
    names = [f"table {number}" for number in range(tables)]
    pks = [start_process(Cards, TableLaid(name)).process_id for name in names]
    drain()
    return pks


def sent(pk: UUID, event: Event) -> None:
    if BY_KEY:
        key = ProcessInstance.objects.get(pk=pk).correlation_key
        send_event(event, id=uuid4().hex, source="players", correlation_key=key)
    else:
        send_event(event, id=uuid4().hex, source="players", process_id=pk)


def turned(tables: int) -> list[UUID]:
    """Start so many processes and have the first card of each turned; nothing of it has run."""
    pks = laid(tables)
    for pk in pks:
        sent(pk, CardTurned())
    return pks


def stand(pks: list[UUID]) -> list[tuple[str, int]]:
    """Tell the step of each process and how many cards were turned."""
    rows = ProcessInstance.objects.in_bulk(pks)
    return [(rows[pk].step, rows[pk].data["turns"]) for pk in pks]


def verdicts() -> set[str]:
    events = InboxEvent.objects.filter(source="players")
    return set(events.values_list("verdict", flat=True))


def forgotten() -> None:
    InboxEvent.objects.all().delete()
    ProcessInstance.objects.all().delete()


def statements(number: int) -> int:
    """Count the statements that it takes to deliver so many events, one for each process."""
    turned(number)
    with CaptureQueriesContext(connection) as queries:
        drain()
    forgotten()
    return len(queries)


@postgresql_only
def test_twenty_take_as_many_statements_as_two() -> None:
    assert statements(20) == statements(2)


def test_one_that_raises_leaves_the_others_to_go_on() -> None:
    pks = turned(4)

    def fail() -> None:
        MEANWHILE["table 2"] = fail  # when it is decided alone, too
        raise ConnectionError("the light is out")

    MEANWHILE["table 2"] = fail
    drain()
    assert stand(pks) == [("Down", 1), ("Down", 1), ("Up", 0), ("Down", 1)]
    event = InboxEvent.objects.get(process=pks[2], source="players")
    assert (event.verdict, event.attempt) == ("received", 1)
    assert "the light is out" in event.error


def test_a_process_that_was_moved_meanwhile_is_decided_anew() -> None:
    """Somebody pauses or moves it after it was read: what was decided on is no longer so."""
    pks = turned(3)

    def another() -> None:
        [last] = Checkpoint.objects.filter(instance=pks[1], revision=1)
        last.pk, last.revision, last.cause = None, 2, "operator:1"
        last.save()
        data = {"table": "table 1", "turns": 10}
        ProcessInstance.objects.filter(pk=pks[1]).update(data=data, revision=2)

    MEANWHILE["table 2"] = lambda: together(another)  # it is decided after table 1
    drain()
    assert stand(pks) == [("Down", 1), ("Down", 11), ("Down", 1)]
    forgotten()  # nobody could tell how its data came to be so


def test_a_process_without_a_history_is_known_by_its_revision() -> None:
    """No checkpoint of the other change stands in the way of what was decided before it."""
    pks = turned(3)

    def another() -> None:
        data = {"table": "table 1", "turns": 10}
        ProcessInstance.objects.filter(pk=pks[1]).update(data=data, revision=2)

    MEANWHILE["table 2"] = lambda: together(another)  # it is decided after table 1
    drain()
    assert stand(pks) == [("Down", 1), ("Down", 11), ("Down", 1)]
    forgotten()


def test_an_event_waits_for_an_older_one_that_is_offered_after_its_claim() -> None:
    """The older one was parked, so that both can be claimed; the younger one is not decided in the group then."""
    pks = laid(3)
    send_event(TableCleared(), id="early", source="players", process_id=pks[1])
    drain()
    early = InboxEvent.objects.filter(event_id="early")
    offered: list[bool] = []

    def offer() -> None:
        early.update(wake_at=database_now(), handled_at=None)

    for pk in pks:
        sent(pk, CardTurned())
    MEANWHILE["table 0"] = lambda: together(offer)  # it is decided before table 1
    MEANWHILE["table 1"] = lambda: offered.append(early.get().handled_at is None)
    drain()
    assert offered == [False]
    assert stand(pks) == [("Down", 1), ("Cleared", 1), ("Down", 1)]


def test_an_event_that_was_parked_meanwhile_is_counted_and_offered() -> None:
    """Parking is no transition: the process has still the revision that was read."""
    pks = turned(3)
    send_event(TableCleared(), id="early", source="players", process_id=pks[1])

    early = InboxEvent.objects.filter(event_id="early")
    early.update(wake_at=None)

    def another() -> None:
        early.update(wake_at=database_now())
        [claimed] = events.claim("default", "another", 1, 60)
        deliver_claimed(claimed.work)

    MEANWHILE["table 2"] = lambda: together(another)
    drain()
    assert stand(pks) == [("Down", 1), ("Cleared", 1), ("Down", 1)]
    assert verdicts() == {"moved"}


@postgresql_only
def test_what_another_has_locked_is_not_waited_for_by_the_others() -> None:
    pks = turned(3)
    seen: list[list[tuple[str, int]]] = []
    locked = threading.Event()

    def with_one_locked() -> None:
        with transaction.atomic():
            ProcessInstance.objects.select_for_update().get(pk=pks[1])
            locked.set()
            until = time.monotonic() + 60
            while stand(pks)[2] != ("Down", 1) and time.monotonic() < until:
                time.sleep(0.01)
            seen.append(stand(pks))

    def deliver() -> None:
        assert locked.wait(60)
        while not ProcessInstance.objects.filter(pk=pks[2], step="Down").exists():
            drain()
            time.sleep(0.01)

    together(with_one_locked, deliver)
    drain()
    assert seen == [[("Down", 1), ("Up", 0), ("Down", 1)]]
    assert stand(pks) == [("Down", 1)] * 3


def test_what_is_decided_is_taken_over_while_the_next_takes_its_time() -> None:
    """Nothing was done outside, so whoever comes next decides it anew."""
    worker = Supervised()
    pks = turned(4)
    every = list(InboxEvent.objects.filter(source="players").order_by("pk"))
    free: list[list[int]] = []

    def look() -> None:
        time.sleep(BEGIN_SECONDS + 0.05)
        [found] = together(worker.others.look)
        assert found is None
        owned = set(InboxEvent.objects.filter(source="players", owner=""))
        free.append([place for place, event in enumerate(every) if event in owned])

    MEANWHILE["table 2"] = look
    worker.drain("default")
    drain()
    assert free == [[0, 1, 3]]
    assert stand(pks) == [("Down", 1)] * 4
    assert verdicts() == {"moved"}


def test_a_process_that_an_operator_stopped_meanwhile_stays_as_it_stood() -> None:
    """One is paused and one cancelled after their events were decided: neither is moved by what was decided."""
    pks = turned(4)

    def stop() -> None:
        pause(pks[1], request=asked())
        cancel(pks[2], request=asked())

    MEANWHILE["table 3"] = lambda: together(stop)
    drain()
    assert stand(pks) == [("Down", 1), ("Up", 0), ("Up", 0), ("Down", 1)]
    late = InboxEvent.objects.get(process=pks[2], source="players")
    assert (late.verdict, late.wake_at) == ("unexpected", None)
    unpause(pks[1], request=asked())
    drain()
    assert stand(pks)[1] == ("Down", 1)


def test_workers_that_share_processes_move_each_by_each_event_once() -> None:
    """One has claimed the first event of each, and one the others: each line goes on in its order."""
    pks = laid(12)
    for _ in range(4):
        for pk in pks:
            sent(pk, CardTurned())

    def work() -> None:
        worker = CurrentWorker(held=SharedClaims())
        until = time.monotonic() + 60
        while "received" in verdicts() and time.monotonic() < until:
            worker.drain("default")

    assert raised(together(work, work, work)) == []
    assert stand(pks) == [("Up", 4)] * 12
    assert verdicts() == {"moved"}
    for pk in pks:
        taken = InboxEvent.objects.filter(process=pk, source="players").order_by("pk")
        assert list(taken.values_list("revision", flat=True)) == [2, 3, 4, 5]
