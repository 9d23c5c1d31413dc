"""Bounded searches for rows by conditions without an index."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db.models import Q, QuerySet

SPARSE = 4
"""The number of rows of the first look for each wanted row."""

Key = TypeVar("Key")


def first_matching(
    wanted: int,
    most: int,
    keys_behind: Callable[[Key | None, int], list[Key]],
    matching: Callable[[list[Key], int], list[Key]],
) -> tuple[list[Key], Key | None]:
    """Return the keys of the first rows that match, and the key at which the search stopped; None after all rows.

    It looks at a few rows first, and at the rest if the few have too few matches.

    Args:
        wanted: the number of matches to find.
        most: the maximum number of rows to look at.
        keys_behind: returns a number of keys of the list after a key, or its first keys for None.
        matching: returns the first keys among some that match, in the order of the list, up to a number.
    """
    found: list[Key] = []
    edge: Key | None = None
    soon = min(wanted * SPARSE, most)
    for many in (soon, most - soon):
        keys = keys_behind(edge, many)
        found += matching(keys, wanted - len(found))
        edge = keys[-1] if len(keys) == many else None
        if edge is None or len(found) >= wanted or soon == most:
            break
    return found, edge


def bounded_search(
    rows: QuerySet[Any], unindexed: Q, place: Sequence[str], most: int
) -> tuple[QuerySet[Any], tuple[Any, ...] | None]:
    """Return the matches among the first rows of a list, unordered, and the place at which the search stopped.

    Args:
        rows: the list in the order of an index.
        unindexed: the conditions without an index.
        place: the fields of a row's place in the list.
        most: the number of rows to look at.
    """
    some = rows.values("pk")[:most]
    found = rows.model._default_manager.filter(unindexed, pk__in=some)
    last = rows.values_list(*place)[most - 1 : most]
    return found, next(iter(last), None)
