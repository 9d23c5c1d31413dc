"""How failures of one cause have come: the newest of them by hour or by day, and of which versions they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F
from django.utils import timezone

from monitoring.queries.causes import open_of_cause
from monitoring.queries.counts import grouped, moment
from orchestrator.collecting import gathered

NEWEST = 60
"""Failures of one group that are looked at: of many groups there are many."""

HOURS, DAYS = 24, 14


@dataclass(frozen=True)
class Trend:
    """How the newest failures of a group have come.

    Args:
        each: how many in each hour or day, the last one that of now.
        by_day: whether they are days.
        number: how many were looked at.
        versions: of the definition that they are of.
    """

    each: Sequence[int]
    by_day: bool
    number: int
    versions: Sequence[int] = ()

    @property
    def part(self) -> bool:
        """Whether there may be others, which were not looked at."""
        return self.number >= NEWEST


def trends(causes: Sequence[str]) -> dict[str, Trend]:
    """The trends of groups, by their cause."""
    version = F("instance__definition__version")
    parts = [open_of_cause(cause).annotate(version=version) for cause in causes]
    rows = grouped(parts, "fingerprint", "opened_at", "version", cap=NEWEST)
    found = gathered(
        (cause, (at, of_version, number))
        for cause, opened, of_version, number in rows
        if (at := moment(opened)) is not None
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
