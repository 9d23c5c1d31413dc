"""Messages of an earlier release under a former name, and in an older form that their class converts."""

import types
from collections.abc import Callable
from typing import Any

import pytest

from orchestrator import Envelope, send_event, send_events
from orchestrator.definition import Event
from orchestrator.exceptions import ConflictingEvent, InvalidDefinition
from orchestrator.models import InboxEvent, Incident, IssuedCommand
from orchestrator.testing import run
from tests.apps.releases import before, renamed
from tests.services.doing import fresh
from tests.services.releases import deploy, packed, placed, ran, releases, sent, told

__all__ = ["releases"]
pytestmark = pytest.mark.django_db

PAID = before.OrderPaid("O-1", 250)


def test_an_event_under_a_former_name_and_in_an_older_form_is_delivered() -> None:
    order = placed()
    paid = sent(before, PAID)
    ran(renamed)
    assert (fresh(paid).verdict, fresh(order).step) == ("moved", "Paid")
    command = IssuedCommand.objects.get(instance=order)
    assert (command.type, command.status) == ("Dispatch", "done")


def test_a_process_starts_by_an_event_under_a_former_name() -> None:
    placed_order = sent(before, before.OrderPlaced("O-1"))
    ran(renamed)
    assert fresh(placed_order).verdict == "started"


def test_a_parked_event_under_a_former_name_is_offered_at_its_step() -> None:
    order = placed()
    boxed = sent(before, before.OrderPacked("O-1"))
    run()
    assert fresh(boxed).verdict == "parked"
    sent(renamed, renamed.PaymentReceived("O-1", 2.5))
    run()
    assert (fresh(boxed).verdict, fresh(order).step) == ("moved", "Packed")


def test_a_wait_takes_a_parked_event_under_a_former_name() -> None:
    deploy(before)
    sent(before, before.OrderPacked("O-1"))
    early = InboxEvent.objects.get(target="packing")
    parcel = packed(renamed)
    run()
    assert (fresh(early).verdict, fresh(parcel).status) == ("moved", "completed")


def test_a_command_under_a_former_name_is_carried_out() -> None:
    order = placed()
    sent(before, PAID)
    run()
    commands = IssuedCommand.objects.filter(instance=order)
    assert commands.get().type == "Ship"
    commands.update(status="ready", wake_at=order.started_at, attempt=0)
    ran(renamed)
    assert commands.get().status == "done"


def test_a_sender_may_use_a_former_name_and_an_older_form() -> None:
    order = placed()
    deploy(renamed)
    envelope = Envelope(
        "OrderPaid", id="1", source="shop", data={"order": "O-1", "cents": 250}
    )
    [receipt] = send_events([envelope])
    stored = InboxEvent.objects.get(pk=receipt.number)
    assert (stored.type, stored.body["euros"]) == ("PaymentReceived", 2.5)
    run()
    assert fresh(order).step == "Paid"


def test_a_repeat_across_releases_is_a_repeat() -> None:
    placed()
    paid = sent(before, PAID)
    deploy(renamed)
    again = renamed.PaymentReceived("O-1", 2.5)
    about: dict[str, Any] = {
        "id": "OrderPaid",
        "source": "shop",
        "correlation_key": "O-1",
    }
    assert send_event(again, **about).repeated
    run()
    assert send_event(again, **about).number == paid.pk
    with pytest.raises(ConflictingEvent):
        send_event(renamed.PaymentReceived("O-1", 3.5), **about)
    assert fresh(paid).repeats == 2


def failing(body: dict[str, Any]) -> dict[str, Any]:
    raise KeyError("a secret")


def unfit(body: dict[str, Any]) -> dict[str, Any]:
    return {"order": 1}


@pytest.mark.parametrize(
    ("convert", "why"),
    [
        (failing, "euros: Field required (and 1 more); from_older raised KeyError"),
        (unfit, "euros: Field required (and 1 more)"),
    ],
)
def test_an_event_waits_while_its_conversion_fails(
    convert: Callable[..., Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = placed()
    paid = sent(before, PAID)
    with monkeypatch.context() as wrong:
        wrong.setattr(renamed.PaymentReceived, "_from_older", staticmethod(convert))
        ran(renamed)
    assert (fresh(paid).verdict, paid.attempt) == ("received", 0)
    assert told() == f"the running code cannot read PaymentReceived: {why}"
    ran(renamed)
    assert fresh(order).step == "Paid"
    assert not Incident.objects.open().exists()


def test_a_name_that_a_class_still_has_is_no_former_name() -> None:
    class Elsewhere(Event, aliases="OrderPacked"):
        order: str

    order = placed()
    sent(before, PAID)
    boxed = sent(before, before.OrderPacked("O-1"))
    run()
    assert (fresh(boxed).verdict, fresh(order).step) == ("moved", "Packed")


async def later(body: dict[str, Any]) -> dict[str, Any]:
    return body


@pytest.mark.parametrize(
    ("keywords", "why"),
    [
        ({"aliases": 3}, "aliases=3 must be a former name"),
        ({"aliases": ["Old"]}, "must be a former name of the class, or a tuple"),
        ({"aliases": "Old name"}, "the alias 'Old name' must be"),
        ({"aliases": ("Moved",)}, "the alias 'Moved' is its name now"),
        ({"from_older": 3}, "from_older=3 must be a function"),
        ({"from_older": later}, "from_older is asynchronous"),
    ],
)
def test_wrong_keywords_are_refused_where_they_are_written(
    keywords: dict[str, Any], why: str
) -> None:
    with pytest.raises(InvalidDefinition, match=why):
        types.new_class("Moved", (Event,), keywords)
