"""Events of one process take effect in the order of their receipts, by id or by key, also while it just starts."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from functools import partial
from itertools import count
from uuid import UUID

import pytest
from django.db import connection
from django.db.models import F
from uuid6 import uuid7

from orchestrator import Permanent, send_event, start_process
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event
from orchestrator.engine.change.offering import wake_followers
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import retry
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.batch import send as send_all
from orchestrator.engine.sql.tables import events
from orchestrator.engine.work.claims import (
    ClaimedElsewhere,
    postpone,
)
from orchestrator.engine.work.worker_slice import Reporting
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Status, Verdict
from orchestrator.testing import pass_time
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked
from tests.services.doing import raising, taking
from tests.services.explained import explained

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

numbers = count(1)
Address = dict[str, UUID | str]
LONG = timedelta(minutes=10)


def send(event: Event, **address: UUID | str) -> int:
    """Send an event by id or key; nothing is run. Return its number."""
    return send_event(event, id=f"{next(numbers)}", source="depot", **address).number  # type: ignore[arg-type]


def of(number: int) -> InboxEvent:
    return InboxEvent.objects.get(pk=number)


def verdicts(*numbers: int) -> list[str]:
    return [of(number).verdict for number in numbers]


def failing_once(error: Exception) -> Callable[[object], None]:
    """Return a handler that raises at its first call."""
    calls = count()

    def handle(command: object) -> None:
        if next(calls) == 0:
            raise error

    return handle


def by_key(key: str) -> list[int]:
    """Start a process by its key and send it the event that ends its first step."""
    return [
        send(ParcelOrdered(key), correlation_key=key),
        send(ParcelPacked(3), correlation_key=key),
    ]


def by_id_and_key(key: str) -> list[int]:
    """Start a process by its id and send it, by its key, the event that ends its first step."""
    event = ParcelOrdered(key)
    receipt = start_process(Shipping, event, id=key, process_id=uuid7())
    return [receipt.number, send(ParcelPacked(3), correlation_key=key)]


# While it starts


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("sender", [by_key, by_id_and_key])
def test_none_is_overtaken_when_all_were_sent_before_anybody_worked(
    sender: Callable[[str], list[int]], handler: SetHandler
) -> None:
    handler(PackParcel, taking)
    sent = [sender(f"P-{number}") for number in range(24)]
    assert raised(together(*[drain] * 4)) == []
    for _ in range(3):
        pass_time(seconds=1)

    assert [verdicts(*pair) for pair in sent] == [["started", "moved"]] * 24
    assert InboxEvent.objects.filter(revision=2).count() == 24
    assert not Incident.objects.exists()


@pytest.mark.parametrize("sender", [by_key, by_id_and_key])
def test_a_start_between_two_attempts_holds_back_what_follows(
    sender: Callable[[str], list[int]], handler: SetHandler, pauses: list[float]
) -> None:
    handler(PackParcel, failing_once(ConnectionError("no line")))
    start, packed = sender("P-1")
    drain()
    drain()
    assert verdicts(start, packed) == ["received", "received"]
    assert of(packed).wake_at == of(start).wake_at

    pass_time(seconds=2 * conf().BACKOFF_SECONDS)
    assert verdicts(start, packed) == ["started", "moved"]


@pytest.mark.parametrize("sender", [by_key, by_id_and_key])
def test_a_start_that_failed_for_good_holds_back_nothing(
    sender: Callable[[str], list[int]], handler: SetHandler
) -> None:
    handler(PackParcel, failing_once(Permanent("no boxes")))
    start, packed = sender("P-1")
    pass_time(seconds=0.5)

    assert verdicts(start, packed) == ["failed", "unrouted"]


def test_what_names_the_id_and_what_names_the_key_are_one_line_before_there_is_a_process(
    handler: SetHandler, pauses: list[float]
) -> None:
    handler(PackParcel, taking)
    handler(CountScan, failing_once(ConnectionError("no line")))
    chosen = uuid7()
    sent = [
        start_process(Shipping, ParcelOrdered("P-1"), process_id=chosen).number,
        send(ParcelPacked(3), process_id=chosen),
        send(ParcelScanned("P-1", "Kobe"), correlation_key="P-1"),
        send(ParcelDelivered("P-1"), process_id=chosen),
    ]
    drain()
    assert verdicts(*sent) == ["started", "moved", "received", "received"]

    pass_time(seconds=2 * conf().BACKOFF_SECONDS)
    assert verdicts(*sent) == ["started", "moved", "moved", "moved"]
    assert [of(number).revision for number in sent] == [1, 2, 4, 5]


# While it lives


@pytest.mark.parametrize("first", ["process_id", "correlation_key"])
def test_what_names_the_id_and_what_names_the_key_are_one_line(
    first: str, handler: SetHandler, pauses: list[float]
) -> None:
    ways: list[Address] = [{"process_id": underway().pk}, {"correlation_key": "P-1"}]
    ways.sort(key=lambda way: first not in way)
    held, behind = held_up(handler, *ways)

    pass_time(seconds=2 * conf().BACKOFF_SECONDS)
    assert verdicts(held, behind) == ["moved", "moved"]


def held_up(handler: SetHandler, first: Address, second: Address) -> tuple[int, int]:
    """Send an event that fails once, and another that waits for it."""
    handler(CountScan, failing_once(ConnectionError("no line")))
    scanned = send(ParcelScanned("P-1", "Kobe"), **first)
    delivered = send(ParcelDelivered("P-1"), **second)
    drain()
    drain()
    assert verdicts(scanned, delivered) == ["received", "received"]
    return scanned, delivered


def test_an_event_in_another_workers_hands_holds_back_what_follows() -> None:
    parcel = place()
    packed = send(ParcelPacked(3), process_id=parcel.pk)
    held = events.claim("default", "another worker", 1, 10)
    delivered = send(ParcelDelivered("P-1"), correlation_key="P-1")
    assert [item.work.pk for item in held] == [packed]
    drain()

    event = of(delivered)
    assert (event.verdict, event.owner, event.attempt) == ("received", "", 0)
    InboxEvent.objects.filter(pk=packed).update(owner="", attempt=0)
    pass_time(seconds=11)
    assert verdicts(packed, delivered) == ["moved", "moved"]


@pytest.mark.django_db(transaction=True)
def test_what_waited_for_an_event_that_is_parked_meanwhile_goes_on_at_once() -> None:
    """It was claimed while the one ahead was in other hands, and is put off when that one's patience has begun."""
    parcel = place()
    early = send(ParcelDelivered("P-1"), process_id=parcel.pk)
    packed = send(ParcelPacked(3), process_id=parcel.pk)
    [held] = events.claim("default", "another worker", 1, 10)
    claimed = events.claim("default", "this worker", 5, 10)
    deliver_claimed(held.work)
    found = [(item.work.pk, item.ahead) for item in claimed]
    assert found == [(packed, frozenset({early}))]

    postpone("default", "this worker", claimed, ClaimedElsewhere())
    pass_time(seconds=1)
    assert verdicts(packed, early) == ["moved", "moved"]


