"""A process's page shows what is parked for it from the first second, with the steps that would take it."""

from collections.abc import Iterator
from datetime import timedelta

import pytest

from orchestrator import send_event
from orchestrator.configuration.conf import conf
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.sql.tables import events
from orchestrator.testing import pass_time, registered, run
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.processes import Visa
from tests.apps.compensation.steps import VisaGranted
from tests.apps.patterns.desk import launch
from tests.apps.process_managers.desk import place, tell
from tests.apps.process_managers.messages import ParcelDelivered, ParcelScanned
from tests.apps.richer_steps.processes import Paid, Paying
from tests.services.client import Read
from tests.services.reading import plain

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "trips")]


@pytest.fixture(scope="module", autouse=True)
def payments() -> Iterator[None]:
    """For a whole module: the invariants are asked for after each test, and must still know the definition."""
    with registered(Paying):
        yield


def test_a_parked_event_is_shown_with_the_steps_that_take_it_and_whether_people_know(
    page_of: Read,
) -> None:
    parcel = place()
    tell(parcel, ParcelDelivered("P-1"))
    text = plain(page_of(parcel))

    assert "Parked until a step takes it ParcelDelivered On the way, Missing" in text
    assert "people are told in" in text
    pass_time(timedelta(seconds=conf().PATIENCE_SECONDS + 1))
    assert "Missing people were told" in plain(page_of(parcel))


def test_of_many_of_one_type_the_page_says_how_many(page_of: Read) -> None:
    parcel = place()
    for event in (*[ParcelDelivered("P-1")] * 23, ParcelScanned("P-1", "Linz")):
        tell(parcel, event)
    text = plain(page_of(parcel))

    many = "ParcelDelivered \N{MULTIPLICATION SIGN} 23 On the way"
    assert 0 < text.index(many) < text.index("ParcelScanned On the way")


def test_a_workflow_shows_the_step_that_waits_for_it(page_of: Read) -> None:
    process = launch(Visa)
    send_event(VisaGranted("V-1"), id="1", process_id=process.pk)
    (claimed,) = events.claim("default", "a worker", 1, 10)
    deliver_claimed(claimed.work)

    waits = "Parked until a step takes it VisaGranted Wait for visa granted"
    assert waits in plain(page_of(process))


def test_an_event_that_a_guard_keeps_out_is_not_said_to_be_taken(page_of: Read) -> None:
    process = launch(Paying, "O-1", 3)
    run()
    send_event(Paid("O-1", amount=7), id="1", process_id=process.pk)
    run()

    told = "Paid Payment does not take it: a guard does not hold"
    assert told in plain(page_of(process))
