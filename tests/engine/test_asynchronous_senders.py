"""What asynchronous code of an application awaits: starts and events, stored as those of synchronous code."""

import asyncio

import pytest

from orchestrator import (
    Envelope,
    asend_event,
    asend_events,
    astart_process,
)
from orchestrator.exceptions import EventRefused, KeyTaken
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.testing import run
from tests.apps.releases import before
from tests.services.releases import deploy, releases

__all__ = ["releases"]
pytestmark = pytest.mark.django_db(transaction=True)


async def sends() -> list[int]:
    """Place an order, pay it, and add notes, from several tasks."""
    order = before.OrderPlaced("O-1")
    started = await astart_process(before.Order, order, id="placed", source="shop")
    paid = await asend_event(before.OrderPaid("O-1", 5), id="paid", source="shop")
    again = await asend_event(
        "OrderPaid", {"order": "O-1", "cents": 5}, id="paid", source="shop"
    )
    assert (again.number, again.repeated) == (paid.number, True)
    notes = [
        Envelope(before.NoteAdded("O-1", number), id=f"note {number}")
        for number in range(4)
    ]
    stored = await asyncio.gather(asend_events(notes[:2]), asend_events(notes[2:]))
    return [started.number, paid.number, *(one.number for two in stored for one in two)]


def test_what_is_awaited_is_stored_in_its_order() -> None:
    deploy(before)
    numbers = asyncio.run(sends())
    run()
    assert len(set(numbers)) == 6
    order = ProcessInstance.objects.get()
    assert (order.step, sorted(order.data["notes"])) == ("Paid", [0, 1, 2, 3])
    assert not InboxEvent.objects.filter(handled_at=None).exists()


async def refused() -> None:
    await astart_process(before.Packing, before.Packing.Input("O-1"))
    with pytest.raises(KeyTaken):
        await astart_process("packing", before.Packing.Input("O-1"))
    envelopes = [
        Envelope(before.OrderPlaced("O-2"), id="1"),
        Envelope("NoSuchEvent", {}, id="2"),
    ]
    with pytest.raises(EventRefused) as wrong:
        await asend_events(envelopes)
    assert (wrong.value.place, len(wrong.value.receipts)) == (1, 1)


def test_what_is_refused_raises_the_same_errors() -> None:
    deploy(before)
    asyncio.run(refused())
