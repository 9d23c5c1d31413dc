"""S10.3: the columns of a list are chosen, and stand in its address."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from examples.order_listing.messages import Destination
from monitoring.lists.processes.columns import COLUMNS
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page
from orchestrator.models import ProcessInstance, StepRun
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.placing import placed

pytestmark = pytest.mark.django_db


@pytest.fixture
def order() -> ProcessInstance:
    return placed(Destination.EXTERNAL, key="A-1")


def heads(page: str) -> list[str]:
    listing = page.partition('id="listing"')[2]
    found = re.findall(r"<th(?: [^>]*)?>\s*(?:<a[^>]*>)?([^<]*)", listing)
    return [head.strip(" \n↑↓") for head in found]


USUAL = ["Summary", "Step", "In the step", "Last change", "Owner"]


def test_s10_3_the_usual_ones_say_what_it_is_and_where_it_stands(
    order: ProcessInstance, operator: User, show: Read
) -> None:
    ProcessInstance.objects.filter(pk=order.pk).update(owner=operator)
    page = show()

    assert heads(page) == ["Status", "Process", *USUAL]
    row = page.partition('id="rows"')[2]
    for said in (order.summary, "operator", 'class="elapsed'):
        assert said in row


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


def test_s10_3_the_time_in_step_is_of_the_open_visit(order: ProcessInstance) -> None:
    since = timezone.now() - timedelta(hours=3)
    visits = StepRun.objects.filter(instance=order, finished_at=None)
    visits.update(started_at=since, wake_at=F("wake_at") - timedelta(hours=3))
    ended = placed(Destination.INTERNAL)

    rows: list[Any] = list(process_page(Filters()).rows)

    found = {row.pk: row.in_step_since for row in rows}
    assert found == {order.pk: since, ended.pk: None}


def test_s10_3_columns_narrow_nothing_and_are_chosen_below_a_map_too(
    order: ProcessInstance, show: Read
) -> None:
    page = show(columns="started")
    assert "remove the filter" not in page
    assert "Narrow the list first" in page

    begun = show("/operations/begin/", action="escalate", columns="started")
    assert "Say which first." in begun
    page = show("/definitions/order-listing/", columns="started")
    assert heads(page)[:4] == ["Status", "Process", "Started", "Step"]  # of the steps


def test_s10_3_they_cost_no_question(order: ProcessInstance, operating: Client) -> None:
    operating.get("/processes/")

    def questions(address: str) -> int:
        with CaptureQueriesContext(connection) as asked:
            operating.get(address)
        return len(asked)

    every = ",".join(COLUMNS)
    assert questions(f"/processes/?columns={every}") == questions("/processes/")
