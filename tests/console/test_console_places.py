"""The admin leads to the console: from each row to where the console shows it, under any prefix."""

import re
from html import unescape

import pytest
from django.db.models import Model
from django.test import override_settings
from django.urls import clear_script_prefix, reverse, set_script_prefix

from examples.order_listing.models import Order
from monitoring.base.row_addresses import place_of
from orchestrator.models import (
    Checkpoint,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from tests.browser.samples import orders
from tests.services.cases import cases
from tests.services.client import Client

pytestmark = pytest.mark.django_db

MODELS: list[type[Model]] = [
    *(Definition, ProcessInstance, StepRun, Checkpoint),
    *(IssuedCommand, InboxEvent, Incident),
]


@pytest.fixture
def placed() -> dict[str, Order]:
    return orders()


def admin_page(model: type[Model], view: str, *args: object) -> str:
    return reverse(f"admin:orchestrator_{model._meta.model_name}_{view}", args=args)


def links(page: str) -> list[str]:
    found = re.findall(r'field-in_console"><a href="([^"]+)"', page)
    return [unescape(address) for address in found]


@cases("model", *MODELS)
def test_each_row_leads_to_its_page_from_the_list_and_from_its_own(
    model: type[Model], placed: dict[str, Order], admin: Client
) -> None:
    found = links(admin.read(admin_page(model, "changelist")))

    rows = model._default_manager.all()
    own = admin.read(admin_page(model, "change", rows[0].pk))
    assert place_of(rows[0]) in unescape(own)
    if model is IssuedCommand:  # the list is about those of processes
        rows = rows.filter(instance__isnull=False)
    assert len(found) == rows.count()
    for address in dict.fromkeys(found):
        admin.read(address)


def test_a_row_leads_to_its_own_place_on_the_page(placed: dict[str, Order]) -> None:
    process = placed["failed"].process_id
    event = InboxEvent.objects.get(event_id="lost")
    checkpoint = Checkpoint.objects.get(instance=process, revision=1)

    assert place_of(event) == "/events/?tab=unrouted&q=lost"
    assert place_of(checkpoint) == f"/processes/{process}/?before=2#revision-1"
    assert place_of(OperatorAction()) == ""
    assert place_of(Incident(event=event)) == "/failures/"
    assert place_of(Incident(event=event, kind="unrouted_event")) == "/events/"


def test_the_links_have_the_prefix_that_the_site_has(placed: dict[str, Order]) -> None:
    process = ProcessInstance.objects.get(pk=placed["failed"].process_id)
    set_script_prefix("/ops/")
    try:
        assert place_of(process) == f"/ops/processes/{process.pk}/"
    finally:
        clear_script_prefix()


@override_settings(ROOT_URLCONF="tests.apps.elsewhere.nothing_there")
def test_without_a_console_there_are_no_links(placed: dict[str, Order]) -> None:
    assert place_of(ProcessInstance.objects.all()[0]) == ""


@cases("model", ProcessInstance, StepRun, Incident)
def test_lists_of_the_admin_have_steps_by_their_names(
    model: type[Model], placed: dict[str, Order], admin: Client
) -> None:
    page = admin.read(admin_page(model, "changelist"))

    table = page.partition("<tbody>")[2].partition("</tbody>")[0]
    assert "AwaitingExternalCreation" not in table
    if model is not Incident:
        assert "Awaiting external creation" in table
