"""S10.3: a list is read from either end; what it is sorted by stands in its address, and nothing else is offered."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.pages import page_of, same_rows
from orchestrator.engine.drain import drain
from orchestrator.models import BulkOperation, ProcessInstance, SavedView

pytestmark = pytest.mark.django_db

Show = Callable[..., str]
KEYS = [f"A-{number}" for number in range(1, 6)]


@pytest.fixture
def orders() -> list[str]:
    for number, key in enumerate(KEYS):
        outside = Destination.EXTERNAL if number % 2 else Destination.INTERNAL
        place_order(outside, "50 MWh", key)
    drain()
    return KEYS


@pytest.fixture
def show(client: Client, operator: User) -> Show:
    client.force_login(operator)

    def shown(path: str = "/processes/", **given: str) -> str:
        answer = client.get(f"{path}?{urlencode(given)}")
        assert answer.status_code == 200, answer
        return unescape(answer.content.decode())

    return shown


def shown_keys(page: str) -> list[str]:
    return re.findall(r'class="subject"\s+href="[^"]+">(A-\d)<', page)


def keys(**given: Any) -> list[str]:
    return [row.correlation_key for row in page_of(Filters(**given)).rows]


@pytest.mark.parametrize(
    ("narrowed", "found"),
    [
        ({}, KEYS),
        ({"definition": "order-listing"}, KEYS),
        ({"status": "live"}, ["A-2", "A-4"]),
        ({"status": "completed"}, ["A-1", "A-3", "A-5"]),
        ({"step": "AwaitingExternalCreation"}, ["A-2", "A-4"]),
        ({"step": "AwaitingExternalCreation", "doing": "here"}, ["A-2", "A-4"]),
        ({"q": "A-"}, KEYS),
        ({"where": "destination = external"}, ["A-2", "A-4"]),
        ({"owner": "nobody"}, KEYS),
        ({"version": "2"}, KEYS),
    ],
)
def test_s10_3_the_oldest_first_is_the_list_from_its_other_end(
    narrowed: dict[str, str], found: list[str], orders: list[str]
) -> None:
    assert keys(**narrowed, sort="oldest") == found
    assert keys(**narrowed) == found[::-1]


def test_s10_3_its_pages_follow_each_other_without_gap_or_repeat(
    orders: list[str],
) -> None:
    seen, before = [], ""
    for _ in range(9):
        page = page_of(Filters(sort="oldest"), before, size=2)
        assert page.first is (before == "")
        seen += [row.correlation_key for row in page.rows]
        before = page.older
        if not before:
            break
    assert seen == KEYS


def test_s10_3_the_order_stands_in_the_address_and_stays_with_filters(
    orders: list[str], show: Show
) -> None:
    page = show(sort="oldest", status="live", columns="started")

    assert shown_keys(page) == ["A-2", "A-4"]
    assert '<th aria-sort="ascending">' in page
    assert 'href="?status=live&columns=started"' in page  # the other way round
    assert 'href="?columns=started&sort=oldest"' in page  # without the filter
    assert '<input type="hidden" name="sort" value="oldest">' in page
    assert "sort=oldest" in page.partition("export.csv")[2][:80]
    assert '<th aria-sort="descending">' in show(columns="started")
    assert shown_keys(show(sort="<script>")) == KEYS[::-1]
    assert "sort" not in Filters.from_query({"sort": "key"}).parameters()  # type: ignore[arg-type]  # like a query


def test_s10_3_nothing_but_the_start_is_offered_to_sort_by(
    orders: list[str], show: Show
) -> None:
    page = show(columns="summary,step,since,started,changed,owner")
    heads = re.findall(r"<th aria-sort[^>]*>\s*<a[^>]*>([^<]*)", page)
    assert [head.strip(" ↓") for head in heads] == ["Started"]


def test_s10_3_a_form_that_chooses_columns_keeps_it(
    client: Client, operator: User
) -> None:
    client.force_login(operator)
    given = urlencode({"sort": "oldest", "column": ["process", "owner"]}, doseq=True)
    answer = client.get(f"/processes/?{given}")
    assert answer["Location"] == "/processes/?columns=owner&sort=oldest"


def test_s10_3_files_and_saved_views_have_the_same_order(
    orders: list[str], client: Client, operator: User
) -> None:
    client.force_login(operator)
    lines = b"".join(client.get("/processes/export.jsonl?sort=oldest"))
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [row["key"] for row in rows] == KEYS

    saved = {
        "key": uuid4(),
        "name": "the oldest",
        "shared": "",
        "query": "status=live&sort=oldest",
    }
    client.post("/views/save/?status=live&sort=oldest", saved)
    [view] = SavedView.objects.all()
    answer = client.get(f"/views/{view.pk}/", follow=True)
    assert shown_keys(unescape(answer.content.decode())) == ["A-2", "A-4"]


def test_s10_3_an_order_alone_narrows_nothing(orders: list[str], show: Show) -> None:
    assert "Say which first." in show(
        "/operations/begin/", action="escalate", sort="oldest"
    )
    begun = show("/operations/begin/", action="escalate", sort="oldest", status="live")
    assert "A-2" in begun
    assert "A-4" in begun
    assert not BulkOperation.objects.exists()


def test_s10_3_new_rows_move_none_and_are_not_told_where_they_are_at_the_other_end(
    orders: list[str],
) -> None:
    filters = Filters(sort="oldest")
    shown = [str(row.pk) for row in page_of(filters, size=5).rows]
    place_order(Destination.INTERNAL, "50 MWh", "A-6")
    drain()

    full = same_rows(filters, shown, size=5)
    assert [row.correlation_key for row in full.rows] == KEYS
    assert full.new == 0
    assert same_rows(filters, shown, size=6).new == 1  # there is room for it
    assert same_rows(Filters(), shown, size=5).new == 1
    assert ProcessInstance.objects.count() == 6


def test_s10_3_below_a_map_too(orders: list[str], show: Show) -> None:
    page = show("/definitions/order-listing/", sort="oldest")
    assert shown_keys(page) == KEYS
