"""The class statement makes events and commands frozen dataclasses."""

from dataclasses import FrozenInstanceError, fields

import pytest

from orchestrator.definition import Command, Event
from tests.unit.shop import Ordered, Pack, Payment


def test_messages_are_frozen_dataclasses_told_by_their_kind() -> None:
    ordered = Ordered("O-1", Payment.CARD)

    assert [item.name for item in fields(Ordered)] == ["order_id", "payment"]
    assert ordered == Ordered("O-1", Payment.CARD)
    assert len({Pack("O-1"), Pack("O-1")}) == 1
    with pytest.raises(FrozenInstanceError):
        ordered.order_id = "O-2"  # type: ignore[misc]
    assert isinstance(ordered, Event)
    assert isinstance(Pack("O-1"), Command)
    assert not issubclass(Pack, Event)


def test_messages_may_be_extended() -> None:
    class Expressed(Ordered):
        hours: int = 1

    assert Expressed("O-1", Payment.CARD).hours == 1
