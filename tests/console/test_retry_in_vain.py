"""Failures that no retry mends: the console offers none, and an operation that did nothing says so."""

import pytest
from django.contrib.auth.models import User

from monitoring.views.tags.bulk import operation_chip
from orchestrator.models import BulkOperation, Incident
from tests.apps.process_managers.desk import tell, underway
from tests.apps.process_managers.fixtures import parcels
from tests.apps.process_managers.messages import ParcelDelivered
from tests.services.bulk import begun, worked_on
from tests.services.client import Read

__all__ = ["parcels"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

BEGINS = "/operations/begin/?action=retry"
WHY = "No step took these events, and nothing has failed"


def late_event() -> str:
    """Send an event to a process that has ended, and return the cause of the incident."""
    parcel = underway()
    tell(parcel, ParcelDelivered("P-1"), "the end")
    tell(parcel, ParcelDelivered("P-1"), "too late")
    return str(Incident.objects.open().get().fingerprint)


def test_no_retry_is_offered_for_events_that_no_step_took(
    operating: None, read: Read
) -> None:
    cause = late_event()
    for place in ("/failures/", f"/failures/{cause}/"):
        page = read(place)
        assert (BEGINS in page, WHY in page) == (False, True), place


def test_an_operation_that_was_refused_everywhere_says_that_nothing_was_done(
    operator: User, read: Read
) -> None:
    late_event()
    operation = begun(operator, {"q": "P-1"}, 1)
    worked_on(operation)

    page = read(f"/operations/{operation.pk}/")
    assert "ended, nothing was done" in page
    assert 'class="in-vain"' in page
    assert "ended, nothing was done" in read("/operations/")


def test_an_operation_whose_items_failed_again_has_done_something() -> None:
    operation = BulkOperation(status="completed", total=2, failed=2)
    assert "Completed" in operation_chip(operation).title()
    assert "nothing was done" not in operation_chip(operation)
