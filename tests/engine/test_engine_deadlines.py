"""Deadlines of a step: several, each once, in their order, never after the step was left."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial

import pytest
from django.contrib.auth.models import Group

from orchestrator import Permanent
from orchestrator.conf import conf
from orchestrator.definition import Event, ProcessManager, after, during, when
from orchestrator.engine.drain import drain
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
)
from orchestrator.testing import pass_time, started
from orchestrator.testing.clock import age
from tests.apps.process_managers.desk import (
    accept,
    place,
    tell,
    underway,
)
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


def failing(error: Exception) -> Callable[[RemindPacker], None]:
    def fail(command: RemindPacker) -> None:
        raise error

    return fail


def visit(parcel: ProcessInstance) -> StepRun:
    return StepRun.objects.get(instance=parcel, finished_at=None)


def test_a_due_deadline_issues_its_commands_and_the_last_one_escalates() -> None:
    parcel = place()
    run = visit(parcel)
    assert run.wake_at == run.started_at + HOUR
    assert run.deadlines_fired == 0
    pass_time(59 * MINUTE)
    assert visit(parcel).deadlines_fired == 0
    assert not Group.objects.filter(name="reminded P-1").exists()
    pass_time(2 * MINUTE)

    parcel.refresh_from_db()
    assert Group.objects.filter(name="reminded P-1").exists()
    assert (parcel.step, parcel.revision) == ("Packing", 2)
    checkpoint = Checkpoint.objects.get(instance=parcel, revision=2)
    assert (checkpoint.cause, checkpoint.edge) == (f"deadline:{run.pk}:0", "e3")
    assert IssuedCommand.objects.get(revision=2).type == "RemindPacker"

    pass_time(HOUR)  # the guard of the second one does not hold
    parcel.refresh_from_db()
    assert (parcel.revision, parcel.escalation_level) == (2, 0)
    assert visit(parcel).deadlines_fired == 2
    pass_time(HOUR)
    parcel.refresh_from_db()
    assert (parcel.escalation_level, parcel.escalated_at is None) == (1, False)
    assert (parcel.status, parcel.step) == (Status.WAITING, "Packing")


def test_each_deadline_of_a_step_fires_once_and_in_its_order() -> None:
    parcel = place("P-1", Courier.PARTNER)
    for hours in (1, 2, 3):
        pass_time(HOUR + MINUTE)
        parcel.refresh_from_db()
        assert visit(parcel).deadlines_fired == hours
    together_ = place("P-2", Courier.PARTNER)
    pass_time(10 * HOUR)

    for each in (parcel, together_):
        each.refresh_from_db()
        assert (each.revision, each.escalation_level) == (4, 2)
        assert visit(each).wake_at is None


def test_a_deadline_goes_to_another_step() -> None:
    parcel = underway()
    pass_time(73 * HOUR)

    parcel.refresh_from_db()
    assert parcel.step == "Missing"
    assert visit(parcel).wake_at is None
    tell(parcel, ParcelScanned("P-1", "Nagoya"))
    assert parcel.step == "OnTheWay"
    assert visit(parcel).wake_at is not None


def test_leaving_the_step_disarms_its_deadlines_and_staying_does_not_move_them() -> (
    None
):
    parcel = underway()
    before = visit(parcel).wake_at
    tell(parcel, ParcelScanned("P-1", "Nagoya"))
    assert visit(parcel).wake_at == before
    pass_time(10 * HOUR)

    parcel.refresh_from_db()
    assert (parcel.revision, parcel.escalation_level) == (3, 0)


def test_a_parked_event_is_offered_again_after_a_deadline() -> None:
    parcel = underway()
    pass_time(71 * HOUR + 59 * MINUTE)
    event = tell(parcel, ParcelPacked(3))
    assert event.verdict == Verdict.PARKED
    InboxEvent.objects.filter(pk=event.pk).update(patience_until=None)
    pass_time(2 * MINUTE)

    event.refresh_from_db()
    parcel.refresh_from_db()
    assert parcel.step == "Missing"
    assert event.handled_at is not None
    assert event.handled_at >= parcel.changed_at


# Failing


def test_a_deadline_whose_command_fails_is_tried_again(handler: SetHandler) -> None:
    def fail(command: RemindPacker) -> None:
        Group.objects.create(name="half done")
        raise ConnectionError("no line")

    handler(RemindPacker, fail)
    parcel = place()
    pass_time(60 * MINUTE)

    run = visit(parcel)
    parcel.refresh_from_db()
    assert (run.deadlines_fired, run.attempt, run.owner) == (0, 1, "")
    assert "no line" in run.error
    assert parcel.status == Status.RETRYING
    assert not Group.objects.filter(name="half done").exists()
    handler(RemindPacker, lambda command: None)
    pass_time(10 * MINUTE)

    parcel.refresh_from_db()
    assert (visit(parcel).deadlines_fired, parcel.status) == (1, Status.WAITING)


def test_a_deadline_that_is_tried_again_shows_whatever_else_happens(
    handler: SetHandler,
) -> None:
    handler(RemindPacker, failing(ConnectionError("no line")))
    process = started(Reminding, ParcelListed("P-1"))
    pass_time(60 * MINUTE)
    assert process.status == Status.RETRYING
    process.send(CourierChosen(Courier.OWN))

    assert process.status == Status.RETRYING


def test_a_deadline_that_had_failed_and_moves_nothing_any_more_is_no_trouble(
    handler: SetHandler,
) -> None:
    handler(RemindPacker, failing(ConnectionError("no line")))
    process = started(Reminding, ParcelListed("P-1"))
    pass_time(60 * MINUTE)
    process.send(CourierChosen(Courier.PARTNER))
    pass_time(10 * MINUTE)

    last = Checkpoint.objects.latest("revision")
    run = StepRun.objects.get(finished_at=None)
    assert (run.deadlines_fired, process.status) == (1, Status.WAITING)
    assert last.cause == f"settled:{run.pk}:{last.revision - 1}"


def test_in_the_end_a_failing_deadline_is_an_incident_and_events_are_still_taken(
    handler: SetHandler,
) -> None:
    handler(RemindPacker, failing(Permanent("no packer")))
    parcel = place()
    pass_time(61 * MINUTE)

    parcel.refresh_from_db()
    assert (parcel.status, parcel.step) == (Status.FAILED, "Packing")
    incident = Incident.objects.open().get()
    assert (incident.kind, incident.step_run_id) == (
        "deadline_failed",
        visit(parcel).pk,
    )

    tell(parcel, ParcelPacked(3))

    assert (parcel.step, parcel.status) == ("OnTheWay", Status.WAITING)
    assert not Incident.objects.open().exists()


# At the same moment


@pytest.mark.django_db(transaction=True)
def test_an_event_and_a_deadline_at_the_same_moment_have_one_outcome(
    handler: SetHandler,
) -> None:
    """Whichever comes first wins; the other finds the new step, or nothing at all."""
    handler(PackParcel, lambda command: None)
    handler(TraceParcel, lambda command: None)
    parcels = [underway(f"P-{number}") for number in range(8)]
    age(73 * HOUR)
    for parcel in parcels:
        accept(parcel, ParcelDelivered(parcel.correlation_key))
    results = together(drain, drain, drain)
    drain()

    assert raised(results) == []
    for parcel in parcels:
        parcel.refresh_from_db()
        assert parcel.status == Status.COMPLETED
        causes = Checkpoint.objects.filter(instance=parcel, revision__gt=2)
        kinds = [row.cause.partition(":")[0] for row in causes.order_by("revision")]
        assert kinds in (["event"], ["deadline", "event"])
        assert not StepRun.objects.filter(instance=parcel).exclude(owner="").exists()


@pytest.mark.django_db(transaction=True)
def test_one_deadline_fires_once_however_many_look(handler: SetHandler) -> None:
    handler(PackParcel, lambda command: None)
    parcels = [place(f"P-{number}") for number in range(5)]
    age(61 * MINUTE)
    results = together(*[partial(drain)] * 4)

    assert raised(results) == []
    for parcel in parcels:
        assert Checkpoint.objects.filter(instance=parcel).count() == 2
    assert conf().EVENT_ATTEMPTS > 1
