"""Fields marked secret: which they are, and how values and texts look without them. See also tests/console."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.parse import quote

import pytest
from django.db import IntegrityError

from monitoring.base.masking import merge_secrets
from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    Workflow,
    during,
    each,
    secret,
    step,
    stored,
    when,
)
from orchestrator.definition.codec import decode, encode, encode_as
from orchestrator.definition.secrets import (
    MASK,
    Secrets,
    mask_fields,
    mask_json,
    mask_values,
    secret_fields,
    secret_texts,
)
from orchestrator.engine.change.committing import commit_together
from orchestrator.engine.operations.repairing.plan import refuse_code_errors
from orchestrator.exceptions import InvalidDefinition, InvalidMessage, OperationRefused
from orchestrator.models import ProcessInstance
from tests.services.cases import cases


@dataclass(frozen=True)
class Card:
    number: str = secret()
    holder: str = ""


class Asked(Event):
    order: str
    cards: list[Card] | None
    pin: str = secret(default="")


class Answered(Event):
    order: str
    answer: str


class Charge(Command):
    order: str
    passphrase: str


class Step(StrEnum):
    NEW = "New"
    ASKING = "Asking"
    PAID = "Paid"


@dataclass(frozen=True)
class Data:
    order: str
    pin: str = ""
    cards: list[Card] | None = None


ANSWERED = when(Answered, answer=stored("pin"))


class Payment(ProcessManager):
    Step, Data, correlation = Step, Data, "order"
    transitions = [
        during(Step.NEW, when(Asked).go_to(Step.ASKING)),
        during(Step.ASKING, ANSWERED.issue(Charge, passphrase="pin").go_to(Step.PAID)),
    ]


def test_a_mark_is_found_at_any_depth_and_is_an_ordinary_field() -> None:
    assert secret_fields(Asked) == {"number", "pin"}
    assert secret_fields(dict[str, tuple[Card, ...]] | None) == {"number"}
    assert Asked("1", None) == Asked("1", None, "")
    assert encode(Asked("1", [Card("4")]))["cards"] == [{"number": "4", "holder": ""}]


def test_what_has_the_value_of_a_secret_is_one_too() -> None:
    found = Payment.secrets()

    assert found.names == {"number", "pin", "passphrase", "answer"}
    assert found.messages["Charge"] == {"passphrase"}
    assert found.messages["Answered"] == {"answer"}
    assert Secrets.from_json(json.loads(json.dumps(found.to_json()))) == found


@dataclass(frozen=True)
class Order:
    order: str
    token: str = secret()


@dataclass(frozen=True)
class Keys:
    keys: list[str] = secret(default_factory=list)
    names: list[str] = field(default_factory=list)


def make(order: str) -> Keys:
    return Keys([order])


def use(item: str) -> str:
    return item


def end(order: str) -> str:
    return order


FLOW = (each(make, over="keys", do=use, into=end),)


class Making(Workflow):
    Input = Order
    flow = FLOW


class FromInput(Workflow):
    Input = Order

    @staticmethod
    def flow(input: Order) -> object:
        return FLOW


def test_the_results_of_a_workflow_are_among_its_secrets() -> None:
    assert Making.secrets().names == {"token", "keys"}
    assert Making.secrets().elements == {"use"}
    assert FromInput.secrets().names == {"token"}
    plan = FromInput.plan(Order("1", "2"))
    assert FromInput.secrets(plan).names == {"token", "keys"}


def test_nothing_is_secret_unless_it_is_said() -> None:
    class Plain(Workflow):
        flow = (step(lambda_free),)

    assert not Plain.secrets()
    assert Plain.secrets().to_json() == {}


def lambda_free() -> None:
    return None


@cases("attribute", "correlation", "outside_ids")
def test_s12_3_others_know_no_process_by_a_secret(attribute: str) -> None:
    rows = {"Step": Step, "Data": Data, "transitions": Payment.transitions}
    flow = {"Input": Order, "flow": (step(end),)}
    kinds: Any = ("pin", ProcessManager, rows), ("token", Workflow, flow)
    for name, kind, body in kinds:
        value = name if attribute == "correlation" else (name,)
        with pytest.raises(InvalidDefinition, match=f"'{name}' is secret"):
            type("Known", (kind,), {**body, attribute: value})


def test_values_are_masked_by_name_whatever_they_are() -> None:
    body = {"pin": None, "a": [{"pin": {"x": [1]}}, 2], "pins": "shown"}

    hidden = {"pin": MASK, "a": [{"pin": MASK}, 2], "pins": "shown"}
    assert mask_fields(body, {"pin"}) == hidden
    assert mask_fields(body, ()) is body


@cases("ascii_only", True, False)
def test_text_is_masked_wherever_it_is_cut(ascii_only: bool) -> None:
    body = {
        "a": {"秘": {"x": ['hush"}', {"y": "hush"}]}, "b": "shown"},
        "秘": 'hush\\" hush',
        "c": "秘",
        "n": [{"秘": True}, "秘", 1.5e-3],
    }
    text = json.dumps(body, ensure_ascii=ascii_only)

    for end_ in range(len(text) + 1):
        shown = mask_json(text[:end_], {"秘"})
        assert "hush" not in shown
        assert "true" not in shown
    assert json.loads(mask_json(text, {"秘"})) == mask_fields(body, {"秘"})
    assert mask_json(text, ()) == text


@cases(
    "value",
    "4111 2222",
    'with "quotes" and \\ more',
    "two\nlines of a key that is long",
    "秘密の言葉",
    "a/b&c d",
    "x'y",
)
def test_a_value_is_masked_however_a_program_writes_it(value: str) -> None:
    for said in (
        f"bad {value}!",
        f"bad {value!r}!",
        f"bad {value!a}",
        f"bad {json.dumps(value)}",
        f"GET /?q={quote(value)}",
        f"GET /{quote(value, safe='')}",
    ):
        shown = mask_values(said, {value})
        assert MASK in shown
        assert value not in shown
        assert quote(value, safe="") not in shown


def test_parts_of_a_long_value_are_masked_and_a_short_one_if_alone() -> None:
    value = "0123456789abcdefghijklmnopqrstuvwxyz"

    for said in (
        f"{value} ({value[:20]}...)",
        f"{value[:20]}...",
        f"...{value[-15:]}",
        f"{value[:15]}...{value[-14:]}",
    ):
        shown = mask_values(said, {value})
        assert MASK in shown
        assert not any(value[at : at + 6] in shown for at in range(len(value) - 6))
    assert mask_values("123 of 1234, 9123", {"123"}) == f"{MASK} of 1234, 9123"
    assert mask_values("a 7 b", {"7", "", "  "}) == "a 7 b"


def test_values_are_those_under_secret_names_and_of_marked_fields() -> None:
    body = {"a": {"pin": [1234, {"x": "y", "z": None}]}, "b": True}
    assert secret_texts(body, {"pin"}) == {"1234", "y"}
    assert secret_texts(Asked("1", [Card("4111", "A")], "9")) == {"4111", "9"}


class Checked(Event):
    order: str
    pin: str = secret()

    def __post_init__(self) -> None:
        if self.order != "fine":
            raise ValueError(f"{self.pin} is no pin")


def test_what_cannot_be_read_or_written_is_told_without_secrets() -> None:
    with pytest.raises(InvalidMessage) as unread:
        decode(Checked, {"order": "x", "pin": "hush-1234"})
    wrong = Asked("1", None, 12345678)  # type: ignore[arg-type]
    with pytest.raises(InvalidMessage) as unwritten:
        encode(wrong)
    with pytest.raises(InvalidMessage) as unreturned:
        encode_as(Keys, Keys(["hush-1234", 5]))  # type: ignore[list-item]

    assert "is no pin" in str(unread.value)
    for told in (unread, unwritten, unreturned):
        assert "hush-1234" not in str(told.value)
        assert "12345678" not in str(told.value)


DATA = {"pin": "1", "cards": [{"number": "4", "holder": "A"}], "n": 1}
NAMES = {"pin", "number"}


def test_an_edit_keeps_what_it_has_masked() -> None:
    edited = {"pin": MASK, "cards": [{"number": MASK, "holder": "B"}], "n": 2}
    kept = {"pin": "1", "cards": [{"number": "4", "holder": "B"}], "n": 2}

    for may in (True, False):
        assert merge_secrets(edited, DATA, NAMES, may=may) == (kept, [])


@cases(
    "edited, wrong",
    ({**DATA, "pin": "2"}, ["pin"]),
    ({**DATA, "pin": "1"}, ["pin"]),
    ({"cards": [], "n": 1}, ["pin"]),
    ({**DATA, "pin": MASK, "cards": [{"number": "4"}]}, ["cards.0.number"]),
    ({**DATA, "pin": MASK, "cards": [{}]}, ["cards.0.number"]),
)
def test_an_edit_of_a_secret_is_for_those_who_may_have_it_shown(
    edited: dict[str, object], wrong: list[str]
) -> None:
    found = merge_secrets(edited, DATA, NAMES, may=False)[1]

    assert set(wrong) <= set(found)
    assert not merge_secrets(edited, DATA, NAMES, may=True)[1]


def test_what_is_logged_holds_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    def prepare(work: dict[str, str]) -> Any:
        raise ValueError(work["password"])

    with caplog.at_level(logging.INFO):
        found = commit_together([{"password": "hunter2"}], prepare)

    assert len(found.left_out) == 1
    assert "done singly: ValueError" in caplog.text
    assert "hunter2" not in caplog.text


def test_a_database_error_of_the_applications_code_is_told_as_its_refusal() -> None:
    with pytest.raises(OperationRefused), refuse_code_errors(ProcessInstance()):
        raise IntegrityError("Key (name)=(Ann) already exists.")
