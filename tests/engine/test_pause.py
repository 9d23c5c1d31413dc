"""Pausing a process manager: no time passes for it, its events are kept, and it goes on with what was left."""

from datetime import datetime, timedelta
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group
from django.db import connection
from django.utils import timezone

from orchestrator import Answer, Permanent, send_event, start_process
from orchestrator.configuration.conf import conf
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import (
    assign,
    cancel,
    discard,
    escalate,
    pause,
    redeliver,
    retry,
    unpause,
)
from orchestrator.exceptions import KeyTaken
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import pass_time, run
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import accept, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    Courier,
    CourierBooked,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
    RemindPacker,
)
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked
from tests.services.doing import did, fresh, raising, refused, taking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS)
SCANNED, DELIVERED = ParcelScanned("P-1", "Kobe"), ParcelDelivered("P-1")


def paused(courier: Courier = Courier.OWN) -> ProcessInstance:
    """Return a process that waits in Packing and was paused there."""
    parcel = place(courier=courier)
    did(pause, parcel, True)
    return parcel


def goes_on(parcel: ProcessInstance) -> None:
    """End its pause, and run what is ready."""
    did(unpause, parcel, True)
    run()
    parcel.refresh_from_db()


def open_visit(parcel: ProcessInstance) -> StepRun:
    return StepRun.objects.get(instance=parcel, finished_at=None)


def reminders() -> int:
    return IssuedCommand.objects.filter(type="RemindPacker").count()


def failures() -> int:
    return Incident.objects.open().count()


def about(given: timedelta | None, expected: timedelta) -> bool:
    """Whether so much is left, give or take what the test itself takes."""
    return given is not None and abs(given - expected) < 20 * SECOND


def left(moment: datetime | None) -> timedelta:
    assert moment is not None
    return moment - timezone.now()


def patience_left(event: InboxEvent) -> timedelta:
    """Return how long a parked event is still kept before people are told."""
    assert fresh(event).verdict == "parked"
    return left(event.patience_until)


# How it is shown and told


def test_a_paused_process_says_since_when_and_stands_as_before_afterwards() -> None:
    parcel = place()
    action = did(pause, parcel, True)
    row = Checkpoint.objects.get(revision=2)
    assert (parcel.status, parcel.step, parcel.revision) == ("paused", "Packing", 2)
    assert (parcel.paused_at, row.cause) == (row.at, f"operator:{action.key}")
    assert (action.before["status"], action.after["status"]) == ("waiting", "paused")
    assert action.after["paused_with_it"] == 0

    did(unpause, parcel, True)
    assert (parcel.status, parcel.paused_at, parcel.revision) == ("waiting", None, 3)
    assert (open_visit(parcel).remaining, parcel.step) == (None, "Packing")


def test_what_is_paused_or_not_or_has_ended_is_not_paused_or_resumed_again() -> None:
    parcel = place()
    refused("It is not paused", unpause, parcel, True)
    did(pause, parcel, True)
    refused("It is paused already", pause, parcel, True)
    assert fresh(parcel).revision == 2

    ended = underway("P-2")
    tell(ended, ParcelDelivered("P-2"))
    for operation in (pause, unpause):
        refused("The process has ended", operation, ended, True)


# Deadlines


def test_no_deadline_passes_during_the_pause() -> None:
    parcel = place()
    pass_time(50 * MINUTE)
    did(pause, parcel, True)
    pass_time(10 * HOUR)

    visit = open_visit(parcel)
    assert (reminders(), visit.wake_at, visit.deadlines_fired) == (0, None, 0)
    assert about(visit.remaining, 10 * MINUTE)

    goes_on(parcel)  # with what was left
    pass_time(9 * MINUTE)
    assert reminders() == 0
    pass_time(2 * MINUTE)
    assert reminders() == 1


def test_the_deadlines_after_it_are_as_much_later() -> None:
    parcel = place(courier=Courier.PARTNER)
    for pauses in (1, 2):
        did(pause, parcel, True)
        pass_time(pauses * HOUR)
        did(unpause, parcel, True)
    pass_time(61 * MINUTE)
    run = open_visit(parcel)
    assert run.deadlines_fired == 1
    assert about(left(run.wake_at), 59 * MINUTE)

    pass_time(58 * MINUTE)
    assert fresh(parcel).escalation_level == 0
    pass_time(2 * MINUTE)
    assert fresh(parcel).escalation_level == 1


def test_a_deadline_that_is_overdue_or_a_worker_has_claimed_rests_too() -> None:
    parcel = place()
    move_times_back(2 * HOUR)
    did(pause, parcel, True)
    run()
    assert reminders() == 0
    # As when the worker had claimed it just before.
    visits = StepRun.objects.filter(pk=open_visit(parcel).pk)
    visits.update(remaining=None, wake_at=timezone.now())
    run()
    visit = open_visit(parcel)
    assert (reminders(), visit.wake_at, visit.owner, visit.attempt) == (0, None, "", 0)

    goes_on(parcel)
    assert reminders() == 1


