"""Workflows whose maps run a sub-process for each element."""

from dataclasses import dataclass

from orchestrator.definition import (
    Workflow,
    ask,
    catch,
    each,
    fork,
    join,
    run,
    start,
    then,
    undo,
)
from orchestrator.exceptions import ChildCancelled
from tests.apps.compensation import journal
from tests.apps.compensation import steps as s
from tests.apps.compensation.processes import Leg
from tests.apps.compensation.steps import Answer, Traveller
from tests.services.declared import declared

CITIES = ("Kobe", "Nara", "Osaka", "Kyoto", "Uji")


def cities(nights: int, days: int) -> list[str]:
    """Return a city for each night; there may be none."""
    journal.do("cities")
    return list(CITIES[:nights])


def gather(leg: list[str]) -> list[str]:
    journal.do("gather")
    return leg


def forget_leg(city: str, leg: str) -> None:
    journal.undo("forget_leg", f"forget {city}: {leg}")


def give_up(days: int) -> str:
    journal.do("give_up")
    return f"home after {days} days"


leg = run(Leg, "leg")


class Rally(Workflow):
    """A leg for each city, two at once; one less is no trouble."""

    Input = Traveller
    approve = ask("approve", Answer)
    flow = (
        start(s.days),
        then(s.days, cities),
        each(cities, over="", do=leg, into=gather, item="city", window=2, tolerate=1),
        then(gather, approve),
    )


ALL_LEGS = (
    start(s.days),
    then(s.days, cities),
    each(cities, over="", do=leg, into=gather, item="city"),
)


class Regretted(Workflow):
    """All legs at once; they are forgotten when it fails or is cancelled."""

    Input = Traveller
    approve = ask("approve", Answer)
    flow = (*ALL_LEGS, then(gather, approve), undo(leg, by=forget_leg))


class Wary(Workflow):
    """When a leg is called off, the others are too."""

    Input = Traveller
    flow = (*ALL_LEGS, catch(leg, error=ChildCancelled, to=give_up))


class Hurried(Workflow):
    """Legs, two at once, beside a rest; when that fails they are given up until it is tried again."""

    Input = Traveller
    approve = ask("approve", Answer)
    flow = (
        start(s.days),
        fork(s.days, into=[cities, approve]),
        each(cities, over="", do=leg, into=gather, item="city", window=2),
        then(approve, s.rest),
        join(gather, s.rest, into=give_up, on_failure="fail_fast"),
    )


@dataclass(frozen=True)
class Stop:
    """Where one stays for some nights."""

    city: str
    nights: int


@dataclass(frozen=True)
class Staying:
    """The input of a stay."""

    stop: Stop


def stops(nights: int) -> list[Stop]:
    return [Stop(city, number + 1) for number, city in enumerate(CITIES[:nights])]


def sleep(stop: Stop) -> str:
    return f"{stop.nights} in {stop.city}"


def add(stay: list[str]) -> list[str]:
    return stay


class Stay(Workflow):
    """It waits for nothing."""

    Input = Staying
    flow = (sleep,)


class Crossing(Workflow):
    """A stay at each stop."""

    Input = Traveller
    flow = (each(stops, over="", do=run(Stay), into=add, item="stop"),)


RALLIES = declared(globals())
