"""Surveys of a house, each with something missing."""

from dataclasses import dataclass
from typing import Any

from orchestrator.definition import Workflow, each, step, then
from orchestrator.exceptions import Skip

NOTHING: Any = None


@dataclass(frozen=True)
class Found:
    rooms: int
    damp: int | None = None


def survey() -> Found:
    return Found(NOTHING)


def count() -> int:
    return NOTHING  # type: ignore[no-any-return]


def report(survey: Found) -> str:
    return str(survey)


def add(count: int) -> int:
    return count + 1


def guess() -> int | Skip:
    return Skip("nobody knows", result="many")


def rooms() -> list[int]:
    return [1, 2, 3]


def paint(item: int) -> int | Skip:
    return Skip("it is painted") if item == 2 else item


def send_bill(paint: list[int]) -> int:
    return sum(paint)


class MissingField(Workflow):
    flow = (then(survey, report),)


class MissingResult(Workflow):
    flow = (then(count, add),)


class WrongSkip(Workflow):
    flow = (step(guess),)


class PaintedAlready(Workflow):
    flow = (each(rooms, over="", do=paint, into=send_bill),)


WORKFLOWS = (MissingField, MissingResult, WrongSkip, PaintedAlready)
