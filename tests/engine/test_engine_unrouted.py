"""An event whose process is unknown is kept, matched when the process starts, and after its patience shown."""

from datetime import timedelta
from itertools import pairwise
from threading import Event
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings
from uuid6 import uuid7

from orchestrator import send_event, start_process
from orchestrator.configuration.conf import conf
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.invariants import violations
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import events
from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.testing import pass_time, run
from orchestrator.testing.clock import move_times_back
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.processes import Visa
from tests.apps.compensation.steps import Traveller, VisaGranted
from tests.apps.process_managers.desk import early, place, tell, underway, unknown
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import raised, together
from tests.services.doing import fresh, taking
from tests.services.patience import A_MINUTE

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS)
SECOND = timedelta(seconds=1)
ORDERED = ParcelOrdered("P-1")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ({"process_id": uuid7()}, "there is no process "),
        ({"correlation_key": "P-9"}, "there is no shipping with the key 'P-9'"),
        ({}, "it names no process and carries no correlation key"),
    ],
    ids=["process", "key", "nothing"],
)
def test_an_event_that_finds_no_process_is_kept_and_after_its_patience_shown_once(
    address: dict[str, Any], said: str
) -> None:
    send_event(ParcelPacked(3), id="1", **address)
    run()
    event = InboxEvent.objects.get()
    assert (event.verdict, event.wake_at is None) == ("unrouted", False)
    assert not Incident.objects.exists()
    pass_time(PATIENCE + SECOND)
    pass_time(10 * PATIENCE)

    assert fresh(event).verdict == "unrouted"
    assert event.target == "shipping" or "correlation_key" not in address
    incident = Incident.objects.get()
    assert (incident.kind, incident.event_id) == ("unrouted_event", event.pk)
    assert incident.message.startswith(f"no process takes ParcelPacked: {said}")


def tell_unknown() -> InboxEvent:
    send_event(ParcelPacked(3), id="1", process_id=unknown().pk)
    drain()
    return InboxEvent.objects.get()


def verdicts() -> set[str]:
    return set(InboxEvent.objects.values_list("verdict", flat=True))


def test_it_is_looked_at_again_ever_less_often() -> None:
    event = tell_unknown()
    pauses = []
    for _ in range(6):
        assert event.wake_at is not None
        assert event.handled_at is not None
        pauses.append(event.wake_at - event.handled_at)
        move_times_back(pauses[-1])
        drain()
        fresh(event)

    assert abs(pauses[0] - SECOND) < SECOND / 10
    for pause, longer in pairwise(pauses[:5]):
        assert 2 * pause - SECOND / 10 < longer < 2 * pause + 5 * SECOND


def test_when_it_is_looked_at_again_its_process_is_looked_for_once() -> None:
    early("P-1", ParcelPacked(3))
    move_times_back(SECOND)
    [claimed] = events.claim("default", "this worker", 1, 10)
    with CaptureQueriesContext(connection) as asked:
        deliver_claimed(claimed.work)
    processes = f'FROM "{ProcessInstance._meta.db_table}"'

    # Once means two questions: which of its key lives, and which was the last one.
    assert sum(processes in query["sql"] for query in asked) == 2
    assert InboxEvent.objects.get().verdict == "unrouted"


@pytest.mark.parametrize("shown", [False, True])
def test_it_is_matched_when_its_process_starts_though_it_was_shown(shown: bool) -> None:
    chosen = uuid7()
    by_id = send_event(ParcelPacked(3), id="1", process_id=chosen).number
    by_key, later = early("P-1", ParcelPacked(3)), early("P-1", ParcelDelivered("P-1"))
    other = early("P-2", ParcelPacked(3))
    if shown:
        pass_time(PATIENCE + SECOND)
        assert Incident.objects.open().count() == 4
    start_process(Shipping, ParcelOrdered("P-9"), process_id=chosen)
    parcel = place("P-1")

    events_ = [InboxEvent.objects.get(pk=by_id), by_key, later, other]
    found = [(fresh(event).verdict, event.process_id) for event in events_]
    mine = ("moved", parcel.pk)
    assert found == [("moved", chosen), mine, mine, ("unrouted", None)]
    assert parcel.status == "completed"
    assert Incident.objects.open().count() == int(shown)


def test_an_early_event_that_its_process_does_not_expect_yet_is_parked() -> None:
    event = early("P-1", ParcelDelivered("P-1"))
    pass_time(PATIENCE + SECOND)
    parcel = place("P-1")

    assert (fresh(event).verdict, event.process_id) == ("parked", parcel.pk)
    assert not Incident.objects.open().exists()


