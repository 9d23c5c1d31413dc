"""A table on which cards are turned: one event moves it purely, the others have commands inside or after the commit."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group

from orchestrator.definition import Command, Event, ProcessManager, during, when
from orchestrator.registry import handles

MEANWHILE: dict[str, Callable[[], object]] = {}
"""What happens while the next turn of the table of this name is decided."""


class TableLaid(Event):
    table: str


class CardTurned(Event):
    pass


class PointMade(Event):
    pass


class RoundOver(Event):
    pass


class TableCleared(Event):
    """Is taken only when the card is down."""


class CountPoint(Command):
    """Is a part of the commit."""

    table: str


class TellTable(Command):
    """Is carried out after it."""

    table: str


TWICE = (TellTable, TellTable)


@dataclass(frozen=True)
class CardTable:
    table: str
    turns: int = 0


HELD = "held"
"""The table at which every turn takes until its gate is open."""


def gate(name: str) -> Path:
    """Return the file that says that a turn at the held table is "begun", or may be "over"."""
    return Path(settings.DATA_DIR) / f"many_together.{name}"


def one_more(data: CardTable, event: Event) -> int:
    if data.table == HELD:
        with gate("begun").open("a") as file:
            file.write("1")
        while not gate("over").exists():
            time.sleep(0.01)
    MEANWHILE.pop(data.table, lambda: None)()
    return data.turns + 1


@handles(CountPoint)
def count_point(command: CountPoint) -> None:
    Group.objects.create(name=command.table)


@handles(TellTable, after_commit=True)
def tell_table(command: TellTable) -> None:
    """Nothing."""


class Cards(ProcessManager):
    """Cards are turned, one after the other."""

    class Step(StrEnum):
        BARE = "Bare"
        UP = "Up"
        DOWN = "Down"
        CLEARED = "Cleared"

    Data = CardTable
    correlation = "table"

    transitions = (
        during(Step.BARE, when(TableLaid).go_to(Step.UP)),
        during(
            Step.UP,
            when(CardTurned).set(turns=one_more).go_to(Step.DOWN),
            when(PointMade).set(turns=one_more).issue(CountPoint).go_to(Step.DOWN),
            when(RoundOver).set(turns=one_more).issue(*TWICE).go_to(Step.DOWN),
        ),
        during(
            Step.DOWN,
            when(CardTurned).set(turns=one_more).go_to(Step.UP),
            when(TableCleared).go_to(Step.CLEARED),
        ),
    )
