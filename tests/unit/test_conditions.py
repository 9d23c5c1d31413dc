"""S10.2: conditions on data are read, written, and hold of what is stored, whatever its type."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from monitoring.queries.conditions import (
    LONGEST,
    ConditionGroup,
    ConditionMistake,
    DataCondition,
    add_condition,
    parse_conditions,
)
from monitoring.queries.conditions.values import Value
from tests.services.cases import cases

DATA = {
    "amount": 120,
    "price": 12.5,
    "tax": "9.50",
    "country": "JP",
    "vip": True,
    "paid": False,
    "order": "0012",
    "due": "2026-11-23",
    "at": "2026-11-23T10:30:00Z",
    "note": None,
    "tags": ["urgent", "gift"],
    "codes": [1, 2],
    "address": {"city": "Nagoya", "zip": "460"},
    "empty": "",
    "due date": "x",
    "a.b": 1,
}


def at(path: tuple[str, ...]) -> Any:
    found: Any = DATA
    for part in path:
        found = found.get(part) if isinstance(found, dict) else None
    return found


def holds(text: str) -> bool:
    where = parse_conditions(text)
    return where.holds({path: at(path) for path in where.paths()})


def each(texts: str) -> list[str]:
    """Return the conditions between semicolons."""
    return [" ".join(text.split()) for text in texts.split(";")]


# amounts are stored as texts, as tax is
TRUE = each("""
    amount = 120; amount = 120.0; amount != 7; amount > 100; amount >= 120;
    amount <= 120; amount < 120.01; price = 12.50; tax > 9; tax = 9.5; country = JP;
    country = "JP"; country > DE; country in (DE, JP); amount in (1, 120); vip = true;
    VIP = true or paid = FALSE; paid != true; order = 0012; order = "0012";
    due = 2026-11-23; due < 2026-11-24; due > 2026-11-22; due >= 2026-11-23;
    at = 2026-11-23; at = 2026-11-23T10:30:00+00:00; at > 2026-11-23T10:29Z;
    at < 2026-11-24; at <= 2026-11-23; country exists; empty exists; paid EXISTS;
    tags contains urgent; codes contains 2; country contains j; address contains city;
    address.city = Nagoya; "due date" = x; "a.b" = 1; amount>100 and country=JP;
    amount < 1 or country = JP and vip = true;
    (amount < 1 or country = JP) and vip = true
""")

# what is in quotes is a text; where nothing is, no condition holds
FALSE = each("""
    amount = 121; amount = "120"; amount > 120; amount > JP; amount = true; vip = 1;
    vip > 0; vip = yes; country = jp; country > 12; country < 2026-01-01; order > 0012;
    due > 2026-11-23; due < 2026-11-23; due != 2026-11-23; at > 2026-11-23;
    at < 2026-11-23; note exists; note = null; nothing exists; nothing != 1;
    nothing.at.all = 1; tags contains gif; codes contains 3; address.city.name = Nagoya;
    address = Nagoya; country in (DE, FR); (amount < 1 or country = JP) and vip = false
""")


@cases("text", *TRUE)
def test_s10_2_holds(text: str) -> None:
    assert holds(text)


@cases("text", *FALSE)
def test_s10_2_does_not_hold(text: str) -> None:
    assert not holds(text)


@cases("text", *(TRUE + FALSE))
def test_s10_2_what_is_written_again_says_the_same(text: str) -> None:
    assert parse_conditions(str(parse_conditions(text))) == parse_conditions(text)


def test_s10_2_a_day_is_one_of_the_zone_of_the_pages() -> None:
    with timezone.override("Asia/Tokyo"):
        late = Value("2026-11-24").equals("2026-11-23T15:00:00Z")
        early = Value("2026-11-23").equals("2026-11-23T15:00:00Z")
    assert (late, early) == (True, False)


NAME_A_FIELD, COMPARED = "Name a field of the data.", "Say what it is compared with."


@cases(
    "text, said",
    *((text, NAME_A_FIELD) for text in ("", "= 3", "amount = 3 and", "a. = 3")),
    ("amount", "Write one of these: = != < <= > >= in contains exists."),
    ("amount is 3", "Write one of these"),
    *((text, COMPARED) for text in ("amount >", "amount > > 3", "amount in ()")),
    ('country = "JP', COMPARED),
    *((text, "Join conditions by") for text in ("a = 3 country = JP", "amount = 3)")),
    *((text, "A parenthesis is not closed.") for text in ("(amount = 3", "a in (3")),
    ("amount in 3", "Write the values in parentheses"),
    ("(" * 50 + "a = 1" + ")" * 50, "too many parentheses"),
    (" and ".join(["a = 1"] * 30), "more than 20 conditions"),
    ("a = " + "x" * LONGEST, f"longer than {LONGEST} characters"),
)
def test_s10_2_a_mistake_is_told_with_its_place(text: str, said: str) -> None:
    with pytest.raises(ConditionMistake) as refused:
        parse_conditions(text)

    assert said in str(refused.value)


def test_s10_2_the_place_of_a_mistake_is_what_stands_before_it() -> None:
    with pytest.raises(ConditionMistake) as refused:
        parse_conditions("country = JP and amount > ")

    assert str(refused.value) == (
        "Say what it is compared with. (after “country = JP and amount >”)"
    )


@cases(
    "before, join, field, operator, value, after",
    ("", "and", "amount", ">", "100", "amount > 100"),
    ("a = 1", "and", "b", "=", "2", "a = 1 and b = 2"),
    ("a = 1 and b = 2", "and", "c", "=", "3", "a = 1 and b = 2 and c = 3"),
    ("a = 1 or b = 2", "and", "c", "=", "3", "(a = 1 or b = 2) and c = 3"),
    ("a = 1 and b = 2", "or", "c", "=", "3", "(a = 1 and b = 2) or c = 3"),
    ("", "and", "name", "=", "two words", 'name = "two words"'),
    ("", "and", "name", "=", 'say "x" \\', 'name = "say \\"x\\" \\\\"'),
    ("", "and", "n", "in", "a, b c ,d", 'n in (a, "b c", d)'),
    ("", "and", '"due date"', "exists", "ignored", '"due date" exists'),
    ("", "and", "lines.0.sku", "contains", "P", "lines.0.sku contains P"),
)
def test_s10_2_a_form_adds_one(
    before: str, join: str, field: str, operator: str, value: str, after: str
) -> None:
    assert add_condition(before, join, field, operator, value) == after


@cases(
    "field, operator, value, wrong",
    ("", "=", "1", "field"),
    ("due date", "=", "1", "field"),
    ("a", "", "1", "operator"),
    ("a", "like", "1", "operator"),
    ("a", "=", "", "value"),
    ("a", "in", " , ", "value"),
)
def test_s10_2_a_wrong_field(field: str, operator: str, value: str, wrong: str) -> None:
    with pytest.raises(ConditionMistake) as refused:
        add_condition("", "and", field, operator, value)

    assert refused.value.field == wrong


def test_s10_2_it_is_a_tree() -> None:
    one, two = (DataCondition((n,), "=", (Value(v),)) for n, v in ("a1", "b2"))
    either = ConditionGroup("or", (two, DataCondition(("c",), "exists")))

    tree = ConditionGroup("and", (one, either))
    assert parse_conditions("a = 1 and (b = 2 or c exists)") == tree
