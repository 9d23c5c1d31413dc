"""In a project that groups the digits of numbers people read them so; addresses, forms and scripts have them whole."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.db import connection
from pytest_django import Settings

from monitoring.lists.events import events
from monitoring.lists.failures import failure_group
from monitoring.lists.waits import decisions
from monitoring.process.history import history
from monitoring.process.steps import visits
from monitoring.views.tags.console import unlocalized
from orchestrator import send_event, start_process
from orchestrator.models import (
    Definition,
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
    SavedView,
    StepRun,
)
from orchestrator.testing import run
from tests.apps.every_construct.processes import Inquiry, Paid
from tests.services.cases import words
from tests.services.client import Client
from tests.services.forms_of_actions import failed_order

pytestmark = pytest.mark.django_db

LARGE = 54_300
"""Keys, revisions and versions are just above."""

GROUPED = re.compile(r"(?<![\d.,])54\W3\d\d(?!\d)")

READ = {"title", "aria-label", "aria-valuetext", "data-label", "placeholder"}
"""Attributes that people read."""


@pytest.fixture(params=["en", "de"])
def large_keys(request: pytest.FixtureRequest, settings: Settings) -> None:
    settings.USE_THOUSAND_SEPARATOR = True
    settings.LANGUAGE_CODE = request.param
    for model in (StepRun, InboxEvent, Incident, Definition, OperatorAction, SavedView):
        table = model._meta.db_table
        with connection.cursor() as cursor:
            if connection.vendor == "sqlite":
                cursor.execute("DELETE FROM sqlite_sequence WHERE name = %s", [table])
                begin = "INSERT INTO sqlite_sequence (name, seq) VALUES (%s, %s)"
            else:
                begin = "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)"
            cursor.execute(begin, [table, LARGE])


@pytest.fixture
def pages_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each list has more than one page."""
    for module in (decisions, events, failure_group, history, visits):
        monkeypatch.setattr(module, "PAGE", 1)


@pytest.fixture
def order(large_keys: None) -> ProcessInstance:
    failed_order()
    return failed_order()


@pytest.fixture
def inquiry(large_keys: None, helpdesk: None) -> ProcessInstance:
    """The last of two, each with a map and a question; and two events that nobody took."""
    for ticket in ("T-1", "T-2"):
        send_event(Paid(f"no-{ticket}"), id=ticket, source="tests")
        receipt = start_process(Inquiry, Inquiry.Input(ticket))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


@pytest.fixture
def moved_often(order: ProcessInstance, inquiry: ProcessInstance) -> Iterator[None]:
    """As if each had as many transitions; at the end they have those that are stored."""
    every = list(ProcessInstance.objects.all())
    ProcessInstance.objects.update(revision=LARGE + 21)
    yield
    ProcessInstance.objects.bulk_update(every, ["revision"])


def grouped(page: str) -> set[tuple[str, str]]:
    """The attributes of a page, and texts that a form sends, in which a number is not whole."""
    found = {
        (name, value)
        for tag in re.findall(r"<[^>]*>", page)
        for name, value in re.findall(r'([\w:-]+)="([^"]*)"', tag)
        if name not in READ and GROUPED.search(value)
    }
    sent = re.findall(r"<option(?![^>]*value=)[^>]*>([^<]*)<", page)
    return found | {("option", text) for text in sent if GROUPED.search(text)}


@pytest.mark.usefixtures("moved_often", "pages_of_one")
def test_no_attribute_of_a_page_has_a_grouped_number(
    admin: Client, order: ProcessInstance, inquiry: ProcessInstance
) -> None:
    other = order.definition
    other.pk, other.version, other.fingerprint = None, LARGE + 21, "other"
    other.save()
    admin.post("/views/", {"key": uuid4().hex, "name": "mine", "query": "q=a"})
    cause = Incident.objects.filter(instance=order).get().fingerprint
    looked_at = """/ /processes/ /failures/ /waits/ /decisions/ /stalled/ /audit/
        /operations/ /events/ /views/ /tokens/ /failures/{cause}/
        /definitions/order-listing/ /definitions/order-listing/versions/
        /definitions/order-listing/versions/compare/
        /operations/begin/?definition=order-listing&status=failed
        /processes/{order}/ /processes/{order}/?at=1 /processes/{order}/messages/
        /processes/{order}/repair/ /processes/{inquiry}/ /processes/{inquiry}/?at=1
        /processes/{inquiry}/?step=verdict /processes/{inquiry}/?step=read_page
        /processes/{inquiry}/repair/?step=verdict"""
    named = {"cause": cause, "order": order.pk, "inquiry": inquiry.pk}
    addresses = words(looked_at.format(**named))

    pages = {address: admin.read(address) for address in addresses}

    found = {address: grouped(page) for address, page in pages.items()}
    assert not {address: its for address, its in found.items() if its}
    several = ("/events/", "/decisions/", f"/failures/{cause}/")
    for address in (*several, f"/processes/{inquiry.pk}/"):  # leads to another page
        assert re.search(r"(before|after|runs)=543\d\d\W", pages[address])


@pytest.mark.usefixtures("moved_often")
def test_the_admin_sends_whole_keys_and_revisions(admin: Client) -> None:
    for rows, action in ((ProcessInstance, "escalate"), (InboxEvent, "discard")):
        last = rows._default_manager.latest("pk").pk
        chosen = {"action": action, "_selected_action": [last]}

        place = f"/admin/orchestrator/{rows._meta.model_name}/"
        asked = admin.post(place, chosen).text

        assert 'name="reason"' in asked
        assert not grouped(asked)


def test_a_button_says_of_which_transition_its_page_was(
    admin: Client, order: ProcessInstance
) -> None:
    now = order.revision
    ProcessInstance.objects.filter(pk=order.pk).update(revision=LARGE)
    page = admin.get(f"/processes/{order.pk}/").text
    ProcessInstance.objects.filter(pk=order.pk).update(revision=now)
    (shown,) = re.findall(r'data-revision="([^"]*)"', page)

    form = {"key": uuid4().hex, "reason": "", "person": "", "revision": shown}
    answer = admin.post(f"/processes/{order.pk}/assign/", form)

    assert (shown, answer.status_code) == (str(LARGE), 409)


@pytest.mark.usefixtures("inquiry")
def test_an_open_page_of_waits_keeps_its_rows(admin: Client) -> None:
    def rows(**query: str) -> list[str]:
        page = admin.read("/waits/", query, headers={"HX-Request": "true"})
        return re.findall(r'data-row="([^"]*)"', page)

    shown = re.findall(r'data-row="([^"]*)"', admin.read("/waits/"))
    assert shown
    assert rows(since="1", rows=",".join(shown)) == shown


def test_the_bar_of_elements_that_all_came_to_the_same_is_full(
    admin: Client, inquiry: ProcessInstance
) -> None:
    page = admin.read(f"/processes/{inquiry.pk}/?step=read_page")

    assert 'x="0" width="1000"' in page
    assert unlocalized(12_345_678) == "12345678"
