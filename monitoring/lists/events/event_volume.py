"""The number of recent events by type, their outcomes, and their retention.

It reads a sample along keys for the last hour, day and week; a small window is read whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring.queries.activity import WINDOWS, window_word
from monitoring.queries.counts import (
    Capped,
    count_rows,
    parse_time,
    short_number,
    text_column,
)
from monitoring.queries.samples import part_index, sample_since
from orchestrator import registry
from orchestrator.containers import group_by_key
from orchestrator.models import InboxEvent
from orchestrator.models.inbox_event import PROBLEMS
from orchestrator.retention import ALL_OTHERS, retention

LOOKED_AT = 1_000
"""The size of the sample for each window."""

TYPES = 100
"""Types that the page shows."""

NAMES = 3
"""Definitions that one retention text names."""

PARTS = {"hour": 30, "day": 24, "week": 28}
"""The number of points of a window's line."""


@dataclass(frozen=True)
class TypeVolume:
    """One type of events; numbers are texts, with ≈ for an estimate from a sample.

    Args:
        type: its name.
        known: whether the running code knows it.
        received: the number of received events by window.
        verdicts: the verdicts in the chosen window with their numbers, the most frequent first.
        each: the number of events at each point of the line, the oldest first.
        problems: the number of these that no process took.
        kept: the retention in words.
    """

    type: str
    known: bool
    received: dict[str, str]
    verdicts: list[tuple[str, str]]
    each: list[int]
    problems: list[int]
    kept: list[str]


@dataclass(frozen=True)
class EventVolume:
    """All types, the most frequent first.

    Args:
        window: the chosen window.
        until: when the windows end.
        types: the rows of the table.
        more: the number of further types.
        every: the number of events that each event of the sample stands for, by window.
        homeless: the number of events without a process, which are never removed.
    """

    window: str
    until: datetime
    types: list[TypeVolume]
    more: int
    every: dict[str, int]
    homeless: Capped

    def windows(self) -> list[tuple[str, str]]:
        """Return each window with its label."""
        return [(name, window_word(name)) for name in WINDOWS]


def event_volume(window: str = "") -> EventVolume:
    """Return the types of events of the last week, and the types that the running code knows.

    Args:
        window: hour, day or week, for the verdicts and the line; anything else means day.
    """
    sample = _EventSample(window if window in WINDOWS else "day", timezone.now())
    known = set(registry.event_types())
    names = known.union(*sample.numbers.values())
    times = retention()
    types = [
        sample.volume(one, one in known, times)
        for one in sorted(names, key=sample.rank)[:TYPES]
    ]
    homeless = count_rows(InboxEvent.objects.filter(process=None).order_by())
    more = len(names) - len(types)
    return EventVolume(sample.window, sample.until, types, more, sample.every, homeless)


class _EventSample:
    """A sample of the events of each window: their types, and verdicts and times in the chosen window."""

    def __init__(self, window: str, until: datetime) -> None:
        self.window, self.until = window, until
        self.seen: dict[str, list[tuple[str, str]]] = {}
        self.every: dict[str, int] = {}
        self.numbers: dict[str, Counter[str]] = {}
        for name, length in WINDOWS.items():
            rows, self.every[name] = sample_since(
                InboxEvent, "received_at", until - length, LOOKED_AT
            )
            if name == window:
                columns = "type", "verdict", text_column("received_at")
                found = rows.values_list(*columns)[:LOOKED_AT]
                self.seen = group_by_key((type_, (how, at)) for type_, how, at in found)
                each = {type_: len(its) for type_, its in self.seen.items()}
                self.numbers[name] = Counter(each)
            else:
                types = rows.values_list("type", flat=True)[:LOOKED_AT]
                self.numbers[name] = Counter(types)

    def rank(self, name: str) -> tuple[int, int, str]:
        """Return the sort key of a type; the most frequent type has the lowest."""
        chosen, week = (
            self.numbers[w][name] * self.every[w] for w in (self.window, "week")
        )
        return -chosen, -week, name

    def volume(
        self, name: str, known: bool, times: Mapping[str, timedelta | None]
    ) -> TypeVolume:
        seen, window, until = self.seen[name], self.window, self.until
        verdicts = Counter(verdict for verdict, _at in seen).most_common()
        return TypeVolume(
            name,
            known,
            {one: _about(self.numbers[one][name], self.every[one]) for one in WINDOWS},
            [(verdict, _about(n, self.every[window])) for verdict, n in verdicts],
            _count_parts(window, until, [at for _verdict, at in seen]),
            _count_parts(window, until, [at for v, at in seen if v in PROBLEMS]),
            list(_kept_texts(name, times)),
        )


def _about(number: int, every: int) -> str:
    return f"{'≈' if every > 1 else ''}{short_number(number * every)}"


def _count_parts(window: str, until: datetime, times: list[str]) -> list[int]:
    """Return the number of events in each part of a window, the oldest first."""
    found = [0] * PARTS[window]
    for at in times:
        found[part_index(parse_time(at), until, WINDOWS[window], len(found))] += 1
    return found


def _kept_texts(type_: str, times: Mapping[str, timedelta | None]) -> Iterator[str]:
    """Say how long events of a type are kept: a process's events are removed with it, others never."""
    interested = [one.name for one in registry.receivers(type_)]
    handled = bool(registry.reactions.get(type_))
    usual = times.get(ALL_OTHERS)
    if not interested and not handled:
        yield _kept_text([], usual)
    by_time = group_by_key((times.get(one, usual), one) for one in interested)
    for time, names in by_time.items():
        yield _kept_text(names, time)
    if handled:
        yield _("without a limit where an event handler took it")


def _kept_text(names: list[str], time: timedelta | None) -> str:
    """Say how long the events of some definitions are kept; without names, of all processes."""
    if time is None:
        text = (
            _("without a limit with %(definitions)s") if names else _("without a limit")
        )
    elif names:
        text = _("%(days)s days after the end of %(definitions)s")
    else:
        text = _("%(days)s days after the end of its process")
    more = " …" if len(names) > NAMES else ""
    return text % {
        "definitions": ", ".join(names[:NAMES]) + more,
        "days": f"{time.days:,}" if time else "",
    }
