"""Results and inputs that cannot be stored."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from orchestrator.definition import Workflow, step, then, wait
from tests.apps.patterns.ledger import note
from tests.apps.patterns.patterns import Approved, How, Number


async def later() -> int:
    return 1


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


class Opaque:
    pass


RESULTS: dict[str, Callable[[], Any]] = {
    "an object": Opaque,
    "a set of objects": lambda: {Opaque()},
    "NaN": lambda: float("nan"),
    "2 MB": lambda: "x" * 2_000_000,
    "NUL": lambda: "a\0b",
    "a lone surrogate": lambda: "\ud800",
    "depth 100": lambda: nested(100),
    "depth 1000": lambda: nested(1000),
    "a generator": lambda: (number for number in range(3)),
    "an awaitable": later,
    "itself inside": endless,
    "a large number": lambda: 10**5000,
}


def hand_over(how: str) -> Any:
    return RESULTS[how]()


def take_over(hand_over: Any) -> None:
    note("taken over")


class HandingOver(Workflow):
    """A step that gives what cannot be stored."""

    Input = How
    flow = (then(hand_over, take_over),)


@dataclass(frozen=True)
class Parcel:
    weight: int


def wrong_type(how: str) -> int:
    return how  # type: ignore[return-value]  # that is the case


def wrong_field(how: str) -> Parcel:
    return Parcel(how)  # type: ignore[arg-type]  # that is the case


class WrongType(Workflow):
    """A step that gives another type than it says."""

    Input = How
    flow = (step(wrong_type),)


class WrongField(Workflow):
    """A step that gives another form than it says."""

    Input = How
    flow = (step(wrong_field),)


@dataclass(frozen=True)
class Order:
    order: str
    amount: int = 1
    note: str = ""


class Keyed(Workflow):
    """One live process for each order."""

    Input = Order
    correlation = "order"
    flow = (wait(Approved),)


def here() -> None:
    """Does nothing."""


def there() -> None:
    """Does nothing."""


class Circular(Workflow):
    """A graph that is only built when it starts, and goes round."""

    Input = Number

    @staticmethod
    def flow(input: Number) -> list[Any]:
        return [then(here, there, here)]
