"""S10.3: the columns of a list are chosen, and stand in its address."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.queries.columns import COLUMNS
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.pages import page_of
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.testing import run
from tests.services.cases import cases
from tests.services.client import Client, Read

pytestmark = pytest.mark.django_db


@pytest.fixture
def order() -> ProcessInstance:
    place_order(Destination.EXTERNAL, "50 MWh", "A-1")
    run()
    return ProcessInstance.objects.get(correlation_key="A-1")


def heads(page: str) -> list[str]:
    listing = page.partition('id="listing"')[2]
    found = re.findall(r"<th(?: [^>]*)?>\s*(?:<a[^>]*>)?([^<]*)", listing)
    return [head.strip(" \n↑↓") for head in found]


def test_s10_3_the_usual_ones_say_what_it_is_and_where_it_stands(
    order: ProcessInstance, operator: User, show: Read
) -> None:
    ProcessInstance.objects.filter(pk=order.pk).update(owner=operator)
    page = show()

    assert heads(page) == [
        "Status",
        "Process",
        "Summary",
        "Step",
        "In the step",
        "Last change",
        "Owner",
    ]
    row = page.partition('id="rows"')[2]
    assert order.summary in row
    assert "operator" in row
    assert 'class="elapsed' in row


def test_s10_3_others_are_chosen_by_the_address_and_stay_in_its_links(
    order: ProcessInstance, show: Read
) -> None:
    page = show(columns="started,nonsense,owner", status="live")

    assert heads(page) == ["Status", "Process", "Started", "Owner"]
    assert 'href="?columns=started%2Cnonsense%2Cowner"' in page  # without the filter
    assert heads(show(columns="-")) == ["Status", "Process"]
    assert heads(show(columns="\0<script>")) == ["Status", "Process"]


@cases(
    "picked, leads_to",
    (["process", "started", "owner"], {"columns": "started,owner"}),
    (["process"], {"columns": "-"}),
    (["process", "owner", "changed", "since", "step", "summary"], {}),
    (["process", *reversed(COLUMNS)], {"columns": ",".join(COLUMNS)}),
)
def test_s10_3_a_form_without_scripts_chooses_them(
    picked: list[str], leads_to: dict[str, str], operating: Client
) -> None:
    given = {"status": "failed", "q": "", "column": picked}

    answer = operating.get(f"/processes/?{urlencode(given, doseq=True)}")

    wanted = urlencode({"status": "failed", **leads_to})
    assert answer["Location"] == f"/processes/?{wanted}"


def test_s10_3_the_time_in_the_step_is_that_of_its_open_visit(
    order: ProcessInstance,
) -> None:
    since = timezone.now() - timedelta(hours=3)
    StepRun.objects.filter(instance=order, finished_at=None).update(started_at=since)
    place_order(Destination.INTERNAL, "1 MWh", "A-2")
    run()

    rows: dict[str, Any] = {row.correlation_key: row for row in page_of(Filters()).rows}

    assert rows["A-1"].in_step_since == since
    assert rows["A-2"].in_step_since is None  # it has completed


def test_s10_3_columns_narrow_nothing(
    order: ProcessInstance, operating: Client, operator: User, show: Read
) -> None:
    page = show(columns="started")
    assert "remove the filter" not in page
    assert "Narrow the list first" in page

    begun = show("/operations/begin/", action="escalate", columns="started")

    assert "Say which first." in begun


def test_s10_3_they_cost_no_further_question(
    order: ProcessInstance, operating: Client
) -> None:
    operating.get("/processes/")

    def questions(address: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            operating.get(address)
        return len(asked)

    every = ",".join(COLUMNS)
    assert questions(f"/processes/?columns={every}") == questions("/processes/")


def test_s10_3_below_a_map_they_are_chosen_too(
    order: ProcessInstance, show: Read
) -> None:
    page = show("/definitions/order-listing/", columns="started")

    assert heads(page)[:4] == ["Status", "Process", "Started", "Step"]  # of the steps
