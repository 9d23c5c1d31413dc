"""The definition: a graph of its own for each seed."""

from orchestrator.definition import Workflow
from tests.apps.random_graphs import steps
from tests.reliability.random_graphs import random_flow


class RandomGraph(Workflow):
    """A graph made from dice."""

    name = "random-graph"
    Input = steps.Dice
    flow = staticmethod(random_flow)

    @staticmethod
    def summary(input: steps.Dice) -> str:
        return f"seed {input.seed}"
