"""The transitions, ended processes and failures of each definition in each minute of the last hour.

It counts up to `LOOKED_AT` transitions, or a sample of more.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db.models import BooleanField, ExpressionWrapper

from monitoring.lists.failures.failures import definition_names
from monitoring.queries.counts import parse_time, text_column
from monitoring.queries.samples import part_index, sample_since
from orchestrator.models import Checkpoint, Incident
from orchestrator.models.incident import ABOUT_EVENTS
from orchestrator.models.process_instance import ENDED

MINUTES = 60

HOUR = timedelta(minutes=MINUTES)

LOOKED_AT = 1_800
"""The maximum size of the sample of transitions."""

FAILURES = 1_000
"""The maximum number of failures to count, the newest ones."""


@dataclass
class Minutes:
    """Numbers for each minute of the hour, the oldest first.

    Args:
        each: a number for each minute.
        about: whether they are estimated from a sample.
        at_least: whether there may be more.
    """

    each: list[int] = field(default_factory=lambda: [0] * MINUTES)
    about: bool = False
    at_least: bool = False

    @property
    def number(self) -> int:
        return sum(self.each)

    @property
    def most(self) -> int:
        return max(self.each)

    @property
    def now(self) -> str:
        """The number of the last whole minute."""
        return self._said(self.each[-2])

    def __str__(self) -> str:
        return self._said(self.number)

    def _said(self, number: int) -> str:
        return f"{'≈' if self.about else ''}{number:,}{'+' if self.at_least else ''}"


@dataclass(frozen=True)
class Hour:
    """The last hour of everything, or of one definition."""

    transitions: Minutes = field(default_factory=Minutes)
    ended: Minutes = field(default_factory=Minutes)
    failures: Minutes = field(default_factory=Minutes)


def last_hour(until: datetime, names: Container[str] | None = None) -> dict[str, Hour]:
    """Return the hour before a moment by definition name; the name "" has the hour of all definitions.

    It takes three queries along primary keys, for any number of transitions.

    Args:
        until: the moment.
        names: the definitions to count; None for all, and for failures without a process.
    """
    moved, every = _transitions(until)
    failed, capped = _failures(until)
    hours: dict[str, Hour] = defaultdict(Hour, {"": Hour()})
    for name, minute, ended in moved:
        if names is None or name in names:
            for hour in (hours[""], hours[name]):
                hour.transitions.each[minute] += every
                hour.ended.each[minute] += every * ended
    for name, minute in failed:
        if names is None or name in names:
            for key in {"", name}:
                hours[key].failures.each[minute] += 1
    for hour in hours.values():
        hour.transitions.about = hour.ended.about = every > 1
        hour.failures.at_least = capped
    return dict(hours)


def _transitions(until: datetime) -> tuple[list[tuple[str, int, bool]], int]:
    """Return name, minute and end of process for each transition of the sample, and the factor of the sample."""
    found, every = sample_since(Checkpoint, "at", until - HOUR, LOOKED_AT)
    given = found.values_list("instance__name", text_column("at"), "status")
    moved = [
        (name, part_index(parse_time(at), until, HOUR, MINUTES), status in ENDED)
        for name, at, status in given[:LOOKED_AT]
    ]
    return moved, every


def _failures(until: datetime) -> tuple[list[tuple[str, int]], bool]:
    """Return the newest failures as name and minute, and whether the hour may have more."""
    about_event = ExpressionWrapper(ABOUT_EVENTS, BooleanField())
    newest = Incident.objects.annotate(about_event=about_event).order_by("-pk")
    rows = newest.values_list(
        "fingerprint", "pk", text_column("opened_at"), "about_event"
    )[:FAILURES]
    told = ((cause, key, parse_time(at), of_event) for cause, key, at, of_event in rows)
    looked_at = [row for row in told if row[2] >= until - HOUR]
    found = [(cause, key, at) for cause, key, at, of_event in looked_at if not of_event]
    one_of = {cause: key for cause, key, _ in found}
    names = definition_names(one_of.values())
    named = [
        (names.get(one_of[cause]) or "", part_index(at, until, HOUR, MINUTES))
        for cause, _, at in found
    ]
    return named, len(looked_at) >= FAILURES
