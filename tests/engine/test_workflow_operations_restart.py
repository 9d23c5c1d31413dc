"""Starting a process again as a new one, with an input that an operator has edited; and calling one off."""

from datetime import timedelta
from uuid import UUID

import pytest

from orchestrator import Permanent
from orchestrator.engine.operations import cancel, decide, restart, retry
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
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults, undone
from tests.apps.patterns.desk import (
    finished,
    go_on,
    insist,
    launch,
    results,
    statuses,
    visit,
)
from tests.apps.process_managers.desk import accept, place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    ParcelDelivered,
    ParcelScanned,
)
from tests.services.asking import asked

__all__ = ["known", "trips"]

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


def test_a_failed_process_is_restarted_with_edited_input() -> None:
    process = failed()
    action = restart(process.pk, {"name": "Ito", "nights": 7}, request=asked())
    process.refresh_from_db()
    again = go_on(new_one(action))

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (again.status, again.data) == ("waiting", {"name": "Ito", "nights": 7})
    assert (again.correlation_key, again.parent) == ("Ito", None)
    assert results(again)["flight"] == "flight to Osaka"
    assert Incident.objects.get().resolution == "restarted as new"


def test_nothing_is_undone_for_it() -> None:
    process = finished(processes.Undoable)
    cancel(process.pk, request=asked())
    go_on(process)
    undone.clear()
    done.clear()
    action = restart(process.pk, {"name": "Ito", "nights": 2}, request=asked())
    go_on(new_one(action))

    assert (undone, done) == ([], ["plan", "flight", "hotel", "invoice"])


def test_a_completed_process_is_restarted_too() -> None:
    process = finished(processes.Choice)
    assert process.status == "completed"
    action = restart(process.pk, process.data, request=asked())

    assert go_on(new_one(action)).status == "completed"
    process.refresh_from_db()
    assert process.status == "completed"


def test_what_cannot_be_restarted_is_refused_with_the_reason() -> None:
    process = failed()
    other = go_on(launch(processes.Trip, "Sato", 2))
    for given, why in (
        ({"name": "Ito", "nights": "two"}, "nights: Input should be a valid integer"),
        ({"name": "Ito", "nights": 2, "pets": 1}, "pets: "),
        ([], "no input of trip"),
        (None, "no input of trip"),
        ({"name": "Sato", "nights": 2}, "already a live trip with the key"),
    ):
        with pytest.raises(OperationRefused, match=why):
            restart(process.pk, given, request=asked())
    with pytest.raises(OperationRefused, match="still going on"):
        restart(other.pk, other.data, request=asked())
    process.refresh_from_db()
    assert (process.status, ProcessInstance.objects.count()) == ("failed", 2)
    with pytest.raises(OperationRefused, match="send that event again"):
        restart(place().pk, {}, request=asked())


def test_pressing_twice_starts_one_process() -> None:
    process, press = failed(), asked()
    given = {"name": "Ito"}  # its nights have a default
    first = restart(process.pk, given, request=press)
    again = restart(process.pk, given, request=press)

    assert first.after == again.after
    assert ProcessInstance.objects.count() == 2


def test_the_new_one_takes_its_place_in_another_process() -> None:
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


# Cancel


def test_a_cancelled_workflow_ends_at_once_when_nothing_can_be_undone() -> None:
    process = failed()
    action = cancel(process.pk, request=asked())
    process.refresh_from_db()

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (action.after["status"], action.after["steps_to_undo"]) == ("cancelled", 0)
    assert Incident.objects.get().resolution == "cancelled"
    assert not StepRun.objects.filter(finished_at=None).exists()
    process = finished(processes.Trip)  # its key is free
    cancel(process.pk, request=asked())
    assert statuses(go_on(process))["approve"] == "cancelled"


def test_cancel_undoes_the_finished_steps_the_last_one_first_once() -> None:
    process = finished(processes.Undoable)
    action = cancel(process.pk, request=asked())
    process.refresh_from_db()
    assert (process.status, action.after["steps_to_undo"]) == ("running", 2)
    with pytest.raises(OperationRefused, match="already being undone"):
        cancel(process.pk, request=asked())
    process = go_on(process)

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert undone == ["release 2 nights in Nara", "release flight to Nara"]
    with pytest.raises(OperationRefused, match="has ended"):
        cancel(process.pk, request=asked())


def test_what_is_being_undone_is_not_restarted() -> None:
    process = finished(processes.Undoable)
    faults["release_hotel"] = BAD
    cancel(process.pk, request=asked())
    process = go_on(process)
    assert (process.status, undone) == ("failed", [])
    with pytest.raises(OperationRefused, match="being undone"):
        restart(process.pk, process.data, request=asked())


def test_a_process_manager_is_cancelled_where_it_stands(handler: SetHandler) -> None:
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


def test_events_of_a_cancelled_process_manager_are_shown() -> None:
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


def test_deadlines_of_a_cancelled_process_do_not_pass() -> None:
    process = finished(processes.Patient)
    cancel(process.pk, request=asked())
    StepRun.objects.filter(wake_at__isnull=False).update(
        wake_at=process.started_at - timedelta(days=9)
    )

    assert go_on(process).status == "cancelled"
    assert journal.done == ["apply"]
