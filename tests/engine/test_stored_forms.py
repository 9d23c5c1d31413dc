"""What is left out of stored messages, and how they are read, shown and masked: values stay what was sent."""

import sys
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import StrEnum
from itertools import count
from typing import Any, Literal

import pytest

from monitoring.base.masking import command_body, event_body
from orchestrator import registry, send_event, start_process
from orchestrator.checking.upgrades import upgrade_findings
from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    Workflow,
    during,
    secret,
    then,
    wait,
    when,
)
from orchestrator.definition.codec import decode, digest
from orchestrator.definition.declarations.handlers import Handler
from orchestrator.definition.declarations.message_forms import encode_message
from orchestrator.engine.operations import skip_command
from orchestrator.exceptions import ConflictingEvent
from orchestrator.models import InboxEvent, Incident, IssuedCommand, ProcessInstance
from orchestrator.testing import run
from tests.apps.releases import after, before, renamed
from tests.services.crews import knowing
from tests.services.doing import did, fresh
from tests.services.releases import deploy, placed, ran, releases, sent

__all__ = ["releases"]
pytestmark = pytest.mark.django_db

numbers = count()


@dataclass(frozen=True)
class Part:
    name: str
    size: int = 1


class Plain(Event):
    key: str
    note: str = ""
    price: Decimal = Decimal("1.0")
    flag: int | bool = 1
    anything: Any = 1
    at: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    tags: list[str] = field(default_factory=list)
    part: Part = Part("a")
    kind: Literal["card"] = "card"


TOKYO = datetime(2026, 1, 1, 9, tzinfo=timezone(timedelta(hours=9)))


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ({}, {}),
        ({"note": "x", "tags": ["y"]}, {"note": "x", "tags": ["y"]}),
        ({"price": Decimal("1.00")}, {"price": "1.00"}),
        ({"flag": True}, {"flag": True}),
        ({"anything": 1.0}, {"anything": 1.0}),
        ({"anything": False}, {"anything": False}),
        ({"at": TOKYO}, {"at": "2026-01-01T09:00:00+09:00"}),
        ({"part": Part("a", 2)}, {"part": {"name": "a", "size": 2}}),
    ],
)
def test_only_what_is_written_as_the_default_is_left_out(
    given: dict[str, Any], stored: dict[str, Any]
) -> None:
    event = Plain("k", **given)
    body, full = encode_message(event)
    assert body == {"key": "k", **stored}
    assert [type(value) for value in body.values()] == [
        type(value) for value in ("k", *stored.values())
    ]
    assert encode_message(decode(Plain, body))[1] == full


class Numbered(Event):
    key: str
    number: int = field(default_factory=lambda: next(numbers))


def test_what_a_function_of_the_application_makes_is_stored() -> None:
    event = Numbered("k")
    before_it = next(numbers)
    body, full = encode_message(event)
    assert (body, body["number"]) == (full, event.number)
    assert next(numbers) == before_it + 1  # it was not asked again


class Opened(Event):
    key: str
    token: str = secret(default="secret-default")


class Ship(Command):
    key: str
    number: str = secret(default="")


class Case(ProcessManager):
    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"

    @dataclass(frozen=True)
    class Data:
        key: str
        token: str = secret(default="")

    correlation = "key"
    transitions = (during(Step.NEW, when(Opened).issue(Ship).go_to(Step.OPEN)),)


def refuse(command: Ship) -> None:
    raise ValueError("declined secret-default")


class Weighed(Event):
    grams: int


class Asked(Event):
    """Asked for more."""


def pack(parcel: Weighed) -> int:
    return parcel.grams


def stay(pack: int) -> int:
    return pack


class Packing(Workflow):
    name = "stored-forms-packing"
    flow = (
        then(
            wait(Weighed, "on_scales", gives="parcel"),
            wait(Asked, "more", gives="more"),
            pack,
            stay,
        ),
    )


known = knowing(Case, Packing)


