"""An event that its process does not expect now is kept as long as the process lives, and offered when it is."""

from datetime import timedelta

import pytest
from django.utils import timezone

from orchestrator.conf import conf
from orchestrator.engine.operations import escalate
from orchestrator.models import (
    InboxEvent,
    Incident,
    Status,
    Verdict,
)
from orchestrator.testing import pass_time, run
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

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS)
SECOND = timedelta(seconds=1)


def test_an_unexpected_event_is_parked_until_a_transition_leads_to_its_step() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))

    first = event.patience_until
    assert first is not None
    assert abs(first - timezone.now() - PATIENCE) < 10 * SECOND
    assert (event.verdict, event.process_id) == (Verdict.PARKED, parcel.pk)
    assert (parcel.step, parcel.revision, parcel.parked) == ("Packing", 1, 1)
    assert not Incident.objects.exists()

    escalate(parcel.pk, request=asked())
    run()
    event.refresh_from_db()
    assert (event.verdict, event.patience_until) == (Verdict.PARKED, first)

    tell(parcel, ParcelPacked(3))
    event.refresh_from_db()
    assert (event.verdict, event.revision) == (Verdict.MOVED, 4)
    assert (parcel.status, parcel.parked) == (Status.COMPLETED, 0)


def test_several_parked_events_are_offered_in_the_order_of_their_arrival() -> None:
    parcel = place()
    for where in ("Nagoya", "Osaka"):
        tell(parcel, ParcelScanned("P-1", where))
    tell(parcel, ParcelDelivered("P-1"))
    assert parcel.parked == 3
    tell(parcel, ParcelPacked(3))

    assert (parcel.status, parcel.data["place"]) == (Status.COMPLETED, "Osaka")
    assert not InboxEvent.objects.parked().exists()


def test_after_its_patience_people_are_told_once_until_it_is_taken_after_all() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    pass_time(PATIENCE - 10 * SECOND)
    assert not Incident.objects.exists()
    pass_time(11 * SECOND)
    pass_time(10 * PATIENCE)

    event.refresh_from_db()
    parcel.refresh_from_db()
    assert (event.verdict, event.wake_at) == (Verdict.PARKED, None)
    assert (parcel.status, parcel.step, parcel.parked) == ("waiting", "Packing", 1)
    incident = Incident.objects.open().get()
    assert (incident.kind, incident.step) == ("unexpected_event", "Packing")
    assert (incident.instance_id, incident.event_id) == (parcel.pk, event.pk)
    assert incident.message == "ParcelDelivered is not expected in step Packing"
    assert event.error == incident.message

    tell(parcel, ParcelPacked(3))
    event.refresh_from_db()
    assert (event.verdict, event.revision, event.error) == (Verdict.MOVED, 3, "")
    assert (parcel.status, parcel.parked) == (Status.COMPLETED, 0)
    incident.refresh_from_db()
    assert (incident.resolution, incident.resolved_at is None) == ("handled", False)


def test_an_event_after_the_end_is_shown_at_once() -> None:
    parcel = underway()
    tell(parcel, ParcelDelivered("P-1"))
    event = tell(parcel, ParcelScanned("P-1", "Nagoya"))

    assert event.verdict == Verdict.UNEXPECTED
    assert Incident.objects.get().message.endswith("came after the process had ended")
    assert (parcel.status, parcel.revision) == (Status.COMPLETED, 3)


def test_what_is_still_parked_at_the_end_is_shown() -> None:
    parcel = place()
    event = tell(parcel, ParcelPacked(3))
    again = tell(parcel, ParcelPacked(3))
    assert again.verdict == Verdict.PARKED
    tell(parcel, ParcelDelivered("P-1"))

    event.refresh_from_db()
    again.refresh_from_db()
    assert (event.verdict, again.verdict) == (Verdict.MOVED, Verdict.UNEXPECTED)
    assert again.error == "ParcelPacked was parked until the process had ended"
    assert Incident.objects.open().get().message == again.error


def test_events_in_any_order_lead_to_the_same_end() -> None:
    parcel = place()
    accept(parcel, ParcelDelivered("P-1"))
    accept(parcel, ParcelPacked(3))
    run()

    parcel.refresh_from_db()
    assert parcel.status == Status.COMPLETED


def test_an_event_that_failed_before_and_is_parked_now_is_in_order_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The running code did not know an event; meanwhile a deadline took the process on."""
    parcel = underway("P-1")
    number = accept(parcel, CourierBooked("B-1"))
    with monkeypatch.context() as patch:
        patch.delitem(Shipping.events, "CourierBooked")
        run()
    event = InboxEvent.objects.get(pk=number)
    assert Incident.objects.open().count() == 1
    overdue(parcel)
    pass_time(timedelta(seconds=31))

    event.refresh_from_db()
    assert (event.verdict, event.error) == (Verdict.PARKED, "")
    assert not Incident.objects.open().exists()


def test_a_definition_may_have_a_patience_of_its_own(
    monkeypatch: pytest.MonkeyPatch, handler: SetHandler
) -> None:
    handler(PackParcel, lambda command: None)
    monkeypatch.setattr(Shipping, "patience", timedelta(hours=1))
    event = tell(place(), ParcelDelivered("P-1"))
    pass_time(timedelta(minutes=59))
    event.refresh_from_db()
    assert event.verdict == Verdict.PARKED
    assert not Incident.objects.exists()
    pass_time(timedelta(minutes=2))

    assert Incident.objects.get().event_id == event.pk
