"""An event that its process does not expect now is kept as long as the process lives, and offered when it is."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from orchestrator.conf import conf
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import ActionRequest, escalate
from orchestrator.models import (
    InboxEvent,
    Incident,
    Status,
    Verdict,
)
from orchestrator.testing import pass_time
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

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

PATIENCE = timedelta(seconds=conf().PATIENCE_SECONDS)
SECOND = timedelta(seconds=1)


def test_an_unexpected_event_is_parked_and_moves_nothing() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))

    assert (event.verdict, event.process_id) == (Verdict.PARKED, parcel.pk)
    assert (parcel.step, parcel.revision, parcel.parked) == ("Packing", 1, 1)
    assert not Incident.objects.exists()


def test_a_parked_event_says_until_when_it_is_kept() -> None:
    event = tell(place(), ParcelDelivered("P-1"))

    assert event.patience_until is not None
    assert abs(event.patience_until - timezone.now() - PATIENCE) < 10 * SECOND


def test_a_parked_event_is_offered_again_after_a_transition() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    tell(parcel, ParcelPacked(3))

    event.refresh_from_db()
    assert (event.verdict, event.revision) == (Verdict.MOVED, 3)
    assert (parcel.status, parcel.parked) == (Status.COMPLETED, 0)


def test_a_parked_event_that_is_still_early_is_parked_again(operator: User) -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    first = event.patience_until
    escalate(parcel.pk, request=ActionRequest(operator, uuid4(), "it is late"))
    drain()

    event.refresh_from_db()
    parcel.refresh_from_db()
    assert parcel.revision == 2
    assert (event.verdict, event.patience_until) == (Verdict.PARKED, first)


def test_several_parked_events_are_offered_in_the_order_of_their_arrival() -> None:
    parcel = place()
    for where in ("Nagoya", "Osaka"):
        tell(parcel, ParcelScanned("P-1", where))
    tell(parcel, ParcelDelivered("P-1"))
    assert parcel.parked == 3
    tell(parcel, ParcelPacked(3))

    assert (parcel.status, parcel.data["place"]) == (Status.COMPLETED, "Osaka")
    assert not InboxEvent.objects.parked().exists()


def test_after_its_patience_people_are_told_once_and_it_stays_parked() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    pass_time(PATIENCE + SECOND)
    pass_time(10 * PATIENCE)

    event.refresh_from_db()
    parcel.refresh_from_db()
    assert (event.verdict, event.wake_at) == (Verdict.PARKED, None)
    assert parcel.parked == 1
    incident = Incident.objects.open().get()
    assert (incident.kind, incident.instance_id, incident.event_id) == (
        "unexpected_event",
        parcel.pk,
        event.pk,
    )
    assert incident.message == "ParcelDelivered is not expected in step Packing"
    assert event.error == incident.message


def test_what_people_were_told_resolves_itself_when_the_event_is_taken() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    pass_time(PATIENCE + SECOND)
    tell(parcel, ParcelPacked(3))

    event.refresh_from_db()
    assert (event.verdict, event.revision, event.error) == (Verdict.MOVED, 3, "")
    assert (parcel.status, parcel.parked) == (Status.COMPLETED, 0)
    incident = Incident.objects.get()
    assert (incident.resolution, incident.resolved_at is None) == ("handled", False)


def test_an_event_that_comes_long_before_its_step_is_not_given_up() -> None:
    """It was, after its patience: the process then waited for ever for what it had been sent."""
    parcel = place()
    tell(parcel, ParcelDelivered("P-1"))
    for _ in range(3):
        pass_time(PATIENCE)
    tell(parcel, ParcelPacked(3))

    assert parcel.status == Status.COMPLETED
    assert not Incident.objects.open().exists()


def test_before_its_patience_is_over_nothing_is_shown() -> None:
    event = tell(place(), ParcelDelivered("P-1"))
    pass_time(PATIENCE - 10 * SECOND)

    event.refresh_from_db()
    assert event.verdict == Verdict.PARKED
    assert not Incident.objects.exists()


def test_an_unexpected_event_leaves_its_process_as_it_is() -> None:
    parcel = place()
    tell(parcel, ParcelDelivered("P-1"))
    pass_time(PATIENCE + SECOND)
    parcel.refresh_from_db()

    assert (parcel.status, parcel.step) == (Status.WAITING, "Packing")


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
    drain()

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
        drain()
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
