"""Pausing a process manager: no time passes for it, its events are kept, and it goes on with what was left."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from importlib import import_module
from types import SimpleNamespace

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.db import connection
from django.utils import timezone

from orchestrator import Answer, Permanent, send_event, start_process
from orchestrator.conf import conf
from orchestrator.engine.drain import drain
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
from orchestrator.exceptions import KeyTaken, OperationRefused, PermissionMissing
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
)
from orchestrator.testing import pass_time, run
from orchestrator.testing.clock import age
from tests.apps.process_managers.desk import (
    accept,
    place,
    tell,
    underway,
)
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

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS)


def open_visit(parcel: ProcessInstance) -> StepRun:
    return StepRun.objects.get(instance=parcel, finished_at=None)


def reminders() -> int:
    return IssuedCommand.objects.filter(type="RemindPacker").count()


def goes_on(parcel: ProcessInstance) -> None:
    """End its pause, and run what is ready."""
    unpause(parcel.pk, True, request=asked())
    run()
    parcel.refresh_from_db()


def failing(error: Exception) -> Callable[[object], None]:
    def fail(command: object) -> None:
        raise error

    return fail


def about(left: timedelta | None, expected: timedelta) -> bool:
    """Whether so much is left, give or take what the test itself takes."""
    return left is not None and abs(left - expected) < 20 * SECOND


# How it is shown and told


def test_a_paused_process_says_so_and_since_when() -> None:
    parcel = place()
    action = pause(parcel.pk, True, request=asked())
    parcel.refresh_from_db()

    assert (parcel.status, parcel.step, parcel.revision) == (
        Status.PAUSED,
        "Packing",
        2,
    )
    assert parcel.paused_at == Checkpoint.objects.get(revision=2).at
    assert Checkpoint.objects.get(revision=2).cause == f"operator:{action.key}"
    assert action.after["paused_with_it"] == 0
    assert (action.before["status"], action.after["status"]) == ("waiting", "paused")


def test_a_resumed_process_stands_as_before() -> None:
    parcel = place()
    pause(parcel.pk, True, request=asked())
    unpause(parcel.pk, True, request=asked())
    parcel.refresh_from_db()

    assert (parcel.status, parcel.paused_at, parcel.revision) == ("waiting", None, 3)
    assert (open_visit(parcel).remaining, parcel.step) == (None, "Packing")


def test_what_is_paused_or_not_is_not_paused_or_resumed_again() -> None:
    parcel = place()
    with pytest.raises(OperationRefused, match="It is not paused"):
        unpause(parcel.pk, True, request=asked())
    pause(parcel.pk, True, request=asked())
    with pytest.raises(OperationRefused, match="It is paused already"):
        pause(parcel.pk, True, request=asked())

    assert ProcessInstance.objects.get().revision == 2


def test_an_ended_process_is_not_paused() -> None:
    parcel = underway()
    tell(parcel, ParcelDelivered("P-1"))
    for operation in (pause, unpause):
        with pytest.raises(OperationRefused, match="The process has ended"):
            operation(parcel.pk, True, request=asked())


def test_whoever_may_pauses_once(viewer: User) -> None:
    parcel, press = place(), asked()
    with pytest.raises(PermissionMissing):
        pause(parcel.pk, True, request=asked(actor=viewer))
    assert ProcessInstance.objects.get().paused_at is None

    first = pause(parcel.pk, True, request=press)
    assert pause(parcel.pk, True, request=press) == first
    assert ProcessInstance.objects.get().revision == 2


# Deadlines


def test_no_deadline_passes_during_the_pause() -> None:
    parcel = place()
    pass_time(50 * MINUTE)
    pause(parcel.pk, True, request=asked())
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
        pause(parcel.pk, True, request=asked())
        pass_time(pauses * HOUR)
        unpause(parcel.pk, True, request=asked())
    pass_time(61 * MINUTE)
    run = open_visit(parcel)
    assert run.deadlines_fired == 1
    assert run.wake_at is not None
    assert about(run.wake_at - timezone.now(), 59 * MINUTE)

    pass_time(58 * MINUTE)
    assert ProcessInstance.objects.get().escalation_level == 0
    pass_time(2 * MINUTE)
    assert ProcessInstance.objects.get().escalation_level == 1


def test_a_deadline_that_is_overdue_or_a_worker_has_claimed_rests_too() -> None:
    parcel = place()
    age(2 * HOUR)
    pause(parcel.pk, True, request=asked())
    run()
    assert reminders() == 0
    # As when the worker had claimed it just before.
    visits = StepRun.objects.filter(pk=open_visit(parcel).pk)
    visits.update(remaining=None, wake_at=timezone.now())
    run()
    visit = open_visit(parcel)
    assert (reminders(), visit.wake_at) == (0, None)
    assert (visit.owner, visit.attempt) == ("", 0)

    goes_on(parcel)
    assert reminders() == 1


def test_a_failed_deadline_can_be_retried_and_waits_for_the_end_of_the_pause(
    handler: SetHandler,
) -> None:
    handler(RemindPacker, failing(Permanent("no")))
    parcel = place()
    pass_time(61 * MINUTE)
    parcel.refresh_from_db()
    assert parcel.status == Status.FAILED
    pause(parcel.pk, True, request=asked())
    handler(RemindPacker, lambda command: None)
    retry(parcel.pk, request=asked())
    run()
    assert reminders() == 0
    goes_on(parcel)
    assert (reminders(), parcel.status) == (1, Status.WAITING)
    assert not Incident.objects.open().exists()


# Events


def test_events_are_kept_and_taken_in_order_afterwards() -> None:
    parcel = place()
    pause(parcel.pk, True, request=asked())
    sent = [
        tell(parcel, event)
        for event in (
            ParcelPacked(3),
            ParcelScanned("P-1", "Kobe"),
            ParcelDelivered("P-1"),
        )
    ]
    assert [event.verdict for event in sent] == [Verdict.PARKED] * 3
    parcel.refresh_from_db()
    assert (parcel.step, parcel.parked, parcel.revision) == ("Packing", 3, 2)

    goes_on(parcel)
    assert (parcel.status, parcel.parked) == (Status.COMPLETED, 0)
    rows = InboxEvent.objects.filter(pk__in=[event.pk for event in sent]).order_by("pk")
    assert [row.revision for row in rows] == [4, 5, 6]
    assert {(row.verdict, row.remaining) for row in rows} == {(Verdict.MOVED, None)}


def test_an_event_that_had_just_come_or_comes_by_key_waits_too() -> None:
    parcel = place()
    number = accept(parcel, ParcelPacked(3))
    pause(parcel.pk, True, request=asked())
    by_key = send_event(
        ParcelScanned("P-1", "Kobe"),
        id="by key",
        source="depot",
        correlation_key="P-1",
    ).number
    run()
    event, kept = (InboxEvent.objects.get(pk=pk) for pk in (number, by_key))
    assert (event.verdict, event.wake_at) == (Verdict.RECEIVED, None)
    assert (kept.verdict, kept.process_id) == (Verdict.PARKED, parcel.pk)

    goes_on(parcel)
    event.refresh_from_db()
    assert event.verdict == Verdict.MOVED
    assert (parcel.step, parcel.data["place"]) == ("OnTheWay", "Kobe")


def test_patience_stands_still() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    pass_time(PATIENCE / 2)
    pause(parcel.pk, True, request=asked())
    pass_time(10 * PATIENCE)
    event.refresh_from_db()
    assert (event.verdict, event.wake_at) == (Verdict.PARKED, None)
    assert about(event.remaining, PATIENCE / 2)

    goes_on(parcel)
    event.refresh_from_db()
    assert event.verdict == Verdict.PARKED
    assert event.patience_until is not None
    assert about(event.patience_until - timezone.now(), PATIENCE / 2)
    assert not Incident.objects.exists()
    pass_time(PATIENCE)
    assert Incident.objects.open().get().event_id == event.pk


def test_a_parked_event_that_was_just_to_be_offered_again_keeps_its_patience() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    escalate(parcel.pk, request=asked())  # makes it due
    pause(parcel.pk, True, request=asked())
    goes_on(parcel)

    event.refresh_from_db()
    assert event.verdict == Verdict.PARKED
    assert event.patience_until is not None
    assert about(event.patience_until - timezone.now(), PATIENCE)


def test_an_event_that_is_redelivered_meanwhile_has_fresh_patience() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    pass_time(PATIENCE / 2)
    pause(parcel.pk, True, request=asked())
    redeliver(event.pk, request=asked())
    run()
    event.refresh_from_db()
    assert event.verdict == Verdict.PARKED
    assert about(event.remaining, PATIENCE)


def test_a_kept_event_can_be_discarded() -> None:
    parcel = place()
    pause(parcel.pk, True, request=asked())
    event = tell(parcel, ParcelPacked(3))
    discard(event.pk, request=asked())
    goes_on(parcel)
    assert (parcel.step, parcel.status) == ("Packing", Status.WAITING)


def test_the_pause_before_another_attempt_stands_still(
    handler: SetHandler, pauses: list[float]
) -> None:
    handler(CountScan, failing(ConnectionError("no line")))
    parcel = underway()
    event = tell(parcel, ParcelScanned("P-1", "Kobe"))
    parcel.refresh_from_db()
    assert (parcel.status, event.verdict) == (Status.RETRYING, Verdict.RECEIVED)
    pause(parcel.pk, True, request=asked())
    handler(CountScan, lambda command: None)
    pass_time(HOUR)
    event.refresh_from_db()
    assert (event.verdict, event.wake_at, event.attempt) == ("received", None, 1)

    unpause(parcel.pk, True, request=asked())
    parcel.refresh_from_db()
    assert parcel.status == Status.RETRYING
    pass_time(timedelta(seconds=pauses[-1]))
    event.refresh_from_db()
    parcel.refresh_from_db()
    assert (event.verdict, parcel.status) == (Verdict.MOVED, Status.WAITING)


def test_a_process_that_had_failed_has_failed_again_afterwards(
    handler: SetHandler,
) -> None:
    handler(CountScan, failing(Permanent("no")))
    parcel = underway()
    tell(parcel, ParcelScanned("P-1", "Kobe"))
    pause(parcel.pk, True, request=asked())
    parcel.refresh_from_db()
    assert (parcel.status, Incident.objects.open().count()) == (Status.PAUSED, 1)
    unpause(parcel.pk, True, request=asked())
    parcel.refresh_from_db()
    assert parcel.status == Status.FAILED

    pause(parcel.pk, True, request=asked())
    handler(CountScan, lambda command: None)
    retry(parcel.pk, request=asked())
    run()
    parcel.refresh_from_db()
    assert (parcel.status, Incident.objects.open().count()) == (Status.PAUSED, 0)
    goes_on(parcel)
    assert (parcel.status, parcel.step) == (Status.WAITING, "OnTheWay")


# Commands


def test_commands_that_were_issued_are_carried_out_and_their_events_kept(
    handler: SetHandler,
) -> None:
    handler(
        BookCourier,
        lambda command: Answer("booked", CourierBooked("B-1")),
        after_commit=True,
        queue="press",
    )
    parcel = place(courier=Courier.PARTNER)
    accept(parcel, ParcelPacked(3))
    drain()  # the command waits in a queue of its own
    pause(parcel.pk, True, request=asked())
    run("press")
    run()

    assert IssuedCommand.objects.get(type="BookCourier").status == "done"
    event = InboxEvent.objects.get(type="CourierBooked")
    assert (event.verdict, event.process_id) == (Verdict.PARKED, parcel.pk)
    goes_on(parcel)
    assert parcel.data["booking"] == "B-1"


def test_a_command_that_fails_during_the_pause_is_shown_and_fails_the_process_afterwards(
    handler: SetHandler,
) -> None:
    parcels: list[ProcessInstance] = []

    def pausing(command: BookCourier) -> None:
        pause(parcels[0].pk, True, request=asked())
        raise Permanent("no")

    handler(BookCourier, pausing, after_commit=True)
    parcels.append(place(courier=Courier.PARTNER))
    tell(parcels[0], ParcelPacked(3))

    parcel = ProcessInstance.objects.get()
    assert (parcel.status, Incident.objects.open().count()) == (Status.PAUSED, 1)
    unpause(parcel.pk, True, request=asked())
    parcel.refresh_from_db()
    assert parcel.status == Status.FAILED


# Other actions meanwhile


def test_a_paused_process_can_be_cancelled() -> None:
    parcel = place()
    pause(parcel.pk, True, request=asked())
    event = tell(parcel, ParcelPacked(3))
    cancel(parcel.pk, request=asked())
    run()

    parcel.refresh_from_db()
    event.refresh_from_db()
    assert (parcel.status, parcel.paused_at) == (Status.CANCELLED, None)
    assert event.verdict == Verdict.UNEXPECTED
    assert not StepRun.objects.filter(finished_at=None).exists()


def test_escalating_and_assigning_leave_it_paused() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    pause(parcel.pk, True, request=asked())
    escalate(parcel.pk, request=asked())
    assign(parcel.pk, "operator", request=asked())
    pass_time(10 * HOUR)

    parcel.refresh_from_db()
    event.refresh_from_db()
    assert (parcel.status, parcel.escalation_level) == (Status.PAUSED, 1)
    assert (parcel.parked, reminders(), event.verdict) == (1, 0, Verdict.PARKED)
    assert parcel.owner is not None
    assert about(open_visit(parcel).remaining, HOUR)


# Races


@pytest.mark.django_db(transaction=True)
def test_a_worker_and_a_pause_at_the_same_moment_leave_nothing_behind() -> None:
    for number in range(6):
        parcel = place(f"P-{number}")
        accept(parcel, ParcelPacked(3))
        press = asked()
        results = together(drain, partial(pause, parcel.pk, True, request=press))
        assert raised(results) == []
        drain()
        parcel.refresh_from_db()
        assert parcel.status == Status.PAUSED
        results = together(drain, partial(unpause, parcel.pk, True, request=asked()))
        assert raised(results) == []
        drain()
        parcel.refresh_from_db()
        assert (parcel.status, parcel.step) == (Status.WAITING, "OnTheWay")
        assert OperatorAction.objects.filter(result="refused").count() == 0


@pytest.mark.django_db(transaction=True)
def test_an_event_and_the_end_of_a_pause_at_the_same_moment() -> None:
    for number in range(6):
        parcel = place(f"P-{number}")
        pause(parcel.pk, True, request=asked())
        accept(parcel, ParcelPacked(3))
        results = together(drain, partial(unpause, parcel.pk, True, request=asked()))
        assert raised(results) == []
        drain()
        parcel.refresh_from_db()
        assert (parcel.status, parcel.step) == (Status.WAITING, "OnTheWay")


# Others


def test_other_processes_go_on() -> None:
    paused, other = place("P-1"), place("P-2")
    pause(paused.pk, True, request=asked())
    pass_time(61 * MINUTE)
    assert Group.objects.filter(name="reminded P-2").exists()
    assert reminders() == 1
    tell(other, ParcelPacked(3))
    assert other.step == "OnTheWay"


def test_the_key_of_a_paused_process_is_taken() -> None:
    parcel = place()
    pause(parcel.pk, True, request=asked())
    with pytest.raises(KeyTaken) as refused:
        start_process(Shipping, ParcelOrdered("P-1"), id="again", source="shop")
    run()

    assert refused.value.process_id == parcel.pk
    assert ProcessInstance.objects.count() == 1


def test_undoing_the_migration_lets_paused_processes_go_on() -> None:
    parcel = place()
    pause(parcel.pk, True, request=asked())
    left = open_visit(parcel).remaining
    migration = import_module("orchestrator.migrations.0003_actions")
    migration.let_go_on(apps, SimpleNamespace(connection=connection))

    parcel.refresh_from_db()
    run = open_visit(parcel)
    assert parcel.status == "waiting"
    assert left is not None
    assert run.wake_at is not None
    assert about(run.wake_at - timezone.now(), left)
    # The columns go next; here they are still there.
    StepRun.objects.filter(pk=run.pk).update(remaining=None)
    ProcessInstance.objects.update(paused_at=None)
