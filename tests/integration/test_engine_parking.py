"""An event that its process does not expect now is kept, offered again after each transition, and in the end shown."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from orchestrator.conf import conf
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import ActionRequest, escalate
from orchestrator.models import InboxEvent, Incident, Status, Verdict
from orchestrator.testing import pass_time
from tests.apps.process_managers.desk import accept, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    PackParcel,
    ParcelDelivered,
    ParcelPacked,
    ParcelScanned,
)

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


def test_after_its_patience_an_event_is_shown_as_unexpected() -> None:
    parcel = place()
    event = tell(parcel, ParcelDelivered("P-1"))
    pass_time(PATIENCE + SECOND)

    event.refresh_from_db()
    assert (event.verdict, event.wake_at) == (Verdict.UNEXPECTED, None)
    incident = Incident.objects.open().get()
    assert (incident.kind, incident.instance_id, incident.event_id) == (
        "unexpected_event",
        parcel.pk,
        event.pk,
    )
    assert incident.message == "ParcelDelivered is not expected in step Packing"
    assert event.error == incident.message


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


def test_events_in_any_order_lead_to_the_same_end() -> None:
    parcel = place()
    accept(parcel, ParcelDelivered("P-1"))
    accept(parcel, ParcelPacked(3))
    drain()

    parcel.refresh_from_db()
    assert parcel.status == Status.COMPLETED


def test_an_event_that_failed_before_and_is_parked_now_is_in_order_again(
    handler: SetHandler,
) -> None:
    """A handler was missing for an event; meanwhile another event took the process on."""
    parcel = place("P-1", Courier.PARTNER)
    with pytest.MonkeyPatch.context() as patch:
        from orchestrator import registry

        patch.delitem(registry.command_handlers, "BookCourier")
        event = tell(parcel, ParcelPacked(3))
    assert Incident.objects.open().count() == 1
    handler(BookCourier, lambda command: None, after_commit=True)
    accept(parcel, ParcelPacked(4))
    drain()
    pass_time(timedelta(seconds=31))

    event.refresh_from_db()
    assert (event.verdict, event.error) == (Verdict.PARKED, "")
    assert not Incident.objects.open().exists()


def test_a_definition_may_have_a_patience_of_its_own(
    monkeypatch: pytest.MonkeyPatch, handler: SetHandler
) -> None:
    from tests.apps.process_managers.processes import Shipping

    handler(PackParcel, lambda command: None)
    monkeypatch.setattr(Shipping, "patience", timedelta(hours=1))
    event = tell(place(), ParcelDelivered("P-1"))
    pass_time(timedelta(minutes=59))
    event.refresh_from_db()
    assert event.verdict == Verdict.PARKED
    pass_time(timedelta(minutes=2))

    event.refresh_from_db()
    assert event.verdict == Verdict.UNEXPECTED
