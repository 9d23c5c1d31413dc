"""Notices that do not reach their recipients, of which no notice can tell."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from monitoring.attention.problems import Problem
from monitoring.queries.counts import FEW, Capped
from orchestrator.models import Notice

PATIENCE = timedelta(minutes=2)
"""The time for which a notice may fail to be delivered before it is a problem: mail servers restart."""

SHOWN = timedelta(days=1)
"""The time for which the console shows that a notice was given up."""


def untaken_notices(now: datetime) -> Problem | None:
    """Return the problem of notices that are tried again or were given up; None without any.

    Args:
        now: the time, by the clock of the database.
    """
    found = [*_rows(now)]
    if not found:
        return None
    names = tuple(sorted({recipient for recipient, _ in found}))
    since = min((begun for _, begun in found if begun), default=None)
    number = Capped.of(min(len(found), FEW), more=len(found) > FEW)
    return Problem("notices", number, since, names=names)


def _rows(now: datetime) -> Iterator[tuple[str, datetime | None]]:
    again: Any = Notice.objects.open().exclude(error="")
    again = again.filter(begun_at__lt=now - PATIENCE)
    for rows in (again, Notice.objects.given_up_since(now - SHOWN)):
        yield from rows.values_list("recipient", "begun_at")[: FEW + 1]
