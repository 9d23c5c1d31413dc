"""A process's page shows what is parked for it from the first second, with the steps that would take it."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.html import strip_tags

from orchestrator import send_event
from orchestrator.conf import conf
from orchestrator.engine.events.delivery import deliver
from orchestrator.engine.storage.tables import events
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.processes import Visa
from tests.apps.compensation.steps import VisaGranted
from tests.apps.patterns.desk import launch
from tests.apps.process_managers.desk import place, tell
from tests.apps.process_managers.messages import ParcelDelivered, ParcelScanned
from tests.apps.richer_steps.processes import Paid, Paying
from tests.services.client import Client

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "trips")]


@pytest.fixture(scope="module", autouse=True)
def payments() -> Iterator[None]:
    """For a whole module: the invariants are asked for after each test, and must still know the definition."""
    with registered(Paying):
        yield


def page(client: Client, operator: User, process: ProcessInstance) -> str:
    client.force_login(operator)
    found = client.read(reverse("monitoring:instance", args=[process.pk]))
    return " ".join(strip_tags(found).split())


def test_a_parked_event_is_shown_with_the_steps_that_take_it(
    client: Client, operator: User
) -> None:
    parcel = place()
    tell(parcel, ParcelDelivered("P-1"))
    text = page(client, operator, parcel)

    assert "Parked until a step takes it ParcelDelivered On the way, Missing" in text
    assert "people are told in" in text


def test_when_people_were_told_it_says_so(client: Client, operator: User) -> None:
    parcel = place()
    tell(parcel, ParcelDelivered("P-1"))
    pass_time(timedelta(seconds=conf().PATIENCE_SECONDS + 1))

    assert "Missing people were told" in page(client, operator, parcel)


def test_of_many_of_one_type_the_page_says_how_many(
    client: Client, operator: User
) -> None:
    parcel = place()
    for event in (*[ParcelDelivered("P-1")] * 23, ParcelScanned("P-1", "Linz")):
        tell(parcel, event)
    text = page(client, operator, parcel)

    assert "ParcelDelivered \N{MULTIPLICATION SIGN} 23 On the way" in text
    assert text.index("ParcelDelivered \N{MULTIPLICATION SIGN}") < text.index(
        "ParcelScanned On the way"
    )


def test_a_workflow_shows_the_step_that_waits_for_it(
    client: Client, operator: User
) -> None:
    process = launch(Visa)
    send_event(VisaGranted("V-1"), id="1", process_id=process.pk)
    (claimed,) = events.claim("default", "a worker", 1, 10)
    deliver(claimed.work)

    text = page(client, operator, process)
    assert "Parked until a step takes it VisaGranted Wait for visa granted" in text


def test_an_event_that_a_guard_keeps_out_is_not_said_to_be_taken_there(
    client: Client, operator: User
) -> None:
    process = launch(Paying, "O-1", 3)
    run()
    send_event(Paid("O-1", amount=7), id="1", process_id=process.pk)
    run()
    text = page(client, operator, process)

    assert "Paid Payment does not take it: a guard does not hold" in text
