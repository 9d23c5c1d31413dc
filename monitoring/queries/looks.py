"""Looking for what no index finds: at a few rows first, and at the rest only where those show too few."""

from collections.abc import Iterator

SPARSE = 4
"""Rows that are looked at first for each that is wanted."""


def looks(wanted: int, most: int) -> Iterator[int]:
    """How many rows are looked at, and how many after those, to find so many; `most` in all."""
    soon = min(wanted * SPARSE, most)
    yield soon
    if most > soon:
        yield most - soon
