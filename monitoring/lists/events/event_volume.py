"""The number of recent events by type, their outcomes, and their retention.

Up to `LOOKED_AT` events of each type are counted in each window. Of more, the chosen window has a sample of the most
frequent types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring.queries.activity import WINDOWS, window_word
from monitoring.queries.counts import (
    MARK,
    Capped,
    ForEach,
    count_by,
    count_rows,
    parse_time,
    text_column,
)
from monitoring.queries.distinct_values import distinct_values
from monitoring.queries.recent_rows import Estimate, RecentRows, recent_rows
from monitoring.queries.samples import part_index
from orchestrator import registry
from orchestrator.containers import group_by_key
from orchestrator.models import InboxEvent
from orchestrator.models.inbox_event import PROBLEMS
from orchestrator.retention import ALL_OTHERS, retention

LOOKED_AT = 5_000
"""The maximum number of events of one type to count one by one in a window."""

ESTIMATED = 8
"""The number of types with more events for which the chosen window is estimated, the most frequent."""

SHOWN, LEAST_SHOWN = 20_000, 1_000
"""The maximum number of events to read for the chosen window, and the minimum of one type."""

STORED_TYPES = 300
"""The maximum number of types of stored events to look at."""

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
        homeless: the number of events without a process, which are never removed.
    """

    window: str
    until: datetime
    types: list[TypeVolume]
    more: int
    homeless: Capped

    def windows(self) -> list[tuple[str, str]]:
        """Return each window with its label."""
        return [(name, window_word(name)) for name in WINDOWS]


def event_volume(window: str = "") -> EventVolume:
    """Return the types of events of the last week, and the types that the running code knows.

    Args:
        window: hour, day or week, for the verdicts and the line; anything else means day.
    """
    window, until = window if window in WINDOWS else "day", timezone.now()
    known = set(registry.event_types())
    stored = distinct_values(InboxEvent, "type", STORED_TYPES)
    every = sorted(known.union(stored))
    numbers = {name: _numbers(name, every) for name in WINDOWS}
    types = [one for one in every if one in known or numbers["week"][one]]

    def rank(name: str) -> tuple[int, int, str]:
        return -numbers[window][name].number, -numbers["week"][name].number, name

    shown, times = sorted(types, key=rank)[:TYPES], retention()
    most, estimated = max(SHOWN // max(len(shown), 1), LEAST_SHOWN), 0
    volumes = []
    for name in shown:
        received = {one: str(numbers[one][name]) for one in WINDOWS}
        read = RecentRows([])
        if (number := numbers[window][name]).at_least and estimated < ESTIMATED:
            read, estimated = _read(name, window, until, LOOKED_AT), estimated + 1
            received[window] = str(read.estimate(at for at, _verdict in read.rows))
        elif number:
            read = _newest(name, window, until, most)
        outcomes = _verdicts(read), *_lines(read, window, until)
        kept = list(_kept_texts(name, times))
        volumes.append(TypeVolume(name, name in known, received, *outcomes, kept))
    homeless = count_rows(InboxEvent.objects.filter(process=None).order_by())
    return EventVolume(window, until, volumes, len(types) - len(shown), homeless)


def _rows_of(window: str) -> QuerySet[InboxEvent]:
    """Return the events of one type in a window, along their index; `MARK` is the type."""
    since = Now() - WINDOWS[window]
    rows = InboxEvent.objects.filter(type=MARK, received_at__gte=since)
    return rows.order_by("type", "-received_at")


ROWS = {name: partial(_rows_of, name) for name in WINDOWS}


def _numbers(window: str, types: Sequence[str]) -> dict[str, Estimate]:
    """Return the number of events of each type in a window, up to `LOOKED_AT`."""
    rows = ForEach(ROWS[window], types, alike=True)
    found = dict.fromkeys(types, Estimate())
    for name, number in count_by(rows, "type", cap=LOOKED_AT + 1):
        more = number > LOOKED_AT
        found[name] = Estimate(min(number, LOOKED_AT), at_least=more)
    return found


def _told(name: str) -> QuerySet[InboxEvent, tuple[str, str]]:
    """Return when each event of a type was received, and its verdict, the newest first."""
    rows = InboxEvent.objects.filter(type=name).order_by("type", "-received_at")
    at: Any = rows.annotate(at=text_column("received_at"))
    found: QuerySet[InboxEvent, tuple[str, str]] = at.values_list("at", "verdict")
    return found


def _read(name: str, window: str, until: datetime, most: int) -> RecentRows:
    """Read the events of a type, or a sample of them."""
    ends, parts = (until - WINDOWS[window], until), 2 * PARTS[window]
    return recent_rows(_told(name), "received_at", ends, most, parts=parts)


def _newest(name: str, window: str, until: datetime, most: int) -> RecentRows:
    """Read the newest events of a type."""
    rows = _told(name).filter(received_at__gte=until - WINDOWS[window])
    found = list(rows[: most + 1])
    return RecentRows(found[:most], more=len(found) > most)


def _verdicts(read: RecentRows) -> list[tuple[str, str]]:
    """Return the verdicts with their numbers, the most frequent first."""
    times = group_by_key((verdict, at) for at, verdict in read.rows)
    by_number = sorted(times, key=lambda verdict: -len(times[verdict]))
    return [(one, str(read.estimate(times[one]))) for one in by_number]


def _lines(
    read: RecentRows, window: str, until: datetime
) -> tuple[list[int], list[int]]:
    """Return the number of events at each point of the line, and of those that no process took."""
    if read.more:  # the newest alone would look like a rise
        return [], []
    problems = [at for at, verdict in read.rows if verdict in PROBLEMS]
    every = [at for at, _verdict in read.rows]
    return _count_parts(window, until, every), _count_parts(window, until, problems)


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
