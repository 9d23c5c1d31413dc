"""What the steps of random graphs do: note that they were called, and answer by dice that fall the same each time."""

import os
import random
import time
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from uuid import UUID

from orchestrator import Permanent
from orchestrator.definition import StepContext
from orchestrator.models import StepKind, StepRun, StepStatus
from tests.services.journal import Journal

LEDGER = "GRAPHS_LEDGER"
"""The environment variable that names the file in which every call is noted."""
PAUSE = "GRAPHS_PAUSE"
"""How many seconds a step takes."""


class Way(StrEnum):
    """The ways of a route or a multi-choice."""

    A = "a"
    B = "b"
    C = "c"


@dataclass(frozen=True)
class Dice:
    """What makes a graph, and what its steps answer."""

    seed: int
    size: int


@dataclass(frozen=True)
class Found:
    """What a step answers: all that rows may ask of it."""

    way: Way
    ways: list[Way]
    items: list[int]
    visit: int


class Broken(Permanent):
    """The failure that random graphs catch."""


@dataclass(frozen=True)
class Call:
    """One call of a step, as it was noted."""

    process: str
    step: str
    visit: int
    item: int | None
    key: str
    late: bool
    """Whether its result was stored already."""


def work(context: StepContext, input: Dice) -> Found:
    """Answer by dice."""
    note(context)
    dice = random.Random(f"{input.seed}:{context.step}")
    return Found(
        dice.choice(list(Way)),
        dice.sample(list(Way), dice.randint(0, 3)),
        list(range(dice.randint(0, 5))),
        context.visit,
    )


def stumble(context: StepContext, input: Dice) -> Found:
    """Fail in the first attempt."""
    if context.attempt == 1:
        note(context)
        raise ConnectionError("not yet")
    return work(context, input)


def fail(context: StepContext) -> Found:
    """Fail for good."""
    note(context)
    raise Broken("never")


def fail_later(context: StepContext, input: Dice) -> Found:
    """Fail for good in the second visit."""
    if context.visit > 1:
        fail(context)
    return work(context, input)


def element(item: int, context: StepContext) -> int:
    """Look at one element."""
    note(context, item)
    return item


def odd_element(item: int, context: StepContext) -> int:
    """Look at one element, and fail for good if it is the second one."""
    note(context, item)
    if item == 1:
        raise Broken("never")
    return item


def seen_twice(found: Found) -> bool:
    """Tell whether a loop has gone round twice."""
    return found.visit >= 2


def never(found: Found) -> bool:
    """Let a loop come to its bound."""
    return False


def note(context: StepContext, item: int | None = None) -> None:
    """Write down that a step was called, in one write that a kill cannot part, and take a little time."""
    if path := os.environ.get(LEDGER):
        call = (context.process_id, context.step, context.visit, item)
        Journal(path).note(*call, context.idempotency_key, int(is_done(*call)))
    time.sleep(float(os.environ.get(PAUSE, "0")))


def is_done(process: UUID, step: str, visit: int, item: int | None) -> bool:
    """Tell whether the result of a visit is stored."""
    same = StepRun.objects.filter(instance=process, node=step, visit=visit, item=item)
    return same.filter(
        status=StepStatus.DONE, kind__in=[StepKind.STEP, StepKind.ITEM]
    ).exists()


def calls(path: Path) -> list[Call]:
    """Return what was noted."""
    return [
        Call(process, step, int(visit), _number(item), key, late == "1")
        for process, step, visit, item, key, late in Journal(path).lines()
    ]


def _number(text: str) -> int | None:
    return None if text == "None" else int(text)
