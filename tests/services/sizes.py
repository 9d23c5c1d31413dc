"""How much a test does: as much as shows the thing, or with `manage.py test --full` the most that is promised."""

import os
from collections.abc import Sequence
from typing import TypeVar

Way = TypeVar("Way")

FULL = bool(os.environ.get("PROCESSION_TESTS_FULL"))
SOAK = FULL and bool(os.environ.get("PROCESSION_TESTS_SOAK"))
"""The sizes that docs/full-run.md has commands of their own for."""


def size(usual: int, full: int, soak: int | None = None) -> int:
    """Return how many things a test is to take.

    Args:
        usual: as few as show that it holds.
        full: as many as it must hold for.
        soak: as many as take longer than a full run may.
    """
    if SOAK and soak is not None:
        return soak
    return full if FULL else usual


def first_of(ways: Sequence[Way]) -> Sequence[Way]:
    """Return the ways in which a test is to do one thing: the first, or with `--full` all."""
    return ways[: size(1, full=len(ways))]
