"""The transitions and events since a moment, without an index on time: keys are given out in the order of time.

The first one is found by halving, and of those since then one in so many is looked at that no more than wanted are.
What was looked at stands for the others; below that number every one is.
"""

from datetime import datetime

from django.db.models import QuerySet

from monitoring.queries.among import among
from monitoring.queries.keys_by_time import keys_since
from orchestrator.models import Checkpoint, InboxEvent


def transitions_since(since: datetime, most: int) -> tuple[QuerySet[Checkpoint], int]:
    """Transitions since then, at most so many, and for how many each of them stands."""
    first, last = keys_since(Checkpoint, "at", since)
    every = 1
    while (last - first) // every >= most:
        every *= 2
    rows = Checkpoint.objects.order_by()
    # The same ones whenever they are looked at, so that no number wavers.
    keys = range(first - first % -every, last + 1, every)
    found = rows.filter(among("pk", keys)) if every > 1 else rows.filter(pk__gte=first)
    return found, every


def events_since(since: datetime, most: int) -> tuple[QuerySet[InboxEvent], int]:
    """Events received since then, at most so many, and for how many each of them stands.

    Of each stretch of keys any one, which is always the same: events come in turn, so that every second one of them
    may be of the same type.
    """
    first, last = keys_since(InboxEvent, "received_at", since)
    every = 1
    while (last - first) // every + 1 >= most:
        every *= 2
    rows = InboxEvent.objects.order_by()
    if every == 1:
        return rows.filter(pk__gte=first), every
    stretches = range(first // every, last // every + 1)
    some = (at * every + _any_of(at) % every for at in stretches)
    keys = (key for key in some if first <= key <= last)
    return rows.filter(among("pk", keys)), every


def _any_of(number: int) -> int:
    """A number without any order, the same for the same one: by the multiples of the golden ratio."""
    return number * 0x9E3779B97F4A7C15 >> 24
