"""S10.2: lists are narrowed by what the data of processes says, alike on every database, by bounded looks."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from html import unescape
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from monitoring.lists.processes import arm, pages
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import process_batches, process_page, refresh_rows
from monitoring.queries import bounded_search
from orchestrator.engine.loops.drain import drain
from orchestrator.models import BulkItem, BulkOperation, ProcessInstance
from orchestrator.testing import started
from tests.apps.searched.processes import Address, Asked, OpenQuote, Quote
from tests.browser.samples import HARMFUL
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.crews import knowing
from tests.services.paging import walked
from tests.services.pressing import form, hidden

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("quotes")]


quotes = knowing(Quote, OpenQuote, autouse=False)


def asked(quote: str, of: Any = Quote, **given: Any) -> ProcessInstance:
    return started(of, Asked(quote, **given)).instance


def found(where: str, **filters: Any) -> list[str]:
    rows = process_page(Filters(where=where, **filters)).rows
    return [row.correlation_key for row in rows]


@pytest.fixture
def three() -> list[ProcessInstance]:
    late = datetime(2030, 1, 1, tzinfo=UTC)
    return [
        asked("Q-1", amount=5, price=Decimal("100.00"), vip=True, items=["a", "b"]),
        asked("Q-2", amount=120, due=date(2027, 1, 1), address=Address("Osaka", "DE")),
        asked("Q-3", amount=2**53 + 1, at=late, note="call first", items=["7"]),
    ]


@cases(
    "where, keys",
    ("amount = 120", ["Q-2"]),
    ("amount > 5", ["Q-3", "Q-2"]),
    ("amount = 9007199254740993", ["Q-3"]),
    ("amount = 9007199254740992", []),
    ("price < 10", ["Q-3", "Q-2"]),
    ("price = 100", ["Q-1"]),
    ("vip = true", ["Q-1"]),
    ("vip != true", ["Q-3", "Q-2"]),
    ("due > 2026-12-31", ["Q-2"]),
    ("at < 2027-01-01", ["Q-2", "Q-1"]),
    ("address.city in (Osaka, Kyoto)", ["Q-2"]),
    ("address.country = JP", ["Q-3", "Q-1"]),
    ("items contains a", ["Q-1"]),
    ("items.0 = 7", ["Q-3"]),
    ("items.1 exists", ["Q-1"]),
    ("items.99999999999 exists", []),
    ("note exists", ["Q-3"]),
    ("note contains FIRST", ["Q-3"]),
    ("nothing exists", []),
    ("nothing.at.all = 1", []),
    ("amount = 5 or amount = 120", ["Q-2", "Q-1"]),
    ("(amount = 5 or amount = 120) and vip = false", ["Q-2"]),
    ('quote = "Q-1"', ["Q-1"]),
    ("quote.x = 1", []),
    ('"a\\"b" = 1', []),
    ('"$" = 1 or "#>" = 2 or "%s" = 3', []),
    ("名前 = 太郎", []),
)
def test_s10_2_rows_are_those_whose_data_meets_the_conditions(
    where: str, keys: list[str], three: list[ProcessInstance]
) -> None:
    assert (found(where), Filters(where=where).mistake) == (keys, "")


def test_s10_2_they_narrow_the_other_filters(three: list[ProcessInstance]) -> None:
    waiting = asked("Q-4", of=OpenQuote, amount=120)

    for by, keys in (
        ({}, ["Q-4", "Q-2"]),
        ({"definition": "quote"}, ["Q-2"]),
        ({"status": "live"}, ["Q-4"]),
        ({"status": "completed"}, ["Q-2"]),
        ({"q": "Q-2"}, ["Q-2"]),
        ({"step": "accepted"}, ["Q-4"]),
        ({"version": "1", "definition": "open-quote"}, ["Q-4"]),
    ):
        assert found("amount = 120", **by) == keys, by
    assert found("amount = 5", q="Q-2") == []
    shown = [str(waiting.pk), str(three[0].pk)]
    same = refresh_rows(Filters(where="amount = 120"), shown)
    assert (same.gone, same.new) == (frozenset({three[0].pk}), 1)


@cases("text", *HARMFUL)
def test_s10_2_harmful_texts_are_texts(text: str, show: Read) -> None:
    asked("Q-1", text=text)
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')

    assert found(f'text = "{quoted}"') == ["Q-1"]
    assert "Q-1" in show(where=f'text = "{quoted}"')
    # As a path, and as something that cannot be read.
    assert found(f'"{quoted}" = 1') == []
    assert "cannot be read" in show(where=text) or "Q-1" not in show(where=text)


def test_s10_2_data_that_is_no_object_of_fields_is_looked_at_too(
    three: list[ProcessInstance],
) -> None:
    strange = {"amount": [1], "vip": {"a": True}, "note": 1.5e300, "items": {"0": "z"}}
    ProcessInstance.objects.filter(pk=three[0].pk).update(data=strange)
    ProcessInstance.objects.filter(pk=three[1].pk).update(data={})

    assert found("amount > 0") == ["Q-3"]
    for where in ("items.0 = z", "note > 5", "vip.a = true"):
        assert found(where) == ["Q-1"], where
    assert found("amount exists") == ["Q-3", "Q-1"]
    ProcessInstance.objects.filter(pk__in=[row.pk for row in three[:2]]).delete()


def test_s10_2_a_name_may_have_any_letters() -> None:
    process = asked("Q-1")
    data = {**process.data, "größe": 7, "数量": {"a": 3}, "a": {"größe": 1}}
    ProcessInstance.objects.filter(pk=process.pk).update(data=data)

    for where in ("größe = 7", "数量.a = 3", 'a."größe" = 1 and größe exists'):
        assert found(where) == ["Q-1"], where
    assert found("größe = 8") == found('"it""s" = 1') == []
    assert Filters(where='"it""s" = 1').mistake

    ProcessInstance.objects.filter(pk=process.pk).update(data=process.data)


def test_s10_2_as_many_are_looked_at_as_a_page_may_and_the_next_goes_on(
    show: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = asked("Q-0", amount=7)
    for number in range(1, 9):
        asked(f"Q-{number}")
    for module in (arm, pages):
        monkeypatch.setattr(module, "LOOKED_AT", 4)

    filters = Filters(where="amount = 7")

    shown = show(where=filters.where)
    assert "None of those looked at matches." in shown
    assert "Among the newest 4." in shown
    page = process_page(filters)
    assert (page.looked_at, page.rows) == (4, [])
    assert walked(filters, 50) == [first]
    assert "Among the next 4." in show(where=filters.where, before=page.older)


MATCHING = [0, 1, 2, 3, 10, 17, 18, 19]


@pytest.fixture
def twenty() -> None:
    """Of twenty, some that match stand close together, and some alone."""
    for number in range(20):
        asked(f"Q-{number}", amount=1 if number in MATCHING else 2)


@cases("sort", "", "oldest")
@cases("sparse", 1, 2, 4)
@cases("looked_at", 5, 9, 16)
def test_s10_2_each_page_and_the_file_have_every_match_once(
    looked_at: int,
    sparse: int,
    sort: str,
    monkeypatch: pytest.MonkeyPatch,
    twenty: None,
) -> None:
    """However many are looked at, and at first for each that is wanted."""
    monkeypatch.setattr(arm, "LOOKED_AT", looked_at)
    monkeypatch.setattr(bounded_search, "SPARSE", sparse)
    filters = Filters(where="amount = 1", sort=sort)

    seen = [row.correlation_key for row in walked(filters, 2)]
    there = [f"Q-{number}" for number in (MATCHING if sort else reversed(MATCHING))]
    assert seen == there
    filed = [row.correlation_key for part in process_batches(filters) for row in part]
    assert filed == there


def test_s10_2_large_data_does_not_leave_the_database(
    show: Read, three: list[ProcessInstance]
) -> None:
    asked("Q-9", text="x" * 200_000, amount=120)
    with CaptureQueriesContext(connection) as told:
        assert found("amount = 120") == ["Q-9", "Q-2"]

    statements = [one["sql"] for one in told.captured_queries]
    assert len(statements) <= 4
    assert (
        sum(sql.count('."data"') for sql in statements) == 1
    )  # for the value at the path


def test_s10_2_a_form_without_scripts_adds_one_condition_after_another(
    operating: Client, three: list[ProcessInstance]
) -> None:
    def add(where: str, field: str, operator: str, value: str) -> str:
        form = {"definition": "", "where": where, "q": "Q-", "add_join": "or"}
        form |= {"add_field": field, "add_operator": operator, "add_value": value}
        return str(operating.get("/processes/", form)["Location"])

    once = add("", "amount", ">", "5")
    assert once == "/processes/?" + urlencode({"q": "Q-", "where": "amount > 5"})

    twice = add("amount > 5", "note", "contains", "call first")
    where = 'amount > 5 or note contains "call first"'
    assert twice == "/processes/?" + urlencode({"q": "Q-", "where": where})

    page = operating.read(twice)
    assert "Q-3" in page
    assert unescape(page).count(where) >= 2  # in the field, and as a chip


@cases(
    "given, said, field",
    ({"add_field": "", "add_value": "5"}, "Name a field", "add_field"),
    ({"add_field": "amount"}, "Choose a comparison", "add_operator"),
    ({"add_field": "a", "add_operator": ">"}, "Say what it is compared", "add_value"),
    ({"where": "amount >"}, "Say what it is compared with", "where"),
    ({"where": "amount", "add_field": "a"}, "Choose a comparison", "add_operator"),
)
def test_s10_2_a_mistake_is_told_at_its_field_and_keeps_what_was_written(
    given: dict[str, str], said: str, field: str, show: Read
) -> None:
    page = show(**given)

    wrong = re.findall(r'name="(\w+)"(?:[^>"]|"[^"]*")*aria-invalid="true"', page)
    assert field in wrong
    assert said in page
    kept = {name: text for name, text in given.items() if name != "add_operator"}
    for name, value in kept.items():
        assert re.search(rf'name="{name}"\s+value="{value}"', page) or not value


@cases(
    "where, said",
    ("amount > many", "amount is a number"),
    ('amount = "5"', "amount is a number"),
    ("price in (1, x)", "price is a number"),
    ("vip = 1", "vip is true or false"),
    ("due < tomorrow", "due is a day or time"),
)
def test_s10_2_a_value_of_another_type_than_declared_is_a_mistake(
    where: str, said: str, show: Read
) -> None:
    asked("Q-1")

    assert said in show(where=where, definition="quote")
    assert found(where, definition="quote") == []
    assert not Filters(where=where).mistake  # of all definitions nothing is declared


def test_s10_2_declared_fields_are_offered(show: Read) -> None:
    page = show(definition="quote")

    offered = re.findall(r'<option value="([^"]+)"></option>', page)
    assert {"amount", "address.city", "note"} <= set(offered)
    assert "order_id" not in offered


def test_s10_2_all_that_match_are_acted_on_and_no_other(
    three: list[ProcessInstance], operating: Client
) -> None:
    for number in range(4, 10):
        asked(f"Q-{number}", of=OpenQuote, amount=number)
    wanted = {"action": "escalate", "where": "amount > 5", "status": "live"}
    address = f"/operations/begin/?{urlencode(wanted)}"
    page = operating.read(address)
    assert hidden(page)["shown"] == "4"
    asked("Q-late", of=OpenQuote, amount=50)  # only after the page was shown

    answer = operating.post(address, form(page))
    assert answer.status_code == 302, answer.content.decode()
    drain()  # bulk operations too

    operation = BulkOperation.objects.get()
    assert operation.about == {"status": "live", "where": "amount > 5"}
    keys = BulkItem.objects.values_list("key", flat=True)
    assert sorted(keys) == [f"Q-{number}" for number in range(6, 10)]


def test_s10_2_an_operation_on_what_cannot_be_read_is_refused_with_the_reason(
    three: list[ProcessInstance], operating: Client
) -> None:
    address = "/operations/begin/?action=escalate&where=amount+%3E"
    sent = {"key": "0" * 32, "shown": "3", "shown_at": timezone.now().isoformat()}
    sent |= {"exact": "1", "reason": "late", "samples": "", "batch": "50"}

    assert "Say what it is compared with" in operating.read(address)
    assert operating.post(address, sent).status_code == 409
    assert BulkOperation.objects.count() == 0
