"""Starting a process again as a new one, with an input that an operator has edited; and calling one off."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from orchestrator import Permanent, start_process
from orchestrator.engine.operations import cancel, decide, restart, retry, skip
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from tests.apps.compensation import journal, processes
from tests.apps.compensation.fixtures import Ask, asked, known, trips
from tests.apps.compensation.journal import done, faults, undone
from tests.apps.compensation.steps import Traveller
from tests.apps.patterns.desk import finished, go_on, insist, results, statuses, visit
from tests.apps.process_managers.desk import accept, place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    ParcelDelivered,
    ParcelScanned,
)

__all__ = ["asked", "known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips", "parcels")]

BAD = Permanent("no line")


def failed(step: str = "hotel") -> ProcessInstance:
    """Run a trip until this step has failed for good; another attempt would work."""
    faults[step] = BAD
    process = finished(processes.Trip)
    faults.clear()
    assert process.status == "failed"
    return process


def new_one(action: OperatorAction) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=UUID(action.after["restarted_as"]))


# Restart


def test_a_failed_process_is_restarted_with_edited_input(asked: Ask) -> None:
    process = failed()
    action = restart(process.pk, {"name": "Ito", "nights": 7}, request=asked())
    process.refresh_from_db()
    again = go_on(new_one(action))

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (again.status, again.data) == ("waiting", {"name": "Ito", "nights": 7})
    assert (again.correlation_key, again.parent) == ("Ito", None)
    assert results(again)["flight"] == "flight to Osaka"
    assert Incident.objects.get().resolution == "restarted as new"


def test_nothing_is_undone_for_it(asked: Ask) -> None:
    process = finished(processes.Undoable)
    cancel(process.pk, request=asked())
    go_on(process)
    undone.clear()
    done.clear()
    action = restart(process.pk, {"name": "Ito", "nights": 2}, request=asked())
    go_on(new_one(action))

    assert (undone, done) == ([], ["plan", "flight", "hotel", "invoice"])


def test_a_completed_process_is_restarted_too(asked: Ask) -> None:
    process = finished(processes.Choice)
    assert process.status == "completed"
    action = restart(process.pk, process.data, request=asked())

    assert go_on(new_one(action)).status == "completed"
    process.refresh_from_db()
    assert process.status == "completed"


def test_one_that_is_going_on_is_not_restarted(asked: Ask) -> None:
    process = finished(processes.Trip)
    with pytest.raises(OperationRefused, match="still going on"):
        restart(process.pk, process.data, request=asked())
    assert ProcessInstance.objects.count() == 1


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"name": "Ito", "nights": "two"}, "nights: Input should be a valid integer"),
        ({"name": "Ito"}, "nights"),
        ({"name": "Ito", "nights": 2, "pets": 1}, "pets: "),
        ([], "no input of trip"),
        (None, "no input of trip"),
    ],
)
def test_the_input_is_read_strictly(asked: Ask, given: object, why: str) -> None:
    process = failed()
    if given == {"name": "Ito"}:
        restart(process.pk, given, request=asked())  # nights have a default
        return
    with pytest.raises(OperationRefused, match=why):
        restart(process.pk, given, request=asked())
    process.refresh_from_db()
    assert (process.status, ProcessInstance.objects.count()) == ("failed", 1)


def test_a_key_that_another_process_has_is_not_taken_from_it(asked: Ask) -> None:
    process = failed()
    start_process(processes.Trip, Traveller("Sato"))

    with pytest.raises(OperationRefused, match="already a live trip with the key"):
        restart(process.pk, {"name": "Sato", "nights": 2}, request=asked())
    process.refresh_from_db()
    assert process.status == "failed"


def test_pressing_twice_starts_one_process(asked: Ask) -> None:
    process, press = failed(), asked()
    first = restart(process.pk, process.data, request=press)
    again = restart(process.pk, process.data, request=press)

    assert first.after == again.after
    assert ProcessInstance.objects.count() == 2


def test_the_new_one_takes_its_place_in_another_process(asked: Ask) -> None:
    faults["drive"] = ConnectionError("no line")
    tour = insist(finished(processes.Tour))
    child = ProcessInstance.objects.get(parent=tour)
    assert (tour.status, child.status) == ("failed", "failed")
    faults.clear()
    action = restart(child.pk, {"city": "Uji", "days": 1}, request=asked())
    again = go_on(new_one(action))
    assert again.parent == tour
    decide(again.pk, visit(again, "look").pk, "yes", request=asked())
    tour = go_on(tour)

    assert tour.status == "completed"
    assert results(tour)["leg"] == "arrived after 1 days to Uji"
    assert visit(tour, "leg").child == again


def test_a_process_manager_is_not_restarted(asked: Ask) -> None:
    with pytest.raises(OperationRefused, match="send that event again"):
        restart(place().pk, {}, request=asked())


# Cancel


def test_a_cancelled_workflow_ends_at_once_when_nothing_can_be_undone(
    asked: Ask,
) -> None:
    process = finished(processes.Trip)
    action = cancel(process.pk, request=asked())
    process.refresh_from_db()

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (action.after["status"], action.after["steps_to_undo"]) == ("cancelled", 0)
    assert statuses(process)["approve"] == "cancelled"
    start_process(processes.Trip, Traveller("Ito"))  # its key is free


def test_cancel_undoes_the_finished_steps_the_last_one_first(asked: Ask) -> None:
    process = finished(processes.Undoable)
    action = cancel(process.pk, request=asked())
    process.refresh_from_db()
    assert (process.status, action.after["steps_to_undo"]) == ("running", 2)
    process = go_on(process)

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert undone == ["release 2 nights in Nara", "release flight to Nara"]


def test_cancel_settles_the_trouble(asked: Ask) -> None:
    process = failed()
    cancel(process.pk, request=asked())

    assert Incident.objects.get().resolution == "cancelled"
    assert not StepRun.objects.filter(finished_at=None).exists()


def test_a_process_is_not_cancelled_twice(asked: Ask) -> None:
    process = finished(processes.Undoable)
    cancel(process.pk, request=asked())
    with pytest.raises(OperationRefused, match="already being undone"):
        cancel(process.pk, request=asked())
    go_on(process)
    with pytest.raises(OperationRefused, match="has ended"):
        cancel(process.pk, request=asked())


def test_undoing_that_fails_is_retried_or_skipped(asked: Ask) -> None:
    process = finished(processes.Undoable)
    faults["release_hotel"] = faults["release_flight"] = BAD
    cancel(process.pk, request=asked())
    process = go_on(process)
    assert (process.status, undone) == ("failed", [])
    with pytest.raises(OperationRefused, match="being undone"):
        restart(process.pk, process.data, request=asked())

    faults.pop("release_hotel")
    retry(process.pk, request=asked())
    process = go_on(process)
    assert (process.status, undone) == ("failed", ["release 2 nights in Nara"])
    run = process.step_runs.get(kind="undo", status="failed")
    skip(process.pk, run.pk, None, request=asked())
    process.refresh_from_db()

    assert process.status == "cancelled"
    assert not Incident.objects.open().exists()


def test_a_process_manager_is_cancelled_where_it_stands(
    asked: Ask, handler: SetHandler
) -> None:
    def fail(command: object) -> None:
        raise ConnectionError("no line")

    handler(BookCourier, fail, after_commit=True)
    parcel = underway("P-1", Courier.PARTNER)
    parcel.refresh_from_db()
    action = cancel(parcel.pk, request=asked())
    parcel.refresh_from_db()

    assert (parcel.status, parcel.step) == ("cancelled", "OnTheWay")
    assert parcel.step_runs.get(status="cancelled").node == "OnTheWay"
    assert action.after["commands_still_to_do"] == 1
    handler(BookCourier, lambda command: None, after_commit=True)
    retry(parcel.pk, request=asked())
    go_on(parcel)
    assert IssuedCommand.objects.get(type="BookCourier").status == "done"
    assert parcel.status == "cancelled"


def test_events_of_a_cancelled_process_manager_are_shown(asked: Ask) -> None:
    parcel = place()
    accept(parcel, ParcelDelivered("P-1"), "early")
    go_on(parcel)
    assert InboxEvent.objects.get(event_id="early").verdict == "parked"
    cancel(parcel.pk, request=asked())
    go_on(parcel)
    accept(parcel, ParcelScanned("P-1", "Nagoya"), "late")
    go_on(parcel)

    verdicts = InboxEvent.objects.exclude(verdict="started").values_list("verdict")
    assert {verdict for (verdict,) in verdicts} == {"unexpected"}
    assert parcel.status == "cancelled"


def test_deadlines_of_a_cancelled_process_do_not_pass(asked: Ask) -> None:
    process = finished(processes.Patient)
    cancel(process.pk, request=asked())
    StepRun.objects.filter(wake_at__isnull=False).update(
        wake_at=process.started_at - timedelta(days=9)
    )

    assert go_on(process).status == "cancelled"
    assert journal.done == ["apply"]


def test_a_viewer_is_told_why_not(viewer: User, asked: Ask) -> None:
    process = finished(processes.Trip)
    with pytest.raises(OperationRefused, match="may not"):
        cancel(process.pk, request=asked(actor=viewer))
    assert OperatorAction.objects.get().result == "refused"
