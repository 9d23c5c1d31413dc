"""A shop takes stock of its shelves: each shelf of its boxes, and then somebody has to sign for the shelf."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator import Permanent
from orchestrator.definition import Event, Workflow, each, run, then, wait


@dataclass(frozen=True)
class Shop:
    """The names of the shelves, and how many boxes each has."""

    shelves: list[str]
    boxes: int = 3
    broken: str = ""


@dataclass(frozen=True)
class Place:
    """A shelf."""

    shelf: str
    boxes: int
    broken: str


@dataclass(frozen=True)
class Shelf:
    """A shelf, as a map hands it to its process."""

    place: Place


class Signed(Event):
    """Somebody has signed for a shelf."""

    by: str


def find_shelves(shelves: list[str], boxes: int, broken: str) -> list[Place]:
    return [Place(shelf, boxes, broken) for shelf in shelves]


def find_boxes(place: Place) -> list[str]:
    return [f"{place.shelf}/{number}" for number in range(place.boxes)]


def count_box(box: str, place: Place) -> int:
    if box == place.broken:
        raise Permanent(f"{box} is broken open")
    return 1


def add_up(count_box: list[int]) -> int:
    return sum(count_box)


signature = wait(Signed, "signature")


def file_away(add_up: int) -> int:
    return add_up


def report(stocktaking: list[int]) -> int:
    return sum(stocktaking)


class Stocktaking(Workflow):
    """What is done for one shelf."""

    name = "stocktaking"
    Input = Shelf
    flow = (
        each(find_boxes, over="", do=count_box, into=add_up, item="box"),
        then(add_up, signature, file_away),
    )


class Inventory(Workflow):
    """All shelves, each in a process of its own."""

    name = "inventory"
    Input = Shop
    flow = (
        each(find_shelves, over="", do=run(Stocktaking), into=report, item="place"),
    )
