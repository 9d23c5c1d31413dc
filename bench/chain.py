"""A sequence of steps that do nothing."""

from __future__ import annotations

from bench.game import Size
from bench.run import QUEUE
from bench.workflow_game import WorkflowGame
from orchestrator.definition import Workflow, step, then

LENGTH = 10


def pass_on() -> None:
    """Nothing."""


class Chain(Workflow):
    """A sequence of steps that do nothing."""

    name = "bench-chain"
    queue = QUEUE
    flow = (then(*(step(pass_on, f"link_{n}") for n in range(LENGTH))),)


def chain(size: Size) -> WorkflowGame:
    """So many sequences of ten."""
    name = f"chain of {LENGTH}"
    inputs = [None] * size.count
    return WorkflowGame(size, name, Chain, inputs, LENGTH * size.count, None)