BY_ID_OR_KEY = pytest.mark.parametrize("by", ["process_id", "correlation_key"])


def backlog(by: str, length: int = 8) -> list[int]:
    """Send a parcel many events, by its id or its key."""
    addresses: Address = {"process_id": underway().pk, "correlation_key": "P-1"}
    one = {by: addresses[by]}
    return [send(ParcelScanned("P-1", f"place {n}"), **one) for n in range(length)]


@BY_ID_OR_KEY
def test_a_backlog_in_other_hands_keeps_its_place_and_is_passed_over(by: str) -> None:
    scans = backlog(by)
    held = events.claim("default", "another worker", 2, 10)
    other = by_key("P-2")
    drain()

    assert verdicts(*other) == ["started", "moved"]
    assert verdicts(*scans) == ["received"] * 8
    later = send(ParcelDelivered("P-1"), correlation_key="P-1")
    waiting = InboxEvent.objects.filter(owner="", wake_at__lte=database_now())
    in_line = waiting.order_by("wake_at", "pk").values_list("pk", flat=True)
    assert list(in_line) == [*scans[2:], later]
    for item in held:
        deliver_claimed(item.work)
    drain()
    assert verdicts(*scans, later) == ["moved"] * 9
    assert [of(number).revision for number in scans] == [*range(3, 11)]