def test_several_early_events_are_matched_in_the_order_of_their_arrival() -> None:
    scans = [ParcelScanned("P-1", where) for where in ("Nagoya", "Osaka")]
    for event in (*scans, ParcelDelivered("P-1"), ParcelPacked(3)):
        early("P-1", event)
    parcel = place("P-1")

    assert (parcel.status, parcel.data["place"]) == ("completed", "Osaka")


def test_only_starting_events_start_a_process_under_a_process_id() -> None:
    send_event(ORDERED, id="1", process_id=unknown().pk)
    drain()

    assert InboxEvent.objects.get().verdict == "unrouted"
    assert not ProcessInstance.objects.exists()


def test_an_event_of_an_ended_process_goes_to_it() -> None:
    parcel = underway("P-1")
    tell(parcel, ParcelDelivered("P-1"))
    event = early("P-1", ParcelScanned("P-1", "Nagoya"))

    assert (event.verdict, event.process_id) == ("unexpected", parcel.pk)


@pytest.mark.django_db(transaction=True)
def test_a_start_and_its_event_at_once_find_each_other(handler: SetHandler) -> None:
    handler(PackParcel, taking)
    keys = [f"P-{number}" for number in range(20)]

    def starts() -> None:
        for key in keys:
            start_process(Shipping, ParcelOrdered(key), id=f"order {key}")
            drain()

    def packs() -> None:
        for key in keys:
            send_event(ParcelPacked(3), id=f"pack {key}", correlation_key=key)
            drain()

    results = together(starts, packs)
    for _ in range(3):
        pass_time(2 * SECOND)

    assert raised(results) == []
    steps = ProcessInstance.objects.values_list("step", flat=True)
    assert list(steps) == ["OnTheWay"] * len(keys)
    assert verdicts() == {"started", "moved"}


@pytest.mark.django_db(transaction=True)
def test_two_starts_of_a_key_at_once_give_one_process(handler: SetHandler) -> None:
    handler(PackParcel, taking)
    for number in range(2):
        send_event(ORDERED, id=f"{number}", source="web")
    results = together(drain, drain)
    pass_time(5 * SECOND)

    assert raised(results) == []
    assert ProcessInstance.objects.count() == 1
    assert verdicts() == {"started", "parked"}


# While its process just starts


def test_its_first_look_is_after_a_second_however_old_it_is() -> None:
    """It used to be after as much time as had passed since its receipt."""
    send_event(ParcelPacked(3), id="1", correlation_key="P-1")
    move_times_back(timedelta(minutes=14))
    drain()

    event = InboxEvent.objects.get()
    assert event.handled_at is not None
    assert (event.verdict, event.wake_at) == ("unrouted", event.handled_at + SECOND)


@pytest.mark.django_db(transaction=True)
def test_an_event_while_its_process_starts_is_not_called_unrouted(trips: None) -> None:
    """The start is not committed yet, so that it can neither be seen nor see the event. SQLite: one writes."""
    begun, delivered = Event(), Event()
    if connection.vendor != "postgresql":
        delivered.set()

    def starts() -> None:
        with transaction.atomic():
            start_process(Visa, Traveller("Ito"))
            begun.set()
            delivered.wait(A_MINUTE)

    def tells() -> None:
        begun.wait(A_MINUTE)
        send_event(VisaGranted("V-1"), id="1", correlation_key="Ito")
        drain()
        delivered.set()

    results = together(starts, tells)
    assert raised(results) == []
    assert violations() == []
    mine = InboxEvent.objects.get(target="visa")
    assert mine.verdict != "unrouted"

    pass_time(2 * SECOND)
    assert fresh(mine).verdict == "moved"


def test_what_came_early_is_taken_up_by_whoever_is_free() -> None:
    event = early("P-1", ParcelPacked(3))
    move_times_back(2 * SECOND)
    (held,) = events.claim("default", "slow worker", 1, 10)
    parcel = place("P-1")
    assert not deliver_claimed(held.work)

    assert (fresh(event).verdict, fresh(parcel).step) == ("moved", "OnTheWay")


def test_an_unrouted_event_is_kept_for_its_retention_and_then_given_up() -> None:
    event = early("P-1", ParcelPacked(3))
    pass_time(days=29)
    assert fresh(event).verdict == "unrouted"

    pass_time(days=2)
    assert (fresh(event).verdict, event.wake_at) == ("unexpected", None)
    incident = Incident.objects.open().get()
    assert incident.message.startswith("no process came for ParcelPacked in 30 days")
    place("P-1")
    assert fresh(event).verdict == "unexpected"


def test_the_retention_is_a_setting(settings: Settings) -> None:
    settings.PROCESSION = {"UNROUTED_SECONDS": 3600}
    event = tell_unknown()
    pass_time(hours=1, seconds=1)

    assert fresh(event).verdict == "unexpected"
