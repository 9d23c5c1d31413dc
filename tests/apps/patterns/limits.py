"""Steps with limits: how many at once, on which queue, inside which commit."""

import time

from orchestrator import Permanent
from orchestrator.definition import Workflow, each, start, step, then
from tests.apps.patterns.ledger import begin, end, note
from tests.apps.patterns.patterns import Number, Numbers


def narrow(item: int) -> int:
    begin("narrow")
    time.sleep(0.02)
    end("narrow")
    return item


def count_narrow(narrow: list[int]) -> int:
    return len(narrow)


def give(numbers: list[int]) -> list[int]:
    return numbers


class Narrow(Workflow):
    """No more than two runs of one step, of all processes."""

    Input = Numbers
    flow = (
        start(give),
        each(give, over="", do=step(narrow, concurrency=2), into=count_narrow),
    )


def press(number: int) -> int:
    return number


def fetch(press: int) -> int:
    return press


class Elsewhere(Workflow):
    """A step on a queue of its own."""

    Input = Number
    flow = (then(step(press, queue="press"), fetch),)


def store(number: int) -> int:
    """Writes inside the commit that stores its result."""
    note("stored")
    if number < 0:
        raise Permanent("below zero")
    return number


class Storing(Workflow):
    """A step inside the commit."""

    Input = Number
    flow = (step(store, transactional=True),)
