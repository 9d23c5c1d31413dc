"""Process managers that do nothing but move, without commands and with two of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from bench.run import QUEUE
from orchestrator.definition import Command, Event, ProcessManager, during, when
from orchestrator.definition.process_manager.rows import During
from orchestrator.registry import command_handlers, handles


class Served(Event):
    """The game begins."""

    game: str


class Returned(Event):
    """The ball went over the net."""


class Missed(Event):
    """The game is over."""


class Score(Command):
    """A command that runs in the transition's transaction."""

    game: str


class Announce(Command):
    """A command that runs after the commit."""

    game: str


def score(command: Score) -> None:
    """Do nothing."""


def announce(command: Announce) -> None:
    """Do nothing."""


@contextmanager
def register_handlers() -> Iterator[None]:
    """Register the handlers for the block: outside it their queue does not exist."""
    handles(Score)(score)
    handles(Announce, after_commit=True, queue=QUEUE)(announce)
    try:
        yield
    finally:
        for command in (Score, Announce):
            command_handlers[command.__name__].pop()


class Side(StrEnum):
    NOT_STARTED = "NotStarted"
    LEFT = "Left"
    RIGHT = "Right"
    OVER = "Over"


@dataclass(frozen=True)
class Match:
    game: str


def rally(*commands: type[Command]) -> tuple[During, ...]:
    """From side to side; each return issues these commands."""
    return (
        during(Side.NOT_STARTED, when(Served).go_to(Side.LEFT)),
        during(
            Side.LEFT,
            when(Returned).issue(*commands).go_to(Side.RIGHT),
            when(Missed).go_to(Side.OVER),
        ),
        during(
            Side.RIGHT,
            when(Returned).issue(*commands).go_to(Side.LEFT),
            when(Missed).go_to(Side.OVER),
        ),
    )


class PingPong(ProcessManager):
    """Waits on one side, then on the other."""

    name = "bench-ping-pong"
    queue = QUEUE
    correlation = "game"
    Step, Data = Side, Match
    transitions = rally()


class AnnouncedPingPong(ProcessManager):
    """The same, with a command in the transaction and one after the commit at each return."""

    name = "bench-announced-ping-pong"
    queue = QUEUE
    correlation = "game"
    Step, Data = Side, Match
    transitions = rally(Score, Announce)
