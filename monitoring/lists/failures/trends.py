"""The trends of failure groups: the newest failures by hour or by day, and their versions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from monitoring.lists.failures.causes import open_of_cause
from monitoring.queries.counts import count_by, time_from_sql
from orchestrator.containers import group_by_key

NEWEST = 60
"""The number of newest failures of one group that are looked at."""

HOURS, DAYS = 24, 14


@dataclass(frozen=True)
class Trend:
    """The trend of a group's newest failures.

    Args:
        each: the number of failures in each hour or day; the last one is now.
        by_day: whether `each` has days.
        number: the number of failures that were looked at.
        versions: the versions of their definition.
    """

    each: Sequence[int]
    by_day: bool
    number: int
    versions: Sequence[int] = ()

    @property
    def part(self) -> bool:
        """Whether there may be more failures."""
        return self.number >= NEWEST


def trends(causes: Sequence[str]) -> dict[str, Trend]:
    """Return the trends of groups by cause."""
    version = F("instance__definition__version")
    parts = [open_of_cause(cause).annotate(version=version) for cause in causes]
    rows = count_by(parts, "fingerprint", "opened_at", "version", cap=NEWEST)
    found = group_by_key(
        (cause, (at, of_version, number))
        for cause, opened, of_version, number in rows
        if (at := time_from_sql(opened)) is not None
    )
    now = timezone.now()
    return {cause: _trend(its, now) for cause, its in found.items()}


def _trend(rows: Sequence[tuple[datetime, int | None, int]], now: datetime) -> Trend:
    by_day = min(at for at, _, _ in rows) < now - timedelta(hours=HOURS)
    unit, parts = (timedelta(days=1), DAYS) if by_day else (timedelta(hours=1), HOURS)
    each = [0] * parts
    for at, _, number in rows:
        ago = max((now - at) // unit, 0)  # the database's clock may be another
        if ago < parts:
            each[parts - 1 - ago] += number
    versions = sorted({version for _, version, _ in rows if version is not None})
    return Trend(each, by_day, sum(number for _, _, number in rows), versions)
