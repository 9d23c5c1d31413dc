"""A sample of the rows of a table since a moment, without an index on time, since keys grow with time.

A binary search finds the first row. A sample has all of few rows, or one row in two, four, eight and so on.
"""

from datetime import datetime, timedelta

from django.db.models import QuerySet

from monitoring.queries.any_of import any_of
from monitoring.queries.keys_by_time import keys_since
from monitoring.queries.lists import OneModel


def sample_since(
    model: type[OneModel], field: str, since: datetime, most: int
) -> tuple[QuerySet[OneModel], int]:
    """Return a sample of the rows since a moment, and the number of rows that each stands for.

    The sample takes a pseudo-random key of each range, since events of two types may alternate. Each call takes the
    same keys, so that estimates are stable.

    Args:
        model: the table; its key is a number.
        field: the time of writing.
        since: the moment.
        most: the approximate maximum number of rows.
    """
    first, last = keys_since(model, field, since)
    every = 1
    while (last - first) // every >= most:
        every *= 2
    rows = model._default_manager.order_by()
    if every == 1:
        return rows.filter(pk__gte=first), every
    stretches = range(first // every, last // every + 1)
    some = (at * every + _pseudo_random(at) % every for at in stretches)
    keys = (key for key in some if first <= key <= last)
    return rows.filter(any_of("pk", keys)), every


def part_index(at: datetime, until: datetime, length: timedelta, parts: int) -> int:
    """Return the index of the part of a time span with a moment, 0 for the oldest part; an end part for others.

    Args:
        at: the moment.
        until: when the span ends.
        length: the length of the span.
        parts: the number of parts.
    """
    ago = (until - at) * parts // length
    return parts - 1 - min(max(ago, 0), parts - 1)


def _pseudo_random(number: int) -> int:
    """Return a pseudo-random number for a number, by the multiples of the golden ratio."""
    return number * 0x9E3779B97F4A7C15 >> 24