@BY_ID_OR_KEY
def test_a_backlog_goes_on_when_the_lease_of_its_firsts_worker_is_over(by: str) -> None:
    """Nobody has freed them: they are due, but later than all that waits for them, which is more than a claim takes."""
    scans = backlog(by)
    events.claim("default", "another worker", 2, 10)
    move_times_back(timedelta(seconds=11))

    drain()

    assert verdicts(*scans) == ["moved"] * 8
    assert [of(number).attempt for number in scans] == [2, 2, *[1] * 6]


@BY_ID_OR_KEY
def test_who_had_passed_over_what_is_settled_meanwhile_looks_again(by: str) -> None:
    """The other worker has looked for what comes next while it was claimed here, and has ended."""
    scans = backlog(by)
    held = events.claim("default", "another worker", 2, 10)
    by_key("P-2")

    @contextmanager
    def settled_meanwhile(
        seconds: float, work: str, heartbeat: float | None = None
    ) -> Iterator[Reporting]:
        yield nullcontext
        while held:
            deliver_claimed(held.pop(0).work)

    drain(watch=settled_meanwhile)

    assert verdicts(*scans) == ["moved"] * 8


def test_who_gets_nothing_but_what_is_too_early_calls_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    backlog("process_id")
    events.claim("default", "another worker", 2, 10)
    # A bell that is rung fails.
    monkeypatch.setattr("orchestrator.engine.loops.drain.wake_queue", None)

    assert drain() == 0


def test_what_comes_after_one_in_another_queue_is_looked_at_again_in_a_moment() -> None:
    scans = backlog("process_id", 3)
    InboxEvent.objects.filter(pk=scans[0]).update(queue="slow")

    assert drain() == 0
    due = InboxEvent.objects.filter(pk__in=scans[1:]).values_list("wake_at", flat=True)
    assert all(moment > of(scans[0]).wake_at for moment in due)
    drain("slow")
    pass_time(seconds=1)
    assert verdicts(*scans) == ["moved"] * 3


def test_a_backlog_goes_on_with_its_first_whatever_is_claimed_beside_them() -> None:
    """Others had the first in their hands meanwhile, so that they are due last, together with one that is too early."""
    scans = backlog("correlation_key")
    for ago, some in ((2, scans), (1, [*scans[:3], scans[-1]])):
        earlier = F("received_at") - timedelta(seconds=ago)
        InboxEvent.objects.filter(pk__in=some).update(wake_at=earlier)
    drain()

    assert verdicts(*scans[:3]) == ["moved"] * 3
    pass_time(seconds=1)
    assert verdicts(*scans) == ["moved"] * 8


def many_others(parcel: ProcessInstance) -> None:
    """A parcel's long history, others with theirs, and many undecided events; PostgreSQL knows how many."""
    others = [uuid7() for _ in range(1_000)]
    now = database_now()

    def row(process: UUID, number: int, **decided: object) -> InboxEvent:
        one = {"source": "crowd", "target": "shipping", "type": "tests.ParcelScanned"}
        given = {**one, "body": {}, "received_at": now, "process_id": process}
        key = f"P-1 of {process}"
        names = {"event_id": f"{process}-{number}", "correlation_key": key}
        return InboxEvent(**given, **names, **decided)

    told = [row(process, 0, wake_at=now + LONG) for process in others]
    history = {"verdict": Verdict.IGNORED, "handled_at": now}
    for process in [parcel.pk, *others[:20]]:
        told += [row(process, number, **history) for number in range(1, 101)]
    InboxEvent.objects.bulk_create(told)
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE {InboxEvent._meta.db_table}")


def test_what_is_ahead_of_an_event_is_found_by_indexes() -> None:
    """However many processes and events there are: a claim reads those of its own events' processes."""
    many_others(underway())
    send(ParcelScanned("P-1", "Kobe"), correlation_key="P-1")
    with explained() as plans:
        events.claim("default", "this worker", 16, 10)

    [plan] = plans
    assert {"undecided_of_key", "undecided_of_process"} <= {*re.findall(r"\w+", plan)}
    assert lines_that_go_through_a_table(plan) == []