@pytest.fixture
def shipping(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that makes another function the handler of the command."""

    def handle(function: Any, **policy: Any) -> None:
        about = {"after_commit": True, "attempts": 1, "timeout": 300} | policy
        handler = Handler(function, Ship, queue="default", **about)
        monkeypatch.setitem(registry.command_handlers, "Ship", [handler])

    return handle


def test_a_secret_at_its_default_stays_out_of_what_is_told(shipping: Any) -> None:
    shipping(refuse, after_commit=False)
    send_event(Opened("k"), id="1", source="shop")
    InboxEvent.objects.update(attempt=4)
    run()
    assert InboxEvent.objects.get().body == {"key": "k"}
    told = Incident.objects.open().get()
    assert "declined" in told.message
    assert (
        "secret-default"
        not in told.message + told.detail + InboxEvent.objects.get().error
    )


def test_secrets_of_a_form_that_no_code_reads_are_not_shown(shipping: Any) -> None:
    shipping(lambda command: None)
    send_event(Opened("k"), id="1", source="shop")
    run()
    unread = {"key": "k", "number": "4111", "more": 1}
    IssuedCommand.objects.update(body=unread)
    InboxEvent.objects.update(body={"key": "k", "token": "t-1", "more": 1})
    assert "4111" not in str(command_body(IssuedCommand.objects.get()))
    assert "t-1" not in str(event_body(InboxEvent.objects.get()))
    IssuedCommand.objects.update(body={"key": "k"})  # as they were, for the invariants
    InboxEvent.objects.update(body={"key": "k"})


def test_a_command_that_no_code_reads_can_be_given_up(shipping: Any) -> None:
    shipping(lambda command: None)
    send_event(Opened("k"), id="1", source="shop")
    run()
    case = ProcessInstance.objects.get()
    rows = IssuedCommand.objects.filter(instance=case)
    rows.update(status="ready", wake_at=case.started_at, body={"no": 1}, attempt=0)
    run()
    assert rows.get().error
    did(skip_command, case, str(rows.get().pk))
    assert (rows.get().status, rows.get().wake_at) == ("skipped", None)
    assert not Incident.objects.open().exists()
    rows.update(body={"key": "k"})  # as it was, for the invariants


def leave(body: dict[str, Any]) -> dict[str, Any]:
    sys.exit(0)


def test_a_conversion_that_exits_waits_and_fails_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = placed()
    paid = sent(before, before.OrderPaid("O-1", 5))
    with monkeypatch.context() as wrong:
        wrong.setattr(renamed.PaymentReceived, "_from_older", staticmethod(leave))
        ran(renamed)
        found = [one.what for one in upgrade_findings()]
        assert any("from_older raised SystemExit" in what for what in found)
        assert event_body(paid)["cents"] == 5
    assert (fresh(paid).verdict, paid.attempt) == ("received", 0)
    ran(renamed)
    assert fresh(order).step == "Paid"


def test_a_body_that_its_class_refuses_in_its_own_way_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order = placed()
    paid = sent(before, before.OrderPaid("O-1", 250))

    class OrderPaid(Event):
        order: str
        cents: int

        def __post_init__(self) -> None:
            raise KeyError(250)

    with monkeypatch.context() as wrong:
        wrong.setattr(
            before.Order, "events", {**before.Order.events, "OrderPaid": OrderPaid}
        )
        ran(before)
    assert (fresh(paid).verdict, paid.attempt) == ("received", 0)
    assert "OrderPaid: it raised KeyError" in Incident.objects.open().get().message
    ran(before)
    assert fresh(order).step == "Paid"


def test_an_id_sent_again_for_another_addressee_is_a_conflict() -> None:
    order = placed()
    about: dict[str, Any] = {"id": "paid", "source": "shop"}
    event = before.OrderPaid("O-1", 5)
    send_event(event, process_id=order.pk, **about)
    deploy(renamed)
    again = renamed.PaymentReceived("O-1", 0.05)
    assert send_event(again, process_id=order.pk, **about).repeated
    for key in ("", "O-1"):
        with pytest.raises(ConflictingEvent):
            send_event(again, correlation_key=key, **about)


def test_a_repeat_is_known_though_new_fields_came_since() -> None:
    placed()
    about: dict[str, Any] = {"id": "paid", "source": "shop"}
    send_event(before.OrderPaid("O-1", 5), **about)
    deploy(after)
    assert send_event(after.OrderPaid("O-1", 5), **about).repeated
    with pytest.raises(ConflictingEvent):
        send_event(after.OrderPaid("O-1", 5, "USD"), **about)


def test_an_event_that_a_wait_has_taken_is_read_in_its_older_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = start_process(Packing).process_id
    send_event(Weighed(7), id="1", process_id=process)
    run()
    instance = ProcessInstance.objects.get(pk=process)
    form = {"kilos": 7}
    taken = {"result": form, "checksum": digest(form)}
    instance.step_runs.filter(node="on_scales").update(**taken)
    convert = staticmethod(lambda body: {"grams": body["kilos"] * 1000})
    monkeypatch.setattr(Weighed, "_from_older", convert)
    send_event(Asked(), id="2", process_id=process)
    run()
    assert instance.step_runs.get(node="stay").result == 7000
    instance.step_runs.filter(node="on_scales").update(
        result={"grams": 7000}, checksum=digest({"grams": 7000})
    )  # the event is of today's form, for the invariants
    InboxEvent.objects.filter(event_id="1").update(body={"grams": 7000})


def test_a_named_key_is_no_other_key(shipping: Any) -> None:
    shipping(lambda command: None)
    event = Opened("k")
    start_process(Case, event, correlation_key="named", id="1", source="shop")
    run()
    assert list(upgrade_findings()) == []
