"""Many in parts, of which a statement takes one at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def chunks(many: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    """Yields them in their order, so many at a time."""
    for begin in range(0, len(many), size):
        yield many[begin : begin + size]
