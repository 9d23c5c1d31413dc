"""However many events are parked, the oldest one taken is offered, then the next; a transition stays as quick."""

from datetime import timedelta
from itertools import count, pairwise
from statistics import median
from time import perf_counter

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from orchestrator import Envelope, send_event, send_events
from orchestrator.definition import Event
from orchestrator.definition.codec import encode
from orchestrator.engine.events import parking
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops.drain import ReadyWork, drain
from orchestrator.engine.operations import cancel, discard, redeliver
from orchestrator.engine.sql.connection import allow_idle_for_rows
from orchestrator.engine.sql.tables import events
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Status, Verdict
from orchestrator.testing import pass_time, run, started
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    CourierBooked,
    LabelTorn,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.questions import (
    Again,
    Answered,
    Asked,
    Enquiry,
    Thanked,
)
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.doing import Operation, did, fresh, taking
from tests.services.sizes import size

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "enquiries")]

SLOWER = size(10, full=3)
"""How many times as long an event may take as before."""

MANY = size(1_000, full=10_000)
CROWD = size(200, full=10_000)
numbers = count(1)
WAKES = ("wake_at", "patience_until")


enquiries = knowing(Enquiry, autouse=False)


def park(process: ProcessInstance, event: Event, number: int = MANY) -> None:
    """Have many events of a process parked, as if they had been delivered one by one."""
    now = timezone.now()
    until = now + timedelta(days=1)
    said = {"source": "depot", "type": type(event).__name__, "body": encode(event)}
    when = {"received_at": now, "handled_at": now} | dict.fromkeys(WAKES, until)
    given = {"process": process, "verdict": Verdict.PARKED, **said, **when}
    ids = (f"parked {next(numbers)}" for _ in range(number))
    rows = [InboxEvent(event_id=id, **given) for id in ids]
    with transaction.atomic():
        allow_idle_for_rows(number)  # a crowded machine makes them slowly
        InboxEvent.objects.bulk_create(rows, batch_size=1_000)
    parked = process.events.parked().count()
    ProcessInstance.objects.filter(pk=process.pk).update(parked=parked)


def seconds_of_an_event(parcel: ProcessInstance, times: int = 15) -> float:
    """Return how long one event of a process takes, sent and handled: the quickest, as others' load makes it slower."""
    lasted = []
    for _ in range(times):
        event = ParcelScanned("P-1", "Kobe")
        send_event(event, id=str(next(numbers)), process_id=parcel.pk)
        begun = perf_counter()
        drain()
        lasted.append(perf_counter() - begun)
    return min(lasted)


def crowd() -> None:
    """Have many processes that wait to be packed, each with an event parked."""
    keys, booked = [f"C-{number}" for number in range(CROWD)], CourierBooked("B-1")
    send_events(Envelope(ParcelOrdered(key), id=key) for key in keys)
    run()
    send_events(Envelope(booked, id=f"b {key}", correlation_key=key) for key in keys)
    run()
    tomorrow = timezone.now() + timedelta(days=1)
    InboxEvent.objects.parked().update(**dict.fromkeys(WAKES, tomorrow))


@pytest.mark.django_db(transaction=True)
@pytest.mark.full_size("10,000 parked", seconds=120)
def test_a_transition_costs_the_same_with_many_parked(handler: SetHandler) -> None:
    handler(CountScan, taking)
    parcel = underway()
    alone = seconds_of_an_event(parcel)
    park(parcel, LabelTorn())
    ratios = [seconds_of_an_event(parcel) / alone for _ in range(3)]

    assert min(ratios) < SLOWER, ratios
    assert parcel.events.parked().filter(handled_at=None).count() == 0


@pytest.mark.django_db(transaction=True)
@pytest.mark.full_size("10,000 processes with one parked", seconds=300)
def test_a_transition_costs_the_same_beside_many_parked(handler: SetHandler) -> None:
    handler(CountScan, taking)
    parcel = underway()
    alone = seconds_of_an_event(parcel)
    crowd()
    ratios = [seconds_of_an_event(parcel) / alone for _ in range(3)]
    one = ProcessInstance.objects.get(correlation_key=f"C-{CROWD // 2}")
    tell(one, ParcelPacked(3))
    of_the_crowd = [seconds_of_an_event(one) / alone for _ in range(3)]

    assert min(ratios) < SLOWER, ratios
    assert min(of_the_crowd) < SLOWER, of_the_crowd
    assert InboxEvent.objects.parked().count() == CROWD - 1


def statements_of_a_transition(parcel: ProcessInstance) -> list[str]:
    """Pack a parcel and return what its transition asked the database, which offers the oldest that is parked."""
    send_event(ParcelPacked(3), id=f"packed {parcel.pk}", process_id=parcel.pk)
    with CaptureQueriesContext(connection) as asked:
        ReadyWork(WorkerSlice("default", "me"), bool).run_once()
    offered = parcel.events.parked().filter(handled_at=None)
    assert offered.get() == parcel.events.parked().order_by("pk").first()
    return [str(query["sql"])[:200] for query in asked]


