"""An event that its process does not expect now is kept as long as the process lives, and offered when it is."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from orchestrator.configuration.conf import conf
from orchestrator.definition import Event, Workflow, start, wait
from orchestrator.engine.operations import discard, escalate
from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.testing import pass_time, run, started
from tests.apps.process_managers.desk import accept, overdue, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CourierBooked,
    PackParcel,
    ParcelDelivered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.doing import did, fresh, taking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS)
SECOND = timedelta(seconds=1)
DELIVERED = ParcelDelivered("P-1")


class LetterSent(Event):
    pass


class Letter(Workflow):
    """Waits for a letter."""

    flow = (start(wait(LetterSent)),)


letters = knowing(Letter)


def open_incident() -> Incident:
    found: Incident = Incident.objects.open().get()
    return found


def test_an_unexpected_event_is_parked_until_a_transition_leads_to_its_step() -> None:
    parcel = place()
    event = tell(parcel, DELIVERED)

    first = event.patience_until
    assert first is not None
    assert abs(first - timezone.now() - PATIENCE) < 10 * SECOND
    assert (event.verdict, event.process_id) == ("parked", parcel.pk)
    assert (parcel.step, parcel.revision, parcel.parked) == ("Packing", 1, 1)
    assert not Incident.objects.exists()

    did(escalate, parcel)
    run()
    assert (fresh(event).verdict, event.patience_until) == ("parked", first)

    tell(parcel, ParcelPacked(3))
    assert (fresh(event).verdict, event.revision) == ("moved", 4)
    assert (parcel.status, parcel.parked) == ("completed", 0)


def test_after_its_patience_people_are_told_once_until_it_is_taken_after_all() -> None:
    parcel = place()
    event = tell(parcel, DELIVERED)
    pass_time(PATIENCE - 10 * SECOND)
    assert not Incident.objects.exists()
    pass_time(11 * SECOND)
    pass_time(10 * PATIENCE)

    assert (fresh(event).verdict, event.wake_at) == ("parked", None)
    assert (fresh(parcel).status, parcel.parked) == ("waiting", 1)
    incident = open_incident()
    assert (incident.kind, incident.step) == ("unexpected_event", "Packing")
    assert (incident.instance_id, incident.event_id) == (parcel.pk, event.pk)
    said = "ParcelDelivered is not expected in step Packing"
    assert incident.message == event.error == said

    tell(parcel, ParcelPacked(3))
    assert (fresh(event).verdict, event.revision, event.error) == ("moved", 3, "")
    assert (parcel.status, parcel.parked) == ("completed", 0)
    assert fresh(incident).resolution == "handled"
    assert incident.resolved_at is not None


def test_an_event_after_the_end_is_shown_at_once() -> None:
    parcel = underway()
    tell(parcel, DELIVERED)

    assert tell(parcel, ParcelScanned("P-1", "Nagoya")).verdict == "unexpected"
    assert Incident.objects.get().message.endswith("came after the process had ended")
    assert (parcel.status, parcel.revision) == ("completed", 3)


def test_what_is_still_parked_at_the_end_is_shown() -> None:
    parcel = place()
    event, again = (tell(parcel, ParcelPacked(3)) for _ in range(2))
    assert again.verdict == "parked"
    tell(parcel, DELIVERED)

    assert (fresh(event).verdict, fresh(again).verdict) == ("moved", "unexpected")
    assert again.error == "ParcelPacked was parked until the process had ended"
    assert open_incident().message == again.error


def test_what_failed_and_is_parked_is_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """The running code did not know an event; meanwhile a deadline took the process on."""
    parcel = underway("P-1")
    with monkeypatch.context() as patch:
        number = accept(parcel, CourierBooked("B-1"))
        patch.delitem(Shipping.events, "CourierBooked")
        run()
    open_incident()
    overdue(parcel)
    pass_time(seconds=31)

    event = InboxEvent.objects.get(pk=number)
    assert (event.verdict, event.error) == ("parked", "")
    assert not Incident.objects.open().exists()


def test_a_definition_may_have_a_patience_of_its_own(
    monkeypatch: pytest.MonkeyPatch, handler: SetHandler
) -> None:
    handler(PackParcel, taking)
    monkeypatch.setattr(Shipping, "patience", timedelta(hours=1))
    event = tell(place(), DELIVERED)
    pass_time(minutes=59)
    assert fresh(event).verdict == "parked"
    assert not Incident.objects.exists()
    pass_time(minutes=2)

    assert open_incident().event_id == event.pk


class ParcelPainted(Event):
    """No definition lists it."""


def unlisted(parcel: ProcessInstance) -> InboxEvent:
    event = tell(parcel, ParcelPainted())
    assert (event.verdict, fresh(parcel).parked) == ("parked", 1)
    return event


def test_an_event_of_a_type_that_the_running_code_lacks_is_parked_and_holds_back_nobody() -> (
    None
):
    parcel = underway()
    event = unlisted(parcel)

    assert tell(parcel, ParcelScanned("P-1", "Kobe")).verdict == "moved"
    pass_time(minutes=5)
    assert open_incident().kind == Incident.Kind.HANDLER_MISSING
    assert (fresh(event).verdict, parcel.parked) == ("parked", 1)
    assert tell(parcel, DELIVERED).verdict == "moved"
    assert fresh(event).verdict == "unexpected"


def test_an_event_of_a_type_that_the_running_code_lacks_can_be_discarded() -> None:
    parcel = underway()
    event = unlisted(parcel)

    discard(event.pk, request=asked())

    assert (fresh(event).verdict, fresh(parcel).parked) == ("discarded", 0)
    assert not Incident.objects.open().exists()


@pytest.mark.parametrize("definition", [Shipping, Letter])
def test_an_event_is_offered_when_the_running_code_has_its_type_again(
    definition: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An older worker comes to it first, in a deployment."""
    process = underway() if definition is Shipping else started(Letter).instance
    event = ParcelScanned("P-1", "Kobe") if definition is Shipping else LetterSent()
    with monkeypatch.context() as before:
        before.setattr(definition, "events", {"ParcelPacked": ParcelPacked})
        kept = tell(process, event)
        assert kept.verdict == "parked"
    pass_time(seconds=31)

    assert fresh(kept).verdict == "moved"
    assert not Incident.objects.open().exists()


def test_events_that_waited_for_the_code_are_taken_in_their_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The newer one has come 20 seconds later, and the code comes between their next looks."""
    parcel = underway()
    with monkeypatch.context() as before:
        before.setattr(Shipping, "events", {"ParcelPacked": ParcelPacked})
        older = tell(parcel, ParcelScanned("P-1", "Kobe"))
        pass_time(seconds=20)
        newer = tell(parcel, ParcelScanned("P-1", "Osaka"))
        pass_time(seconds=15)
        assert [fresh(one).verdict for one in (older, newer)] == ["parked"] * 2
    pass_time(minutes=1)

    assert [fresh(one).verdict for one in (older, newer)] == ["moved"] * 2
    assert (older.revision or 0) < (newer.revision or 0)
