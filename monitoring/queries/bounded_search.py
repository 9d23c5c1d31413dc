"""Bounded searches for rows by conditions without an index."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db.models import Q, QuerySet

SPARSE = 4
"""The rows that the first pass examines for each wanted match."""

SearchKey = TypeVar("SearchKey")


def first_matching(
    wanted: int,
    most: int,
    keys_behind: Callable[[SearchKey | None, int], list[SearchKey]],
    matching: Callable[[list[SearchKey], int], list[SearchKey]],
) -> tuple[list[SearchKey], SearchKey | None]:
    """Return the keys of the first matches, and the last key that was examined; None if the list has no more rows.

    A first pass examines a few rows, and a second pass the rest if the first found too few matches.

    Args:
        wanted: the number of matches to find.
        most: the maximum number of rows to examine.
        keys_behind: returns at most n keys of the list after the given key; None starts at the beginning.
        matching: returns at most n of the given keys that match, in the order of the list.
    """
    found: list[SearchKey] = []
    edge: SearchKey | None = None
    first = min(wanted * SPARSE, most)
    for number in (first, most - first):
        keys = keys_behind(edge, number)
        found += matching(keys, wanted - len(found))
        edge = keys[-1] if len(keys) == number else None
        if edge is None or len(found) >= wanted or first == most:
            break
    return found, edge


def bounded_search(
    rows: QuerySet[Any], unindexed: Q, place: Sequence[str], most: int
) -> tuple[QuerySet[Any], tuple[Any, ...] | None]:
    """Return the matches among the first rows of a list, unordered, and the place of the last row that it examined.

    The place is None if the list has fewer than `most` rows.

    Args:
        rows: the list in the order of an index.
        unindexed: the conditions without an index.
        place: the fields of a row's place in the list.
        most: the number of rows to examine.
    """
    some = rows.values("pk")[:most]
    found = rows.model._default_manager.filter(unindexed, pk__in=some)
    last = rows.values_list(*place)[most - 1 : most]
    return found, next(iter(last), None)
