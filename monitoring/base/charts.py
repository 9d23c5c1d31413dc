"""Numbers as the points of small drawings, which pages paint by their classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

SMALL = 96, 22
"""Width and height of a drawing in a row."""


@dataclass(frozen=True)
class Area:
    """A line over time with what is below it.

    Args:
        line: the points of the line.
        area: the points of the area below the line.
    """

    line: str
    area: str


def area(numbers: Sequence[int], width: int, height: int, most: int = 0) -> Area:
    """Return the numbers from left to right in a frame of that size.

    Args:
        numbers: at least two.
        width: of the frame.
        height: of the frame; the largest number stays just below its top.
        most: the number at the top of the frame, if it is more than the largest.
    """
    most = max(most, *numbers, 1)
    step = width / (len(numbers) - 1)
    points = " ".join(
        f"{at * step:.4g},{height - number / most * (height - 2):.4g}"
        for at, number in enumerate(numbers)
    )
    return Area(points, f"0,{height} {points} {width},{height}")
