"""The lists: filters that live in the URL, pages by key, rows that stay in their places."""

from datetime import timedelta

import pytest
from django.http import QueryDict
from django.utils import timezone
from uuid6 import uuid7

from examples.order_listing.messages import Destination
from examples.order_listing.models import Order
from examples.order_listing.orders import place_order
from monitoring.queries import counts, definitions
from monitoring.queries.counts import MARK, ForEach, capped, grouped
from monitoring.queries.definitions import counts_of
from monitoring.queries.instances.filters import Filters
from monitoring.queries.instances.pages import page_of, same_rows
from orchestrator.models import Definition, ProcessInstance, Status
from orchestrator.testing import run
from tests.services.cases import cases, words
from tests.services.client import Client

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module", autouse=True)
def orders(module_db: None) -> dict[str, Order]:
    """One that has completed, one that has failed, one that waits and was escalated."""
    placed = {
        "completed": place_order(Destination.INTERNAL, "one", "A-1"),
        "failed": place_order(Destination.BOTH, "two", "A-2"),
    }
    run()
    return placed


def keys(query: str) -> list[str]:
    filters = Filters.from_query(QueryDict(query))
    return [row.correlation_key for row in page_of(filters).rows]


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


def test_a_process_is_found_by_its_id(orders: dict[str, Order]) -> None:
    assert keys(f"q={orders['failed'].process_id}") == ["A-2"]
    assert keys(f"q={orders['failed'].process_id.hex}") == ["A-2"]


def test_finding_one_process_leads_to_it(
    orders: dict[str, Order], operating: Client
) -> None:
    one, many = operating.get("/find/?q=A-1"), operating.get("/find/?q=A-")

    assert one["Location"] == f"/processes/{orders['completed'].process_id}/"
    assert many["Location"] == "/processes/?q=A-"


def many(number: int) -> None:
    definition = Definition.objects.get()
    now = timezone.now()
    ProcessInstance.objects.bulk_create(
        ProcessInstance(
            id=uuid7(),
            definition=definition,
            name="order-listing",
            correlation_key=f"M-{index}",
            status=Status.COMPLETED,
            step="Completed",
            started_at=now,
            changed_at=now,
            finished_at=now + timedelta(seconds=1),
        )
        for index in range(number)
    )


def test_pages_follow_each_other_without_gap_or_repeat() -> None:
    many(100)
    seen, before = [], ""
    while True:
        page = page_of(Filters(), before, size=30)
        seen += [row.correlation_key for row in page.rows]
        if not (before := page.older):
            break
    ProcessInstance.objects.filter(correlation_key__startswith="M-").delete()

    assert seen == [f"M-{index}" for index in reversed(range(100))] + ["A-2", "A-1"]


def test_an_open_list_keeps_its_rows_and_counts_what_is_new() -> None:
    shown = [str(row.pk) for row in page_of(Filters()).rows]
    many(100)
    same = same_rows(Filters(), shown)
    ProcessInstance.objects.filter(correlation_key__startswith="M-").delete()

    assert [str(row.pk) for row in same.rows] == shown
    assert same.new == 100


def test_a_full_page_is_told_of_newer_rows_only() -> None:
    many(30)
    shown = [str(row.pk) for row in page_of(Filters(), size=20).rows]
    same = same_rows(Filters(), shown, 20)
    older = same_rows(Filters(), shown[5:], 15, before=shown[4])
    ProcessInstance.objects.filter(correlation_key__startswith="M-").delete()

    assert (same.new, older.new) == (0, 0)


def test_a_row_that_no_longer_matches_stays_and_is_marked(
    orders: dict[str, Order],
) -> None:
    shown = [str(order.process_id) for order in orders.values()]

    same = same_rows(Filters(status="failed"), shown)

    assert [str(row.pk) for row in same.rows] == shown
    assert same.gone == {orders["completed"].process_id}


def test_counts_agree_with_the_lists_they_lead_to() -> None:
    found = counts_of("order-listing")

    for status, number in found.by_status():
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

    found = counts_of("order-listing", [row.pk])
    others = counts_of("order-listing", [other.pk])

    assert dict(found.statuses) == {Status.FAILED: 1}
    assert (Status.FAILED in found.unsure) is (cap == 1)
    assert Status.PAUSED not in found.unsure
    assert not others.statuses


def test_counts_stop_at_their_cap() -> None:
    assert str(capped(ProcessInstance.objects.all(), 1)) == "1+"
    assert str(capped(ProcessInstance.objects.all(), 3)) == "2"
    assert grouped(ProcessInstance.objects.all(), "name", cap=1) == [
        ("order-listing", 1)
    ]


def test_counts_of_parts_that_are_too_many_for_one_statement_are_added_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(counts, "TOGETHER", 1)
    rows = ProcessInstance.objects.all()
    last, first = (rows.filter(correlation_key=key) for key in ("A-2", "A-1"))
    each = ForEach(lambda: rows.filter(correlation_key=MARK), ["A-2", "A-1", "none"])
    revision = max(row.revision for row in rows)

    for parts in ([last, first], each):
        assert grouped(parts, "name") == [("order-listing", 2)]
        assert grouped(parts, "name", oldest="started_at", newest="revision") == [
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
    orders: dict[str, Order],
    operating: Client,
    django_assert_max_num_queries: object,
) -> None:
    place = address.format(failed=orders["failed"].process_id)
    operating.get(place)

    # Twice, whole and live; one each asks which versions the process has been on.
    with django_assert_max_num_queries(68):  # type: ignore[operator]
        assert operating.get(place).status_code == 200
        fragments = operating.get(f"{place}?since=1", headers={"HX-Request": "true"})

    assert fragments.content.count(b"<hx-partial") == fragments.content.count(
        b"</hx-partial>"
    )
