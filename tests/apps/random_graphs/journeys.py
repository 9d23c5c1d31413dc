"""Small workflows that between them stand in every way a workflow can."""

from dataclasses import dataclass
from enum import StrEnum

from orchestrator import Permanent
from orchestrator.definition import (
    Workflow,
    ask,
    each,
    fork,
    join,
    repeat,
    route,
    run,
    step,
    then,
    undo,
)


class Stay(StrEnum):
    """What a traveller decides."""

    LONGER = "longer"
    NO_MORE = "no more"


class Vehicle(StrEnum):
    """How one travels."""

    TRAIN = "train"
    SHIP = "ship"


class Stranded(Exception):
    """It may work later."""


def pack() -> int:
    return 1


def book(pack: int) -> str:
    return f"room {pack}"


def unbook(book: str) -> None:
    """Undo a booking."""


def buy() -> Vehicle:
    return Vehicle.TRAIN


def refund(buy: Vehicle) -> None:
    """Undo a purchase."""


def leave(book: str, buy: Vehicle) -> Vehicle:
    return buy


def ride() -> int:
    return 3


def sail() -> int:
    return 9


def arrive(ride: int | None, sail: int | None) -> list[int]:
    return list(range(ride or sail or 0))


def see(item: int) -> int:
    return item


def album(see: list[int]) -> int:
    return len(see)


def rest(rest: int | None) -> int:
    return (rest or 0) + 1


def rested(rest: int) -> bool:
    return rest > 1


def home() -> None:
    """Arrive where it began."""


def towns() -> list[int]:
    return [1, 2, 3]


def meet() -> None:
    """Come together."""


def strand(item: int) -> int:
    raise Stranded


def lose() -> None:
    raise Permanent("lost")


stay = ask("stay", choices=Stay)


class Errand(Workflow):
    """A sub-process that ends."""

    flow = (then(pack, book),)


class Visit(Workflow):
    """A sub-process that waits for a person."""

    flow = (then(pack, ask("leave_now", choices=Stay)),)


errand = run(Errand, "errand")


class Journey(Workflow):
    """Every pattern, one after the other, as far as a person's decision."""

    flow = (
        fork(pack, into=[book, buy]),
        join(book, buy, into=leave),
        route(leave, on="", to={Vehicle.TRAIN: ride, Vehicle.SHIP: sail}),
        join(ride, sail, into=arrive),
        each(arrive, over="", do=see, into=album),
        then(album, rest),
        repeat(rest, until=rested, at_most=3, then=errand),
        then(errand, stay, home),
        undo(book, by=unbook),
        undo(buy, by=refund),
    )


called = run(Visit, "called")
stranded = step(strand, "stranded", backoff=3600.0)


class Standstill(Workflow):
    """Waits in every way at once: for a person, a branch, a retry, a sub-process, and because a step has failed."""

    flow = (
        fork(pack, into=[stay, buy, towns, called, lose]),
        join(stay, buy, into=meet),
        each(towns, over="", do=stranded, into=home, window=1),
    )


@dataclass(frozen=True)
class Nothing:
    """No input."""


class TakenBack(Workflow):
    """Fails at its end, and is undone."""

    Input = Nothing
    flow = (then(pack, book, buy, lose), undo(book, by=unbook), undo(buy, by=refund))


# Corners in which joins and maps have to be counted right


def sights() -> "Sights":
    return Sights([], [1, 2])


@dataclass(frozen=True)
class Sights:
    """Two lists of which one is empty."""

    seen: list[int]
    unseen: list[int]


def pass_by(item: int) -> int:
    return item


def both(see: list[int], pass_by: list[int]) -> int:
    return len(see) * 10 + len(pass_by)


class EmptyBeside(Workflow):
    """Two maps of one result, the first without elements, and a join that a branch not taken leads to as well."""

    flow = (
        each(sights, over="seen", do=see, into=both),
        each(sights, over="unseen", do=pass_by, into=both),
        fork(sights, on="seen", into={7: ride}),
        join(see, pass_by, ride, into=both),
    )


FAILING: set[str] = set()
"""The names of the steps that fail for now."""


def may_fail() -> None:
    if "may_fail" in FAILING:
        raise Permanent("for now")


def quickly() -> None:
    """Be done at once."""


def aside() -> None:
    """Lead elsewhere."""


def inner() -> None:
    """Wait for two branches, in a branch that may be given up."""


wait_here = ask("wait_here", choices=Stay)
fails_at_first = step(may_fail, "fails_at_first", retries=0)


class FailFast(Workflow):
    """A branch outside of what is given up arrives at a join inside of it while the failure is looked at."""

    flow = (
        fork(pack, into=[quickly, wait_here, fails_at_first]),
        join(quickly, wait_here, into=inner),
        then(wait_here, aside),
        join(inner, fails_at_first, into=home, on_failure="fail_fast"),
    )


class GivenUp(Workflow):
    """A branch outside of what is given up arrives at a join inside of it after the outer one has started."""

    flow = (
        fork(pack, into=[quickly, wait_here, buy]),
        join(quickly, wait_here, into=inner),
        then(wait_here, aside),
        join(inner, buy, into=home, wait_for="any", rest="cancel"),
    )
