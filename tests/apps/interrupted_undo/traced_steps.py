"""The steps of a voyage, and what takes each of them back. All leave a trace that tells how often they took effect.

What is written inside the commit that stores a step's result adds a line each time it is committed; the rest, and all
that takes something back, adds one for each idempotency key, as an outside system would that is given the key.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass

from django.contrib.auth.models import Group

from orchestrator import Permanent
from orchestrator.definition import StepContext, step
from orchestrator.definition.workflow.steps import Function, Step
from tests.apps.patterns.ledger import note

PAUSE = 0.02  # seconds that a step takes outside of any transaction


@dataclass(frozen=True)
class Cargo:
    """The input of a voyage."""

    ship: str
    crates: int


def write(entry: str) -> None:
    """Leave a trace in the transaction of the step."""
    note(entry)


def tell(entry: str, context: StepContext) -> None:
    """Leave a trace as an outside system does: once for each key, however often it is called."""
    time.sleep(PAUSE)
    Group.objects.get_or_create(name=f"{entry} #{context.idempotency_key}")
    time.sleep(PAUSE)


def traces() -> Iterator[tuple[str, str]]:
    """Return who did what, in the order in which it was done, as often as it took effect."""
    for name in Group.objects.order_by("pk").values_list("name", flat=True):
        ship, _, entry = name.rpartition(" #")[0].partition(": ")
        yield ship, entry


def berth(ship: str) -> str:
    write(f"{ship}: berth")
    return ship


def load(ship: str, context: StepContext) -> str:
    tell(f"{ship}: load", context)
    return ship


def fuel(ship: str, context: StepContext) -> str:
    tell(f"{ship}: fuel", context)
    return ship


def insure(ship: str, crates: int) -> list[int]:
    write(f"{ship}: insure")
    return list(range(crates))


def stow(ship: str, item: int, context: StepContext) -> int:
    tell(f"{ship}: stow {item}", context)
    return item


def sail(ship: str, stow: list[int]) -> int:
    write(f"{ship}: sail")
    return len(stow)


def sink(ship: str) -> None:
    """Fail for good, when everything else is done."""
    raise Permanent(f"{ship} has sunk")


def free_berth(ship: str, context: StepContext) -> None:
    tell(f"{ship}: undo berth", context)


def unload(ship: str, context: StepContext) -> None:
    tell(f"{ship}: undo load", context)


def drain_fuel(ship: str, context: StepContext) -> None:
    tell(f"{ship}: undo fuel", context)


def end_insurance(ship: str, context: StepContext) -> None:
    tell(f"{ship}: undo insure", context)


def unstow(ship: str, item: int, context: StepContext) -> None:
    tell(f"{ship}: undo stow {item}", context)


def call_back(ship: str, context: StepContext) -> None:
    tell(f"{ship}: undo sail", context)


def patient(function: Function, *, transactional: bool = False) -> Step:
    """Return a step that outlives more kills than a storm has for one step."""
    return step(function, retries=12, backoff=0.05, transactional=transactional)
