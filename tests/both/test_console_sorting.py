"""S10.3: a list is read from either end, and a short one by any column; the order stands in its address."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from functools import partial
from html import unescape
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db.models import F

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.lists.processes import ranking
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page, refresh_rows
from orchestrator.models import BulkOperation, ProcessInstance, SavedView
from orchestrator.testing import run
from tests.conftest import person
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.paging import walked

pytestmark = pytest.mark.django_db

KEYS = [f"A-{number}" for number in range(1, 6)]


@pytest.fixture(scope="module", autouse=True)
def orders(module_db: None) -> list[str]:
    for number, key in enumerate(KEYS):
        outside = Destination.EXTERNAL if number % 2 else Destination.INTERNAL
        place_order(outside, "50 MWh", key)
    run()
    return KEYS


def shown_keys(page: str) -> list[str]:
    return re.findall(r'class="subject"\s+href="[^"]+">(A-\d)<', page)


def keys(**given: Any) -> list[str]:
    return [row.correlation_key for row in process_page(Filters(**given)).rows]


@cases(
    "narrowed, found",
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
)
def test_s10_3_the_oldest_first_is_the_list_from_its_other_end(
    narrowed: dict[str, str], found: list[str]
) -> None:
    assert keys(**narrowed, sort="oldest") == found
    assert keys(**narrowed) == found[::-1]


def test_s10_3_its_pages_follow_each_other_without_gap_or_repeat() -> None:
    assert [row.correlation_key for row in walked(Filters(sort="oldest"), 2)] == KEYS


def test_s10_3_the_order_is_in_the_address_and_stays_with_filters(show: Read) -> None:
    page = show(sort="oldest", status="live", columns="started")

    assert shown_keys(page) == ["A-2", "A-4"]
    assert sorted_by(page) == {"Started": "ascending"}
    assert 'href="?status=live&columns=started"' in page  # the other way round
    assert 'href="?columns=started&sort=oldest"' in page  # without the filter
    assert re.search(r'<option value="oldest" selected>', page)
    assert "sort=oldest" in page.partition("export.csv")[2][:80]
    assert sorted_by(show(columns="started")) == {"Started": "descending"}
    assert shown_keys(show(sort="<script>")) == KEYS[::-1]
    assert "sort" not in Filters.from_query({"sort": "key"}).parameters()


@cases(
    "sort, found",
    ("summary", ["A-3", "A-1", "A-2", "A-4", "A-5"]),
    ("-summary", ["A-5", "A-4", "A-2", "A-1", "A-3"]),
    ("step", ["A-2", "A-4", "A-1", "A-3", "A-5"]),
    ("since", ["A-4", "A-2", "A-1", "A-3", "A-5"]),
    ("-since", ["A-2", "A-4", "A-1", "A-3", "A-5"]),
    ("changed", ["A-5", "A-4", "A-3", "A-2", "A-1"]),
    ("-changed", ["A-1", "A-2", "A-3", "A-4", "A-5"]),
    ("owner", ["A-2", "A-3", "A-1", "A-4", "A-5"]),
    ("-owner", ["A-3", "A-2", "A-1", "A-4", "A-5"]),
)
def test_s10_3_a_list_is_sorted_by_a_column_what_has_nothing_there_last(
    sort: str, found: list[str], operator: User
) -> None:
    rows = ProcessInstance.objects.order_by("pk")
    zoe, letters = person("zoe"), "edcba" if sort == "-summary" else "abcde"
    texts = dict(zip(found if "summary" in sort else KEYS, letters, strict=True))
    for number, row in enumerate(rows):
        key = row.correlation_key
        row.summary = texts[key]
        row.changed_at -= timedelta(minutes=number)
        row.owner = {"A-2": operator, "A-3": zoe}.get(key)
        row.save()
        earlier = timedelta(minutes={"A-4": 9, "A-2": 5}.get(key, 0))
        visits = row.step_runs.filter(finished_at=None)
        begun, deadline = row.started_at - earlier, F("wake_at") - earlier
        visits.update(started_at=begun, wake_at=deadline)

    assert keys(sort=sort) == found
    assert [row.correlation_key for row in walked(Filters(sort=sort), 2)] == found


def test_s10_3_of_more_than_can_be_looked_at_the_page_says_so(
    show: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "MOST", 4)

    page = show(sort="summary", columns="summary,started")
    few = show(sort="summary", columns="summary,started", status="live")

    assert 'id="unsorted"' in page
    assert shown_keys(page) == KEYS[::-1]
    assert sorted_by(page) == {"Started": "descending"}
    assert 'id="unsorted"' not in few
    assert sorted_by(few) == {"Summary": "ascending"}


def test_s10_3_a_heading_sorts_one_way_and_then_the_other(show: Read) -> None:
    columns = "summary,step,since,started,changed,owner"
    page = show(columns=columns)
    ways = {name: re.findall(r"[?&]sort=([^&]*)", way) for name, way in headings(page)}
    assert ways == {
        "Summary": ["summary"],
        "Step": ["step"],
        "In the step": ["since"],
        "Started": ["oldest"],
        "Last change": ["-changed"],
        "Owner": ["owner"],
    }
    page = show(columns=columns, sort="-changed")
    assert "sort=changed" in dict(headings(page))["Last change"]
    assert "sort" not in dict(headings(page))["Started"]
    assert sorted_by(page) == {"Last change": "descending"}


def test_s10_3_what_comes_to_the_top_of_a_column_is_new_and_moves_no_row() -> None:
    filters = Filters(sort="-changed")
    shown = [row.pk for row in process_page(filters, size=2).rows]
    other = ProcessInstance.objects.exclude(pk__in=shown).latest("pk")
    other.changed_at += timedelta(hours=1)
    other.save()

    same = refresh_rows(filters, [str(pk) for pk in shown], size=2)
    assert ([row.pk for row in same.rows], same.new) == (shown, 1)
    assert process_page(filters, size=2).rows[0].pk == other.pk


def headings(page: str) -> list[tuple[str, str]]:
    """The names of the columns, and where their headings lead."""
    found = re.findall(r'<th\s+(?:aria-sort="\w+")?>\s*<a href="([^"]*)">([^<]*)', page)
    return [(name.strip(" \n↑↓"), way) for way, name in found]


def sorted_by(page: str) -> dict[str, str]:
    """The columns by which the list says that it is sorted, and how."""
    found = re.findall(r'<th\s+aria-sort="(\w+)">\s*<a[^>]*>([^<]*)', page)
    return {name.strip(" \n↑↓"): how for how, name in found}


def test_s10_3_a_form_that_chooses_columns_keeps_it(operating: Client) -> None:
    given = urlencode({"sort": "oldest", "column": ["process", "owner"]}, doseq=True)
    answer = operating.get(f"/processes/?{given}")
    assert answer["Location"] == "/processes/?columns=owner&sort=oldest"


def test_s10_3_files_and_saved_views_have_the_same_order(operating: Client) -> None:
    lines = b"".join(operating.get("/processes/export.jsonl?sort=oldest"))
    rows = [json.loads(line) for line in lines.splitlines()]
    assert [row["key"] for row in rows] == KEYS

    query = "status=live&sort=oldest"
    saved = {"key": uuid4(), "name": "the oldest", "shared": "", "query": query}
    operating.post(f"/views/save/?{query}", saved)
    answer = operating.get(f"/views/{SavedView.objects.get().pk}/", follow=True)
    assert shown_keys(unescape(answer.content.decode())) == ["A-2", "A-4"]


def test_s10_3_an_order_alone_narrows_nothing(show: Read) -> None:
    begin = partial(show, "/operations/begin/", action="escalate", sort="oldest")
    assert "Say which first." in begin()
    assert {"A-2", "A-4"} <= {*re.findall(r"A-\d", begin(status="live"))}
    assert not BulkOperation.objects.exists()


def test_s10_3_new_rows_move_none_and_are_not_told_of_at_the_other_end() -> None:
    filters = Filters(sort="oldest")
    shown = [str(row.pk) for row in process_page(filters, size=5).rows]
    place_order(Destination.INTERNAL, "50 MWh", "A-6")
    run()

    full = refresh_rows(filters, shown, size=5)
    assert ([row.correlation_key for row in full.rows], full.new) == (KEYS, 0)
    assert refresh_rows(filters, shown, size=6).new == 1  # there is room for it
    assert refresh_rows(Filters(), shown, size=5).new == 1
    assert ProcessInstance.objects.count() == 6


def test_s10_3_below_a_map_too(show: Read) -> None:
    page = show("/definitions/order-listing/", sort="oldest")
    assert shown_keys(page) == KEYS
