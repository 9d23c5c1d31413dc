"""A house is cleared: each room in a process of its own, which has the cupboard of the room cleared by a third one."""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator import Permanent
from orchestrator.definition import Event, Workflow, each, run, then, wait


@dataclass(frozen=True)
class House:
    """The names of its rooms, and the one whose cupboard cannot be opened."""

    rooms: list[str]
    locked: str = ""


@dataclass(frozen=True)
class Room:
    """A room."""

    name: str
    locked: bool


@dataclass(frozen=True)
class Work:
    """A room, as a map hands it to its process."""

    room: Room


class Emptied(Event):
    """Somebody has emptied a cupboard."""

    by: str


def find_rooms(rooms: list[str], locked: str) -> list[Room]:
    return [Room(name, name == locked) for name in rooms]


def enter(room: Room) -> str:
    return room.name


def open_cupboard(room: Room) -> str:
    if room.locked:
        raise Permanent(f"the cupboard of {room.name} is locked")
    return room.name


emptied = wait(Emptied, "emptied")


def shut(open_cupboard: str) -> str:
    return f"{open_cupboard} shut"


class Cupboard(Workflow):
    """What is done to the cupboard of a room."""

    Input = Work
    flow = (then(open_cupboard, emptied, shut),)


cupboard = run(Cupboard, "cupboard")


def leave(cupboard: str) -> str:
    return cupboard


class Clearing(Workflow):
    """What is done for one room."""

    Input = Work
    flow = (then(enter, cupboard, leave),)


def report(clearing: list[str]) -> int:
    return len(clearing)


class HouseClearing(Workflow):
    """All rooms, each in a process of its own."""

    Input = House
    flow = (each(find_rooms, over="", do=run(Clearing), into=report, item="room"),)
