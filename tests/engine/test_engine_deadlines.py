"""Deadlines of a step: several, each once, in their order, never after the step was left."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial

import pytest
from django.contrib.auth.models import Group

from orchestrator import Permanent
from orchestrator.definition import Event, ProcessManager, after, during, when
from orchestrator.engine.loops.drain import drain
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import Process, pass_time, started
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import accept, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler, known
from tests.apps.process_managers.messages import (
    Courier,
    PackParcel,
    ParcelDelivered,
    ParcelPacked,
    ParcelScanned,
    RemindPacker,
    TraceParcel,
)
from tests.apps.process_managers.together import raised, together
from tests.services.doing import fresh, raising, taking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "reminding")]

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


class ParcelListed(Event):
    parcel_id: str


class CourierChosen(Event):
    courier: Courier


class Reminding(ProcessManager):
    """Has a deadline whose guard the data may fulfil no more when it is tried again."""

    class Step(StrEnum):
        NEW = "New"
        LISTED = "Listed"
        CLOSED = "Closed"

    @dataclass(frozen=True)
    class Data:
        parcel_id: str
        courier: Courier = Courier.OWN

    transitions = (
        during(Step.NEW, when(ParcelListed).go_to(Step.LISTED)),
        during(
            Step.LISTED,
            when(CourierChosen),
            when(ParcelPacked).go_to(Step.CLOSED),
            after(HOUR, courier=Courier.OWN).issue(RemindPacker),
        ),
    )


@pytest.fixture(scope="module")
def reminding() -> Iterator[None]:
    """For a whole module: the invariants are asked for after each test, and must still know the definition."""
    yield from known(Reminding)


def visit(parcel: ProcessInstance) -> StepRun:
    return StepRun.objects.get(instance=parcel, finished_at=None)


def stands(parcel: ProcessInstance) -> tuple[int, int, int]:
    """Return its revision, how often it was escalated, and how many deadlines of its step have passed."""
    fired = visit(parcel).deadlines_fired
    return fresh(parcel).revision, parcel.escalation_level, fired


def reminded() -> bool:
    return Group.objects.filter(name="reminded P-1").exists()


def test_a_due_deadline_issues_its_commands_and_the_last_one_escalates() -> None:
    parcel = place()
    run = visit(parcel)
    assert run.wake_at == run.started_at + HOUR
    pass_time(59 * MINUTE)
    assert (stands(parcel), reminded()) == ((1, 0, 0), False)
    pass_time(2 * MINUTE)

    assert (stands(parcel), reminded()) == ((2, 0, 1), True)
    checkpoint = Checkpoint.objects.get(instance=parcel, revision=2)
    assert (checkpoint.cause, checkpoint.edge) == (f"deadline:{run.pk}:0", "e3")
    assert IssuedCommand.objects.get(revision=2).type == "RemindPacker"

    pass_time(HOUR)  # the guard of the second one does not hold
    assert stands(parcel) == (2, 0, 2)
    pass_time(HOUR)
    assert stands(parcel) == (3, 1, 3)
    assert (parcel.status, parcel.step) == ("waiting", "Packing")
    assert parcel.escalated_at is not None


def test_each_deadline_of_a_step_fires_once_and_in_its_order() -> None:
    parcel = place("P-1", Courier.PARTNER)
    for hours in (1, 2, 3):
        pass_time(HOUR + MINUTE)
        assert visit(parcel).deadlines_fired == hours
    together_ = place("P-2", Courier.PARTNER)
    pass_time(10 * HOUR)

    for each in (parcel, together_):
        assert stands(each) == (4, 2, 3)
        assert visit(each).wake_at is None


def test_a_deadline_goes_to_another_step() -> None:
    parcel = underway()
    pass_time(73 * HOUR)

    assert (fresh(parcel).step, visit(parcel).wake_at) == ("Missing", None)
    tell(parcel, ParcelScanned("P-1", "Nagoya"))
    assert parcel.step == "OnTheWay"
    assert visit(parcel).wake_at is not None


def test_leaving_a_step_disarms_its_deadlines_and_staying_does_not_move_them() -> None:
    parcel = underway()
    before = visit(parcel).wake_at
    tell(parcel, ParcelScanned("P-1", "Nagoya"))
    assert visit(parcel).wake_at == before
    pass_time(10 * HOUR)

    assert stands(parcel) == (3, 0, 0)


def test_a_parked_event_is_offered_again_after_a_deadline() -> None:
    parcel = underway()
    pass_time(71 * HOUR + 59 * MINUTE)
    event = tell(parcel, ParcelPacked(3))
    assert event.verdict == "parked"
    InboxEvent.objects.filter(pk=event.pk).update(patience_until=None)
    pass_time(2 * MINUTE)

    assert fresh(parcel).step == "Missing"
    handled_at = fresh(event).handled_at
    assert handled_at is not None
    # A time that a worker has reckoned from the database's may be a little ahead of it.
    assert handled_at > parcel.changed_at - MINUTE


# Failing


def test_a_deadline_whose_command_fails_is_tried_again(handler: SetHandler) -> None:
    def fail(command: RemindPacker) -> None:
        Group.objects.create(name="half done")
        raise ConnectionError("no line")

    handler(RemindPacker, fail)
    parcel = place()
    pass_time(60 * MINUTE)

    run = visit(parcel)
    assert (run.deadlines_fired, run.attempt, run.owner) == (0, 1, "")
    assert "no line" in run.error
    assert fresh(parcel).status == "retrying"
    assert not Group.objects.filter(name="half done").exists()
    handler(RemindPacker, taking)
    pass_time(10 * MINUTE)

    assert (visit(parcel).deadlines_fired, fresh(parcel).status) == (1, "waiting")


@pytest.fixture
def retrying(handler: SetHandler) -> Process:
    """Return a process whose deadline has failed and is tried again."""
    handler(RemindPacker, raising(ConnectionError("no line")))
    process = started(Reminding, ParcelListed("P-1"))
    pass_time(60 * MINUTE)
    assert process.status == "retrying"
    return process


def test_a_deadline_tried_again_shows_whatever_else_happens(retrying: Process) -> None:
    retrying.send(CourierChosen(Courier.OWN))

    assert retrying.status == "retrying"


def test_a_failed_deadline_that_moves_nothing_is_no_trouble(retrying: Process) -> None:
    retrying.send(CourierChosen(Courier.PARTNER))
    pass_time(10 * MINUTE)

    last = Checkpoint.objects.latest("revision")
    run = StepRun.objects.get(finished_at=None)
    assert (run.deadlines_fired, retrying.status) == (1, "waiting")
    assert last.cause == f"settled:{run.pk}:{last.revision - 1}"


def test_a_failed_deadline_is_told_and_events_are_taken(handler: SetHandler) -> None:
    handler(RemindPacker, raising(Permanent("no packer")))
    parcel = place()
    pass_time(61 * MINUTE)

    assert (fresh(parcel).status, parcel.step) == ("failed", "Packing")
    incident = Incident.objects.open().get()
    assert incident.kind == "deadline_failed"
    assert incident.step_run_id == visit(parcel).pk

    tell(parcel, ParcelPacked(3))

    assert (parcel.step, parcel.status) == ("OnTheWay", "waiting")
    assert not Incident.objects.open().exists()


# At the same moment


@pytest.mark.django_db(transaction=True)
def test_an_event_and_a_deadline_at_one_moment_end_as_one(handler: SetHandler) -> None:
    """Whichever comes first wins; the other finds the new step, or nothing at all."""
    handler(PackParcel, taking)
    handler(TraceParcel, taking)
    parcels = [underway(f"P-{number}") for number in range(8)]
    move_times_back(73 * HOUR)
    for parcel in parcels:
        accept(parcel, ParcelDelivered(parcel.correlation_key))
    results = together(drain, drain, drain)
    drain()

    assert raised(results) == []
    for parcel in parcels:
        assert fresh(parcel).status == "completed"
        causes = Checkpoint.objects.filter(instance=parcel, revision__gt=2)
        kinds = [row.cause.partition(":")[0] for row in causes.order_by("revision")]
        assert kinds in (["event"], ["deadline", "event"])
        assert not StepRun.objects.filter(instance=parcel).exclude(owner="").exists()


@pytest.mark.django_db(transaction=True)
def test_one_deadline_fires_once_however_many_look(handler: SetHandler) -> None:
    handler(PackParcel, taking)
    parcels = [place(f"P-{number}") for number in range(5)]
    move_times_back(61 * MINUTE)
    results = together(*[partial(drain)] * 4)

    assert raised(results) == []
    for parcel in parcels:
        assert Checkpoint.objects.filter(instance=parcel).count() == 2
