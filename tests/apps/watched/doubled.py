"""A map that doubles numbers, for workflows that decide on the list of its results."""

from dataclasses import dataclass

from orchestrator.definition import step
from orchestrator.exceptions import Skip


@dataclass(frozen=True)
class Numbers:
    """Each is doubled; 13 is passed over, and 14 fails."""

    numbers: list[int]


def given(numbers: list[int]) -> list[int]:
    return numbers


def double(item: int) -> int:
    if item == 13:
        raise Skip("bad luck")
    if item == 14:
        raise ConnectionError("no line")
    return 2 * item


def total(double: list[int]) -> int:
    return sum(double)


doubled = step(double, retries=0)
