"""A sequence of ten steps that do nothing, beside RQ and the database's limit."""

from __future__ import annotations

from dataclasses import replace

from bench import rq_game
from bench.game import Size
from bench.idle import ONE_BY_ONE
from bench.limits import LIMIT, limits
from bench.measurement import Measurement, Ratio
from bench.run import QUEUE
from bench.workflow_game import OneByOne, WorkflowGame
from orchestrator.definition import Workflow, step, then

LENGTH = 10


def pass_on() -> None:
    """Do nothing."""


class Chain(Workflow):
    """A sequence of steps that do nothing."""

    name = "bench-chain"
    queue = QUEUE
    flow = (then(*(step(pass_on, f"link_{n}") for n in range(LENGTH))),)


def chain(size: Size) -> WorkflowGame:
    """Return a game of so many sequences of ten."""
    return WorkflowGame(size, f"chain of {LENGTH}", Chain, LENGTH)


def measurement(size: Size) -> Measurement:
    """Return the chain, the same in RQ in its two ways, and the limits; and one chain at a time."""
    one = replace(size, count=ONE_BY_ONE)
    enqueues, plain = rq_game.chains(size, LENGTH)
    rq_one = rq_game.one_chain(one, LENGTH)
    ours = chain(size)
    our_one = OneByOne(one, "one chain at a time", Chain, LENGTH)
    return Measurement(
        "chain",
        [
            *limits(replace(size, count=size.count * LENGTH)),
            enqueues,
            plain,
            ours,
            rq_one,
            our_one,
        ],
        [
            Ratio("of RQ's enqueuing", "per_second", [ours.name], enqueues.name),
            Ratio("of RQ's depends_on", "per_second", [ours.name], plain.name),
            Ratio("of the limit", "per_second", [ours.name], LIMIT),
            Ratio("p50 of RQ's", "p50_ms", [our_one.name], rq_one.name),
        ],
        rq_game.START,
    )
