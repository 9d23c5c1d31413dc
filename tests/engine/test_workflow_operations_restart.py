"""Starting a process again as a new one, with an input that an operator has edited; and calling one off."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from orchestrator.engine.operations import cancel, redo, restart, resume, retry
from orchestrator.models import (
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from tests.apps.compensation import journal, processes
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done, faults, undone
from tests.apps.patterns.desk import finished, go_on, insist, results, statuses, visit
from tests.apps.process_managers.desk import accept, place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    ParcelDelivered,
    ParcelScanned,
)
from tests.services.asking import asked
from tests.services.doing import refused
from tests.services.operated import BAD, decided, failed, operated, troubled

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips", "parcels")]


def restarted(process: ProcessInstance, **given: Any) -> ProcessInstance:
    """Restart a process with this input, and run the new one as far as it goes; `process` is read anew."""
    action = restart(process.pk, given, request=asked())
    process.refresh_from_db()
    new = UUID(action.after["restarted_as"])
    return go_on(ProcessInstance.objects.get(pk=new))


# Restart


def test_a_failed_process_is_restarted_with_edited_input() -> None:
    process = failed("hotel")
    again = restarted(process, name="Ito", nights=7)

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (again.status, again.data) == ("waiting", {"name": "Ito", "nights": 7})
    assert (again.correlation_key, again.parent) == ("Ito", None)
    assert results(again)["flight"] == "flight to Osaka"
    assert Incident.objects.get().resolution == "restarted as new"


def test_nothing_is_undone_for_it() -> None:
    process = operated(cancel, finished(processes.Undoable))
    undone.clear()
    done.clear()
    restarted(process, name="Ito", nights=2)

    assert (undone, done) == ([], ["plan", "flight", "hotel", "invoice"])


def test_a_completed_process_is_restarted_too() -> None:
    process = finished(processes.Choice)
    again = restarted(process, **process.data)

    assert (process.status, again.status) == ("completed", "completed")


def test_what_cannot_be_restarted_is_refused_with_the_reason() -> None:
    process = failed("hotel")
    other = finished(processes.Trip, "Sato", 2)
    for given, why in (
        ({"name": "Ito", "nights": "two"}, "nights: Input should be a valid integer"),
        ({"name": "Ito", "nights": 2, "pets": 1}, "pets: "),
        ([], "no input of trip"),
        (None, "no input of trip"),
        ({"name": "Sato", "nights": 2}, "already a live trip with the key"),
    ):
        refused(why, restart, process, given)
    refused("still going on", restart, other, other.data)
    process.refresh_from_db()
    assert (process.status, ProcessInstance.objects.count()) == ("failed", 2)
    refused("send that event again", restart, place(), {})


def test_pressing_twice_starts_one_process() -> None:
    process, press = failed("hotel"), asked()
    given = {"name": "Ito"}  # its nights have a default
    first, again = (restart(process.pk, given, request=press) for _ in range(2))

    assert first.after == again.after
    assert ProcessInstance.objects.count() == 2


def test_the_new_one_takes_its_place_in_another_process() -> None:
    tour = insist(troubled(processes.Tour, drive=ConnectionError("no line")))
    child = tour.children.get()
    assert (tour.status, child.status) == ("failed", "failed")
    faults.clear()
    again = restarted(child, city="Uji", days=1)
    assert again.parent == tour
    decided(again)

    assert go_on(tour).status == "completed"
    assert results(tour)["leg"] == "arrived after 1 days to Uji"
    assert visit(tour, "leg").child == again


# Cancel


def test_a_cancelled_workflow_ends_at_once_when_nothing_can_be_undone() -> None:
    process = failed("hotel")
    action = cancel(process.pk, request=asked())
    process.refresh_from_db()

    assert (process.status, process.open_steps) == ("cancelled", 0)
    assert (action.after["status"], action.after["steps_to_undo"]) == ("cancelled", 0)
    assert Incident.objects.get().resolution == "cancelled"
    assert not StepRun.objects.filter(finished_at=None).exists()
    again = operated(cancel, finished(processes.Trip))  # its key is free
    assert statuses(again)["approve"] == "cancelled"


def test_cancel_undoes_the_finished_steps_the_last_one_first_once() -> None:
    process = finished(processes.Undoable)
    action = cancel(process.pk, request=asked())
    process.refresh_from_db()
    assert (process.status, action.after["steps_to_undo"]) == ("running", 2)
    refused("already being undone", cancel, process)

    assert (go_on(process).status, process.open_steps) == ("cancelled", 0)
    assert undone == ["release 2 nights in Nara", "release flight to Nara"]
    refused("has ended", cancel, process)


def test_what_is_being_undone_is_not_restarted_resumed_or_redone() -> None:
    process = finished(processes.Undoable)
    faults["release_hotel"] = BAD

    assert (operated(cancel, process).status, undone) == ("failed", [])
    refused("being undone", restart, process, process.data)
    refused("being undone", resume, process, 2)
    refused("being undone", redo, process, "plan")


def test_a_process_manager_is_cancelled_where_it_stands(handler: SetHandler) -> None:
    def fail(command: object) -> None:
        raise ConnectionError("no line")

    handler(BookCourier, fail, after_commit=True)
    parcel = underway("P-1", Courier.PARTNER)
    action = cancel(parcel.pk, request=asked())
    parcel.refresh_from_db()

    assert (parcel.status, parcel.step) == ("cancelled", "OnTheWay")
    assert parcel.step_runs.get(status="cancelled").node == "OnTheWay"
    assert action.after["commands_still_to_do"] == 1
    handler(BookCourier, lambda command: None, after_commit=True)
    assert operated(retry, parcel).status == "cancelled"
    assert IssuedCommand.objects.get(type="BookCourier").status == "done"


def test_events_of_a_cancelled_process_manager_are_shown() -> None:
    parcel = place()
    accept(parcel, ParcelDelivered("P-1"), "early")
    go_on(parcel)
    events = InboxEvent.objects.exclude(verdict="started")
    assert events.get().verdict == "parked"
    operated(cancel, parcel)
    accept(parcel, ParcelScanned("P-1", "Nagoya"), "late")

    assert go_on(parcel).status == "cancelled"
    assert [event.verdict for event in events] == ["unexpected", "unexpected"]


def test_deadlines_of_a_cancelled_process_do_not_pass() -> None:
    process = finished(processes.Patient)
    cancel(process.pk, request=asked())
    long_ago = process.started_at - timedelta(days=9)
    StepRun.objects.filter(wake_at__isnull=False).update(wake_at=long_ago)

    assert go_on(process).status == "cancelled"
    assert journal.done == ["apply"]
