"""What the steps have done, in another app's table, groups of users: it outlives any worker."""

import time
from collections import Counter
from uuid import uuid4

from django.contrib.auth.models import Group


def note(entry: str) -> None:
    """Add a line, in a commit of its own unless a transaction is open."""
    Group.objects.create(name=f"{entry} #{uuid4().hex}")


def noted() -> Counter[str]:
    """Return how often each line was added."""
    names = Group.objects.values_list("name", flat=True)
    return Counter(name.rpartition(" #")[0] for name in names)


def begin(label: str) -> None:
    """Note that something begins, with the machine's monotonic time."""
    note(f"{label} +1 {time.monotonic():.6f}")


def end(label: str) -> None:
    """Note that something ends."""
    note(f"{label} -1 {time.monotonic():.6f}")


def most_at_once(label: str) -> int:
    """Return how many of these things went on at one time at most."""
    lines = [line.rsplit(" ", 2) for line in noted() if line.startswith(f"{label} ")]
    now = most = 0
    for _, change, _ in sorted(lines, key=lambda words: (float(words[2]), words[1])):
        now += int(change)
        most = max(most, now)
    return most
