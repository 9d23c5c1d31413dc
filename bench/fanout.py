"""A list of 50, a step for each element, and a join, beside RQ and the database's limit."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench import rq_game
from bench.game import Size
from bench.idle import ONE_BY_ONE
from bench.limits import LIMIT, limits
from bench.measurement import Measurement, Ratio
from bench.run import QUEUE
from bench.workflow_game import OneByOne, WorkflowGame
from orchestrator.definition import Workflow, each

WIDTH = 50
STEPS = WIDTH + 2


def numbers(width: int) -> list[int]:
    """Return the elements of the fan-out."""
    return list(range(width))


def look(item: int) -> int:
    """Return one element as it is."""
    return item


def collect(look: list[int]) -> int:
    """Join the elements."""
    return len(look)


class FanOut(Workflow):
    """A list, one step for each element, and a join."""

    name = "bench-fanout"
    queue = QUEUE

    @dataclass(frozen=True)
    class Input:
        """How many elements."""

        width: int = WIDTH

    flow = (each(numbers, over="", do=look, into=collect),)


def measurement(size: Size) -> Measurement:
    """The fan-out, the same in RQ in its two ways, and the limits; and one fan-out at a time."""
    one = replace(size, count=ONE_BY_ONE)
    best, plain = rq_game.fanouts(size, WIDTH)
    rq_one = rq_game.one_fanout(one, WIDTH)
    name, given = f"fan-out of {WIDTH}, join", FanOut.Input()
    ours = WorkflowGame(size, name, FanOut, STEPS, given)
    our_one = OneByOne(one, "one fan-out at a time", FanOut, STEPS, given)
    return Measurement(
        "fanout",
        [
            *limits(replace(size, count=size.count * STEPS)),
            best,
            plain,
            ours,
            rq_one,
            our_one,
        ],
        [
            Ratio(
                "of RQ's countdown", "per_second", [plain.name, ours.name], best.name
            ),
            Ratio("of RQ's depends_on", "per_second", [ours.name], plain.name),
            Ratio("of the limit", "per_second", [ours.name], LIMIT),
            Ratio("p50 of RQ's", "p50_ms", [our_one.name], rq_one.name),
        ],
        rq_game.START,
    )