def test_a_retried_deadline_waits_for_the_end_of_the_pause(handler: SetHandler) -> None:
    handler(RemindPacker, raising(Permanent("no")))
    parcel = place()
    pass_time(61 * MINUTE)
    assert fresh(parcel).status == "failed"
    did(pause, parcel, True)
    handler(RemindPacker, taking)
    did(retry, parcel)
    run()
    assert reminders() == 0
    goes_on(parcel)
    assert (reminders(), parcel.status, failures()) == (1, "waiting", 0)


# Events


def test_events_are_kept_and_taken_in_order_afterwards() -> None:
    parcel = paused()
    sent = [tell(parcel, event) for event in (ParcelPacked(3), SCANNED, DELIVERED)]
    assert [event.verdict for event in sent] == ["parked"] * 3
    assert (parcel.step, parcel.parked, parcel.revision) == ("Packing", 3, 2)

    goes_on(parcel)
    assert (parcel.status, parcel.parked) == ("completed", 0)
    settled = [(fresh(one).revision, one.verdict, one.remaining) for one in sent]
    assert settled == [(revision, "moved", None) for revision in (4, 5, 6)]


def test_an_event_that_had_just_come_or_comes_by_key_waits_too() -> None:
    parcel = place()
    number = accept(parcel, ParcelPacked(3))
    did(pause, parcel, True)
    by_key = send_event(SCANNED, id="k", source="depot", correlation_key="P-1").number
    run()
    event, kept = (InboxEvent.objects.get(pk=pk) for pk in (number, by_key))
    assert (event.verdict, event.wake_at) == ("received", None)
    assert (kept.verdict, kept.process_id) == ("parked", parcel.pk)

    goes_on(parcel)
    assert fresh(event).verdict == "moved"
    assert (parcel.step, parcel.data["place"]) == ("OnTheWay", "Kobe")


def test_patience_stands_still() -> None:
    parcel = place()
    event = tell(parcel, DELIVERED)
    pass_time(PATIENCE / 2)
    did(pause, parcel, True)
    pass_time(10 * PATIENCE)
    assert (fresh(event).verdict, event.wake_at) == ("parked", None)
    assert about(event.remaining, PATIENCE / 2)

    goes_on(parcel)
    assert about(patience_left(event), PATIENCE / 2)
    assert not Incident.objects.exists()
    pass_time(PATIENCE)
    assert Incident.objects.open().get().event_id == event.pk


def test_a_parked_event_that_was_just_to_be_offered_again_keeps_its_patience() -> None:
    parcel = place()
    event = tell(parcel, DELIVERED)
    did(escalate, parcel)  # makes it due
    did(pause, parcel, True)
    goes_on(parcel)

    assert about(patience_left(event), PATIENCE)


def test_an_event_that_is_redelivered_meanwhile_has_fresh_patience() -> None:
    parcel = place()
    event = tell(parcel, DELIVERED)
    pass_time(PATIENCE / 2)
    did(pause, parcel, True)
    did(redeliver, event)
    run()
    assert fresh(event).verdict == "parked"
    assert about(event.remaining, PATIENCE)


def test_a_kept_event_can_be_discarded() -> None:
    parcel = paused()
    did(discard, tell(parcel, ParcelPacked(3)))
    goes_on(parcel)
    assert (parcel.step, parcel.status) == ("Packing", "waiting")


def test_the_pause_before_another_attempt_stands_still(
    handler: SetHandler, pauses: list[float]
) -> None:
    handler(CountScan, raising(ConnectionError("no line")))
    parcel = underway()
    event = tell(parcel, SCANNED)
    assert (parcel.status, event.verdict) == ("retrying", "received")
    did(pause, parcel, True)
    handler(CountScan, taking)
    pass_time(HOUR)
    assert (fresh(event).verdict, event.wake_at, event.attempt) == ("received", None, 1)

    did(unpause, parcel, True)
    assert parcel.status == "retrying"
    pass_time(timedelta(seconds=pauses[-1]))
    assert (fresh(event).verdict, fresh(parcel).status) == ("moved", "waiting")


def test_what_had_failed_has_failed_again_afterwards(handler: SetHandler) -> None:
    handler(CountScan, raising(Permanent("no")))
    parcel = underway()
    tell(parcel, SCANNED)
    did(pause, parcel, True)
    assert (parcel.status, failures()) == ("paused", 1)
    did(unpause, parcel, True)
    assert parcel.status == "failed"

    did(pause, parcel, True)
    handler(CountScan, taking)
    did(retry, parcel)
    run()
    assert (fresh(parcel).status, failures()) == ("paused", 0)
    goes_on(parcel)
    assert (parcel.status, parcel.step) == ("waiting", "OnTheWay")