def test_a_transition_offers_one_and_asks_no_more_of_the_database_for_more() -> None:
    shortest = []
    for number in (10, 80):
        asked = []
        for turn in range(3):  # what is asked once in a while is no part of it
            parcel = place(f"P-{number}-{turn}")
            park(parcel, ParcelScanned("P-1", "Kobe"), number)
            asked.append(statements_of_a_transition(parcel))
        shortest.append(min(asked, key=len))

    few, many = shortest
    assert len(few) == len(many), (few, many)


@pytest.mark.django_db(transaction=True)
@pytest.mark.timeout(600)
@pytest.mark.full_size("10,000 parked", seconds=600)
def test_all_that_were_parked_are_taken_in_their_order_each_as_quickly(
    handler: SetHandler,
) -> None:
    taken, moments = list[str](), list[float]()

    def take(command: CountScan) -> None:
        taken.append(command.place)
        moments.append(perf_counter())

    handler(CountScan, take)
    parcel = place()
    for number in range(size(50, full=200)):
        park(parcel, ParcelScanned("P-1", f"place {number}"), size(2, full=50))
    tell(parcel, ParcelPacked(3))

    assert len(taken) == size(100, full=10_000)
    assert taken == sorted(taken, key=lambda place: int(place.split()[1]))
    assert (parcel.parked, parcel.events.parked().count()) == (0, 0)
    lasted = [after - before for before, after in pairwise(moments)]
    third = len(lasted) // 3
    # Others' load may have come only at the end, and makes it slower: the quickest there is the event's own time.
    assert min(lasted[-third:]) < size(10, full=3) * median(lasted[:third])


def test_what_comes_now_does_not_overtake_what_is_parked_and_taken_now() -> None:
    parcel = place()
    for where in ("Nagoya", "Osaka"):
        tell(parcel, ParcelScanned("P-1", where))
    send_event(ParcelPacked(3), id="packed", process_id=parcel.pk)
    send_event(ParcelScanned("P-1", "Kobe"), id="kobe", process_id=parcel.pk)
    send_event(ParcelDelivered("P-1"), id="delivered", process_id=parcel.pk)
    run()

    assert (fresh(parcel).status, parcel.data["place"]) == (Status.COMPLETED, "Kobe")


# Where a guard does not hold


def ask(number: int) -> ProcessInstance:
    return started(Enquiry, Asked(number, "Ann")).instance


def test_one_that_is_not_taken_after_all_does_not_hide_the_next() -> None:
    enquiry = ask(1)
    for number in (7, 8, 2):
        tell(enquiry, Answered(number))
    assert enquiry.parked == 3
    tell(enquiry, Asked(2))

    assert (enquiry.step, enquiry.parked) == ("Answered", 2)


@pytest.mark.django_db(transaction=True)
def test_one_in_other_hands_that_is_not_taken_does_not_hide_the_next() -> None:
    """Its patience was over, and a worker had claimed it, when a change would have offered it."""
    enquiry = ask(1)
    oldest, taken = (tell(enquiry, Answered(number)) for number in (7, 2))
    over = dict.fromkeys(WAKES, timezone.now())
    InboxEvent.objects.filter(pk=oldest.pk).update(**over)
    [held] = events.claim("default", "another worker", 5, 10)
    assert held.work.pk == oldest.pk
    tell(enquiry, Asked(2))
    assert InboxEvent.objects.get(pk=taken.pk).verdict == Verdict.PARKED
    deliver_claimed(held.work)
    run()

    assert (fresh(enquiry).step, enquiry.parked) == ("Answered", 1)


def test_a_search_goes_on_behind_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "LOOK", 10)
    enquiry = ask(1)
    park(enquiry, Answered(7), 35)
    tell(enquiry, Answered(2))
    tell(enquiry, Asked(2))

    assert (enquiry.step, enquiry.parked) == ("Answered", 35)


def test_what_is_ignored_or_rejected_in_the_step_lets_the_next_one_go_on() -> None:
    enquiry = ask(1)
    again = [tell(enquiry, Again()) for _ in range(3)]
    tell(enquiry, Thanked())
    assert enquiry.parked == 4
    tell(enquiry, Answered(1))

    assert (enquiry.step, enquiry.status) == ("Over", Status.COMPLETED)
    found = InboxEvent.objects.filter(pk__in=[event.pk for event in again])
    assert set(found.values_list("verdict", flat=True)) == {Verdict.IGNORED}


# The end


def test_all_that_are_parked_at_the_end_are_shown() -> None:
    parcel = place()
    park(parcel, ParcelScanned("P-1", "Kobe"), 150)
    cancel(parcel.pk, request=asked())
    under_way = parcel.events.parked().filter(handled_at=None).count()
    drain()

    assert under_way == 64
    verdicts = parcel.events.values_list("verdict", flat=True)
    assert set(verdicts) == {"started", "unexpected"}
    assert Incident.objects.open().count() == 150


# Operators


@pytest.mark.parametrize("act", [discard, redeliver])
def test_the_count_of_the_parked_follows_what_operators_do(act: Operation) -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    tell(parcel, ParcelScanned("P-1", "Kobe"))
    assert parcel.parked == 2
    did(act, event)
    run()

    assert fresh(parcel).parked == parcel.events.parked().count()
    pass_time(hours=1)
    tell(parcel, ParcelPacked(3))
    assert (parcel.parked, parcel.events.parked().count()) == (0, 0)
