"""Looking for what no index finds: at a few rows first, and at the rest only where those show too few."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from django.db.models import Q, QuerySet

SPARSE = 4
"""Rows that are looked at first for each that is wanted."""

Key = TypeVar("Key")


def first_matching(
    wanted: int,
    most: int,
    keys_behind: Callable[[Key | None, int], list[Key]],
    matching: Callable[[list[Key], int], list[Key]],
) -> tuple[list[Key], Key | None]:
    """The keys of the first rows that match, and the key at which the looking stopped; None when all were looked at.

    Args:
        wanted: how many are looked for.
        most: at how many rows is looked.
        keys_behind: gives so many keys of the list that follow a key of it, or that begin it.
        matching: gives those among some keys that match, in the order of the list and no more than so many.
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


def bounded(
    rows: QuerySet[Any], looked_for: Q, place: Sequence[str], most: int
) -> tuple[QuerySet[Any], tuple[Any, ...] | None]:
    """Those of the first rows of a list that match, in no order, and the place at which the looking stopped.

    Args:
        rows: the list, as an index has it.
        looked_for: what else must be so of them; it is asked of so many at once.
        place: the fields that say where a row stands in it.
        most: at how many rows is looked.
    """
    some = rows.values("pk")[:most]
    found = rows.model._default_manager.filter(looked_for, pk__in=some)
    last = rows.values_list(*place)[most - 1 : most]
    return found, next(iter(last), None)
