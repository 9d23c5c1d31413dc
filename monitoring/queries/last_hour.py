"""What the last hour was like, minute by minute: transitions, processes that ended, and failures, of each definition.

Up to `LOOKED_AT` transitions are counted each; of more one in so many is looked at and stands for the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from monitoring.queries.counts import as_text, time_of
from monitoring.queries.failures import names_of
from monitoring.queries.lately import transitions_since
from orchestrator.models import Incident
from orchestrator.models.process_instance import ENDED

MINUTES = 60

HOUR = timedelta(minutes=MINUTES)

LOOKED_AT = 1_800
"""Transitions that are looked at."""

FAILURES = 1_000
"""The newest failures, which are looked at each."""


@dataclass
class Minutes:
    """How much there was in each minute of the hour, the oldest first.

    Args:
        each: one number a minute.
        about: whether those looked at stand for others.
        at_least: whether there may be more.
    """

    each: list[int] = field(default_factory=lambda: [0] * MINUTES)
    about: bool = False
    at_least: bool = False

    @classmethod
    def together(cls, some: Collection[Minutes]) -> Minutes:
        """The sums of several."""
        return cls(
            [sum(numbers) for numbers in zip(*(one.each for one in some), strict=True)]
            or [0] * MINUTES,
            about=any(one.about for one in some),
            at_least=any(one.at_least for one in some),
        )

    @property
    def number(self) -> int:
        return sum(self.each)

    @property
    def most(self) -> int:
        return max(self.each)

    @property
    def now(self) -> str:
        """In the last whole minute."""
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

    @classmethod
    def together(cls, hours: Collection[Hour]) -> Hour:
        """That of several definitions."""
        return cls(
            Minutes.together([hour.transitions for hour in hours]),
            Minutes.together([hour.ended for hour in hours]),
            Minutes.together([hour.failures for hour in hours]),
        )


@dataclass(frozen=True)
class LastHour:
    """The hour in all and by the names of definitions, and when it ended."""

    until: datetime
    in_all: Hour
    by_definition: dict[str, Hour]

    def of(self, names: Iterable[str]) -> LastHour:
        """The same of some definitions alone."""
        some = {name: self.by_definition.get(name, Hour()) for name in names}
        return LastHour(self.until, Hour.together(some.values()), some)


def last_hour(until: datetime) -> LastHour:
    """The hour before a moment: three looks along primary keys, however many transitions there were."""
    moved, every = _transitions(until)
    failed, capped = _failures(until)
    hours: dict[str, Hour] = defaultdict(Hour)
    for name, minute, ended in moved:
        for hour in (hours[""], hours[name]):
            hour.transitions.each[minute] += every
            hour.ended.each[minute] += every * ended
    for name, minute in failed:
        for hour in (hours[""], *([hours[name]] if name else [])):
            hour.failures.each[minute] += 1
    for hour in hours.values():
        hour.transitions.about = hour.ended.about = every > 1
        hour.failures.at_least = capped
    in_all = hours.pop("", Hour())
    return LastHour(until, in_all, dict(hours))


def _transitions(until: datetime) -> tuple[list[tuple[str, int, bool]], int]:
    """Transitions of the hour with name, minute and whether they ended their process; and for how many each stands."""
    found, every = transitions_since(until - HOUR, LOOKED_AT)
    given = found.values_list("instance__name", as_text("at"), "status")
    moved = [
        (name, _minute(time_of(at), until), status in ENDED)
        for name, at, status in given[:LOOKED_AT]
    ]
    return moved, every


def _failures(until: datetime) -> tuple[list[tuple[str, int]], bool]:
    """The newest failures with name and minute, and whether there may be more in the hour."""
    newest = Incident.objects.order_by("-pk")
    rows = newest.values_list("fingerprint", "pk", as_text("opened_at"))[:FAILURES]
    told = ((cause, key, time_of(at)) for cause, key, at in rows)
    found = [(cause, key, at) for cause, key, at in told if at >= until - HOUR]
    one_of = {cause: key for cause, key, _ in found}
    names = names_of(one_of.values())
    named = [
        (names.get(one_of[cause]) or "", _minute(at, until)) for cause, _, at in found
    ]
    return named, len(named) >= FAILURES


def _minute(at: datetime, until: datetime) -> int:
    """Which minute of the hour, 0 being the oldest."""
    ago = int((until - at).total_seconds() // 60)
    return MINUTES - 1 - min(max(ago, 0), MINUTES - 1)
