"""Events in the admin are found by the ids that their senders gave them."""

import re

import pytest
from django.urls import reverse

from monitoring.lists.events import events
from orchestrator import send_event
from orchestrator.models import InboxEvent
from tests.apps.process_managers.messages import DepotOpened
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.explained import explained

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


@pytest.fixture
def desk(admin: Client) -> Client:
    """Return an administrator's browser, where each of three systems has sent three events."""
    for source in ("bank", "shop", "web"):
        for number in range(3):
            send_event(DepotOpened("east"), id=f"{source}-{number}", source=source)
    send_event(DepotOpened("east"), id="same", source="shop")
    send_event(DepotOpened("east"), id="same", source="web")
    return admin


def found(desk: Client, words: str) -> list[str]:
    page = desk.get(reverse("admin:orchestrator_inboxevent_changelist"), {"q": words})
    return re.findall(r'field-event_id">([^<]*)', page.content.decode())


@cases(
    "words, ids",
    *((id, [id]) for id in ("bank-0", "shop-1", "web-2")),
    (" same ", ["same", "same"]),
    *((words, []) for words in ("bank", "bank-%", "BANK-0", "x" * 300)),
)
def test_an_event_is_found_by_its_whole_id_whoever_sent_it(
    desk: Client, words: str, ids: list[str]
) -> None:
    assert found(desk, words) == ids


def test_a_number_may_be_an_id_or_that_of_a_row(desk: Client) -> None:
    row = InboxEvent.objects.get(event_id="web-0")
    assert found(desk, str(row.pk)) == ["web-0"]
    send_event(DepotOpened("east"), id=str(row.pk), source="shop")

    assert found(desk, str(row.pk)) == [str(row.pk), "web-0"]


def test_the_look_up_goes_by_an_index_and_not_through_the_table(desk: Client) -> None:
    with explained() as plans:
        assert len(events.events_with_id("shop-1")) == 1

    assert len(plans) == len(["the senders", "their events"])
    unique = "one_row_per_receipt|INDEX sqlite_autoindex_orchestrator_inboxevent"
    assert [plan for plan in plans if not re.search(unique, plan)] == []
