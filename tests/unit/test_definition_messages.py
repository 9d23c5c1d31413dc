"""Events and commands are frozen dataclasses by being declared."""

from dataclasses import FrozenInstanceError, fields, is_dataclass

import pytest

from orchestrator.definition import Command, Event
from tests.unit.shop import Ordered, Pack, Payment


def test_a_message_is_a_dataclass_without_saying_so() -> None:
    assert is_dataclass(Ordered)
    assert [item.name for item in fields(Ordered)] == ["order_id", "payment"]


def test_equal_messages_are_equal() -> None:
    assert Ordered("O-1", Payment.CARD) == Ordered("O-1", Payment.CARD)
    assert len({Pack("O-1"), Pack("O-1")}) == 1


def test_a_fact_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        Ordered("O-1", Payment.CARD).order_id = "O-2"  # type: ignore[misc]


def test_a_message_can_be_told_by_its_kind() -> None:
    assert isinstance(Ordered("O-1", Payment.CARD), Event)
    assert isinstance(Pack("O-1"), Command)
    assert not issubclass(Pack, Event)


def test_messages_may_be_extended() -> None:
    class Expressed(Ordered):
        hours: int = 1

    assert Expressed("O-1", Payment.CARD).hours == 1