def test_what_waited_for_an_event_is_found_by_indexes(handler: SetHandler) -> None:
    parcel = place()
    handler(CountScan, failing_once(ConnectionError("no line")))
    tell(parcel, ParcelPacked(3))
    scanned = tell(parcel, ParcelScanned("P-1", "Kobe"))
    many_others(parcel)
    with explained() as plans:
        for statement in wake_followers(scanned, parcel, scanned.received_at):
            send_all([statement])

    [of_process, of_key] = plans
    assert scanned.error
    assert "undecided_of_process" in of_process
    assert "undecided_of_key" in of_key
    for plan in plans:
        assert lines_that_go_through_a_table(plan) == []


def lines_that_go_through_a_table(plan: str) -> list[str]:
    """Return the steps of a plan that read all rows of a table, or all up to one."""
    bad = re.compile(r"Seq Scan|SCAN (orchestrator_|p\b|older\b)|rowid<")
    return [line for line in plan.splitlines() if bad.search(line)]


def test_parked_and_failed_events_hold_back_nothing(handler: SetHandler) -> None:
    parcel = underway()
    parked = tell(parcel, ParcelPacked(3))
    handler(CountScan, failing_once(Permanent("no such place")))
    failed = tell(parcel, ParcelScanned("P-1", "Atlantis"))
    moved = tell(parcel, ParcelScanned("P-1", "Kobe"))

    assert (parked.verdict, failed.verdict) == (Verdict.PARKED, Verdict.FAILED)
    assert moved.verdict == Verdict.MOVED


def test_many_that_wait_for_one_sleep_until_it_is_tried_again_and_hold_up_no_other_process(
    handler: SetHandler, pauses: list[float]
) -> None:
    handler(CountScan, failing_once(ConnectionError("no line")))
    first, *rest = backlog("process_id", 61)
    parcel = ProcessInstance.objects.get()
    other = by_key("P-2")
    drain()
    drain()
    assert verdicts(*other) == ["started", "moved"]
    waiting = InboxEvent.objects.filter(pk__in=rest)
    assert set(waiting.values_list("wake_at", flat=True)) == {of(first).wake_at}

    pass_time(seconds=2 * conf().BACKOFF_SECONDS)
    parcel.refresh_from_db()
    assert set(waiting.values_list("verdict", flat=True)) == {"moved"}
    assert parcel.data["place"] == "place 60"


def test_when_one_is_given_up_those_behind_it_go_on_at_once(
    handler: SetHandler, pauses: list[float]
) -> None:
    parcel = underway()
    handler(CountScan, raising(ConnectionError("no line")))
    first = send(ParcelScanned("P-1", "Kobe"), process_id=parcel.pk)
    second = send(ParcelDelivered("P-1"), process_id=parcel.pk)
    for _ in range(conf().EVENT_ATTEMPTS - 1):
        drain()
        assert verdicts(first, second) == ["received", "received"]
        InboxEvent.objects.filter(pk=first).update(wake_at=of(first).received_at)
    drain()

    assert verdicts(first, second) == ["failed", "moved"]
    assert Incident.objects.open().get().event_id == first


def test_when_people_have_one_tried_again_those_behind_it_go_on_at_once(
    handler: SetHandler, pauses: list[float]
) -> None:
    parcel = underway()
    by_id: Address = {"process_id": parcel.pk}
    first, second = held_up(handler, by_id, {"correlation_key": "P-1"})

    retry(parcel.pk, request=asked())
    drain()
    assert verdicts(first, second) == ["moved", "moved"]


@pytest.mark.django_db(transaction=True)
def test_many_workers_take_a_stream_by_key_in_its_order(handler: SetHandler) -> None:
    handler(PackParcel, taking)
    handler(CountScan, taking)
    keys = [f"P-{number}" for number in range(6)]

    def stream(mine: list[str]) -> None:
        for number in range(8):
            for key in mine:
                scan = ParcelScanned(key, f"{number - 2}")
                ends = {
                    0: ParcelOrdered(key),
                    1: ParcelPacked(3),
                    7: ParcelDelivered(key),
                }
                send(ends.get(number, scan), correlation_key=key)
                drain()

    results = together(partial(stream, keys[:3]), partial(stream, keys[3:]), drain)
    assert raised(results) == []
    for _ in range(3):
        pass_time(seconds=1)

    places = {(one.status, one.data["place"]) for one in ProcessInstance.objects.all()}
    assert places == {(Status.COMPLETED, "4")}
    assert set(InboxEvent.objects.values_list("verdict")) == {("started",), ("moved",)}
    assert not Incident.objects.exists()
