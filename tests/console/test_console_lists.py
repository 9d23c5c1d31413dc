"""The lists: filters that live in the URL, pages by key, rows that stay in their places."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.http import QueryDict
from django.utils import timezone
from uuid6 import uuid7

from examples.order_listing.messages import Destination
from monitoring.definition import definitions
from monitoring.definition.definitions import status_counts
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_page, refresh_rows
from monitoring.queries import counts
from monitoring.queries.counts import MARK, ForEach, count_by, count_rows
from orchestrator.models import Definition, ProcessInstance, Status
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import all_rows

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def orders(module_db: None) -> dict[str, ProcessInstance]:
    """One that has completed, and one that has failed."""
    return {
        "completed": placed(Destination.INTERNAL, key="A-1"),
        "failed": placed(Destination.BOTH, key="A-2"),
    }


def keys(query: str) -> list[str]:
    filters = Filters.from_query(QueryDict(query))
    return [row.correlation_key for row in process_page(filters).rows]


@cases(
    "query, expected",
    ("", ["A-2", "A-1"]),
    ("status=completed", ["A-1"]),
    ("status=failed", ["A-2"]),
    ("status=live", ["A-2"]),
    ("step=Completed", ["A-1"]),
    ("definition=order-listing&version=2", ["A-2", "A-1"]),
    ("definition=other", []),
    ("version=1", []),
    ("escalated=1", []),
    ("q=A-1", ["A-1"]),
    ("q=A-", ["A-2", "A-1"]),
    ("q=%00", ["A-2", "A-1"]),
    ("q=%25", []),
    ("status=nonsense", ["A-2", "A-1"]),
)
def test_filters(query: str, expected: list[str]) -> None:
    assert keys(query) == expected


def test_a_process_is_found_by_its_id(orders: dict[str, ProcessInstance]) -> None:
    pk = orders["failed"].pk
    assert keys(f"q={pk}") == keys(f"q={pk.hex}") == ["A-2"]


@contextmanager
def many(number: int) -> Iterator[None]:
    """Have so many more that have completed, until the end of a block."""
    now = timezone.now()
    usual = {
        "definition": Definition.objects.get(),
        "name": "order-listing",
        "status": Status.COMPLETED,
        "step": "Completed",
        **dict.fromkeys(("started_at", "changed_at", "finished_at"), now),
    }
    rows = [
        ProcessInstance(id=uuid7(), correlation_key=f"M-{index}", **usual)
        for index in range(number)
    ]
    ProcessInstance.objects.bulk_create(rows)
    yield
    ProcessInstance.objects.filter(correlation_key__startswith="M-").delete()


def test_pages_follow_each_other_without_gap_or_repeat() -> None:
    with many(100):
        seen = all_rows(lambda before: process_page(Filters(), before, size=30))

    expected = [f"M-{index}" for index in reversed(range(100))] + ["A-2", "A-1"]
    assert [row.correlation_key for row in seen] == expected


def test_an_open_list_keeps_its_rows_and_counts_what_is_new() -> None:
    shown = [str(row.pk) for row in process_page(Filters()).rows]
    with many(30):
        same = refresh_rows(Filters(), shown)
        full = [str(row.pk) for row in process_page(Filters(), size=20).rows]
        latest = refresh_rows(Filters(), full, 20)
        older = refresh_rows(Filters(), full[5:], 15, before=full[4])

    assert [str(row.pk) for row in same.rows] == shown
    assert (same.new, latest.new, older.new) == (30, 0, 0)


def test_a_row_that_no_longer_matches_stays_and_is_marked(
    orders: dict[str, ProcessInstance],
) -> None:
    shown = [str(order.pk) for order in orders.values()]

    same = refresh_rows(Filters(status="failed"), shown)

    assert [str(row.pk) for row in same.rows] == shown
    assert same.gone == {orders["completed"].pk}


def test_counts_agree_with_the_lists_they_lead_to() -> None:
    found = status_counts("order-listing")

    for status, number in found.statuses.items():
        listed = Filters(definition="order-listing", status=status).applied().count()
        assert str(number) == str(listed)


@cases("each, cap", (10, 1_000), (0, 1_000), (10, 1), (0, 1))
def test_counts_of_stored_rows_are_those_of_their_processes_alone(
    monkeypatch: pytest.MonkeyPatch, each: int, cap: int
) -> None:
    """Whether there are few or many rows of a version; and they say where there may be more."""
    (row,) = Definition.objects.filter(name="order-listing")
    other = Definition.objects.create(
        name=row.name, version=9, kind=row.kind, fingerprint="other", graph=row.graph
    )
    monkeypatch.setattr(definitions, "EACH", each)
    monkeypatch.setattr(definitions, "CAP", cap)

    found = status_counts("order-listing", [row.pk])
    others = status_counts("order-listing", [other.pk])

    there = {status for status, number in found.statuses.items() if number}
    assert there == {Status.FAILED, Status.COMPLETED}
    assert found.statuses[Status.FAILED].number == 1
    assert found.statuses[Status.FAILED].at_least is (cap == 1)
    assert Status.PAUSED not in found.statuses
    assert not any(others.statuses.values())


def test_counts_stop_at_their_cap() -> None:
    rows = ProcessInstance.objects.all()
    assert [str(count_rows(rows, cap)) for cap in (1, 3)] == ["1+", "2"]
    assert count_by(rows, "name", cap=1) == [("order-listing", 1)]


def test_counts_of_parts_that_are_too_many_for_one_statement_are_added_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counts, "TOGETHER", 1)
    rows = ProcessInstance.objects.all()
    last, first = (rows.filter(correlation_key=key) for key in ("A-2", "A-1"))
    each = ForEach(lambda: rows.filter(correlation_key=MARK), ["A-2", "A-1", "none"])
    revision = max(row.revision for row in rows)

    for parts in ([last, first], each):
        assert count_by(parts, "name") == [("order-listing", 2)]
        assert count_by(parts, "name", oldest="started_at", newest="revision") == [
            ("order-listing", 2, first.get().started_at, revision)
        ]


@cases(
    "address",
    *words(
        """/ /definitions/order-listing/ /processes/ /processes/{failed}/
        /processes/{failed}/repair/ /processes/{failed}/secrets/ /waits/ /events/
        /failures/"""
    ),
)
def test_a_page_takes_few_queries(
    address: str,
    orders: dict[str, ProcessInstance],
    operating: Client,
    django_assert_max_num_queries: Any,
) -> None:
    place = address.format(failed=orders["failed"].pk)
    operating.read(place)

    # Twice, whole and live; one each asks which versions the process has been on.
    with django_assert_max_num_queries(68):
        operating.read(place)
        parts = operating.read(f"{place}?since=1", headers={"HX-Request": "true"})

    assert parts.count("<hx-partial") == parts.count("</hx-partial>")