# Commands


def test_issued_commands_are_carried_out_and_events_kept(handler: SetHandler) -> None:
    booked = Answer("booked", CourierBooked("B-1"))
    handler(BookCourier, lambda command: booked, after_commit=True, queue="press")
    parcel = place(courier=Courier.PARTNER)
    accept(parcel, ParcelPacked(3))
    run("default")  # the command waits in a queue of its own
    did(pause, parcel, True)
    run("press")
    run()

    assert IssuedCommand.objects.get(type="BookCourier").status == "done"
    event = InboxEvent.objects.get(type="CourierBooked")
    assert (event.verdict, event.process_id) == ("parked", parcel.pk)
    goes_on(parcel)
    assert parcel.data["booking"] == "B-1"


def test_what_fails_in_a_pause_fails_the_process_after_it(handler: SetHandler) -> None:
    parcel = place(courier=Courier.PARTNER)

    def pausing(command: BookCourier) -> None:
        did(pause, parcel, True)
        raise Permanent("no")

    handler(BookCourier, pausing, after_commit=True)
    tell(parcel, ParcelPacked(3))

    assert (parcel.status, failures()) == ("paused", 1)
    did(unpause, parcel, True)
    assert parcel.status == "failed"


# Other actions meanwhile


def test_a_paused_process_can_be_cancelled() -> None:
    parcel = paused()
    event = tell(parcel, ParcelPacked(3))
    did(cancel, parcel)
    run()

    assert (fresh(parcel).status, parcel.paused_at) == ("cancelled", None)
    assert fresh(event).verdict == "unexpected"
    assert not StepRun.objects.filter(finished_at=None).exists()


def test_escalating_and_assigning_leave_it_paused() -> None:
    parcel = place()
    event = tell(parcel, DELIVERED)
    did(pause, parcel, True)
    did(escalate, parcel)
    did(assign, parcel, "operator")
    pass_time(10 * HOUR)

    assert (fresh(parcel).status, parcel.escalation_level) == ("paused", 1)
    assert (parcel.parked, reminders(), fresh(event).verdict) == (1, 0, "parked")
    assert parcel.owner is not None
    assert about(open_visit(parcel).remaining, HOUR)


# Races


@pytest.mark.django_db(transaction=True)
def test_workers_and_a_pause_at_the_same_moment_leave_nothing_behind() -> None:
    for number in range(6):
        parcel = place(f"P-{number}")
        accept(parcel, ParcelPacked(3))
        for operation, status in ((pause, "paused"), (unpause, "waiting")):
            press = partial(operation, parcel.pk, True, request=asked())
            assert raised(together(drain, press)) == []
            drain()
            assert fresh(parcel).status == status
        assert parcel.step == "OnTheWay"
    assert not OperatorAction.objects.filter(result="refused").exists()


@pytest.mark.django_db(transaction=True)
def test_an_event_and_the_end_of_a_pause_at_the_same_moment() -> None:
    for number in range(6):
        parcel = place(f"P-{number}")
        did(pause, parcel, True)
        accept(parcel, ParcelPacked(3))
        press = partial(unpause, parcel.pk, True, request=asked())
        assert raised(together(drain, press)) == []
        drain()
        assert (fresh(parcel).status, parcel.step) == ("waiting", "OnTheWay")


# Others


def test_other_processes_go_on() -> None:
    paused()
    other = place("P-2")
    pass_time(61 * MINUTE)
    assert Group.objects.filter(name="reminded P-2").exists()
    assert reminders() == 1
    tell(other, ParcelPacked(3))
    assert other.step == "OnTheWay"


def test_the_key_of_a_paused_process_is_taken() -> None:
    parcel = paused()
    with pytest.raises(KeyTaken) as taken:
        start_process(Shipping, ParcelOrdered("P-1"), id="again", source="shop")
    run()

    assert taken.value.process_id == parcel.pk
    assert ProcessInstance.objects.count() == 1


def test_undoing_the_migration_lets_paused_processes_go_on() -> None:
    parcel = paused()
    remaining = open_visit(parcel).remaining
    migration = import_module("orchestrator.migrations.0003_actions")
    migration.let_go_on(apps, SimpleNamespace(connection=connection))

    run = open_visit(parcel)
    assert fresh(parcel).status == "waiting"
    assert about(remaining, left(run.wake_at))
    # The columns go next; here they are still there.
    StepRun.objects.filter(pk=run.pk).update(remaining=None)
    ProcessInstance.objects.update(paused_at=None)
