"""A process manager that does nothing but move, for measuring."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from bench.run import QUEUE
from orchestrator.definition import Event, ProcessManager, during, when


class Served(Event):
    """The game begins."""

    game: str


class Returned(Event):
    """The ball went over the net."""


class Missed(Event):
    """The game is over."""


class PingPong(ProcessManager):
    """Waits on one side, then on the other."""

    name = "bench-ping-pong"
    queue = QUEUE
    correlation = "game"

    class Step(StrEnum):
        NOT_STARTED = "NotStarted"
        LEFT = "Left"
        RIGHT = "Right"
        OVER = "Over"

    @dataclass(frozen=True)
    class Data:
        game: str

    transitions = (
        during(Step.NOT_STARTED, when(Served).go_to(Step.LEFT)),
        during(
            Step.LEFT,
            when(Returned).go_to(Step.RIGHT),
            when(Missed).go_to(Step.OVER),
        ),
        during(
            Step.RIGHT,
            when(Returned).go_to(Step.LEFT),
            when(Missed).go_to(Step.OVER),
        ),
    )
