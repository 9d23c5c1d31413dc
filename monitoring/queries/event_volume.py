"""How many events of each type were received lately, what became of them, and how long they are kept.

Three looks along keys, for the last hour, day and week: each event while there are few, one in so many of more.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import TextField
from django.db.models.functions import Cast
from django.utils import timezone
from django.utils.translation import gettext as _

from monitoring.queries.counts import Capped, capped, moment, short
from monitoring.queries.doing import WINDOWS, window_word
from monitoring.queries.lately import events_since
from orchestrator import registry
from orchestrator.collecting import gathered
from orchestrator.models import InboxEvent
from orchestrator.models.inbox_event import PROBLEMS
from orchestrator.retention import ALL_OTHERS, retention

LOOKED_AT = 1_000
"""Events that are looked at for each window."""

TYPES = 100
"""Types that are told of."""

NAMES = 3
"""Definitions that are named where many keep a type for as long."""

PARTS = {"hour": 30, "day": 24, "week": 28}
"""Into how many parts the line over a window is cut."""

Seen = list[tuple[str, str, str]]
"""Type, verdict, and when it was received, as the database writes it."""


@dataclass(frozen=True)
class TypeVolume:
    """One type of events; numbers are texts, with ≈ where those looked at stand for others.

    Args:
        type: its name.
        known: whether anything in the running code knows it.
        received: how many were received in each window, by its name.
        verdicts: what became of those of the chosen window, the most frequent first.
        each: how many there were in each part of it, the oldest first.
        problems: how many of these nothing took.
        kept: for how long, in words.
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
    """All types, those with the most events first.

    Args:
        window: the chosen one.
        until: when the windows end.
        types: one row each.
        more: how many further types there are.
        every: for how many each event stands that was looked at, by window.
        homeless: how many belong to no process, and so are never removed.
    """

    window: str
    until: datetime
    types: list[TypeVolume]
    more: int
    every: dict[str, int]
    homeless: Capped

    def windows(self) -> list[tuple[str, str]]:
        """Each window with its word."""
        return [(name, window_word(name)) for name in WINDOWS]


def event_volume(window: str = "") -> EventVolume:
    """The types of events that were received in the last week, and those that the running code knows.

    Args:
        window: hour, day or week: of which the verdicts and the line are; day if it is none of these.
    """
    window, now = window if window in WINDOWS else "day", timezone.now()
    seen: Seen = []
    every: dict[str, int] = {}
    numbers: dict[str, Counter[str]] = {}
    for name, length in WINDOWS.items():
        rows, every[name] = events_since(now - length, LOOKED_AT)
        if name == window:
            # As text, which is read in a tenth of the time.
            columns = "type", "verdict", Cast("received_at", TextField())
            seen = list(rows.values_list(*columns)[:LOOKED_AT])
            numbers[name] = Counter(one for one, _v, _a in seen)
        else:
            numbers[name] = Counter(rows.values_list("type", flat=True)[:LOOKED_AT])
    known = set(registry.event_types())
    names = known.union(*numbers.values())

    def most(name: str) -> tuple[int, int, str]:
        in_week = numbers["week"][name] * every["week"]
        return -numbers[window][name] * every[window], -in_week, name

    ordered, kept = sorted(names, key=most), Keeping()
    shown = set(ordered[:TYPES])
    parts = _in_parts(seen, shown, window, now)
    types = []
    for one in ordered[:TYPES]:
        verdicts, each, problems = parts[one]
        types.append(
            TypeVolume(
                one,
                one in known,
                {name: _said(numbers[name][one], every[name]) for name in WINDOWS},
                [
                    (verdict, _said(number, every[window]))
                    for verdict, number in verdicts.most_common()
                ],
                each,
                problems,
                list(kept.of(one)),
            )
        )
    homeless = capped(InboxEvent.objects.filter(process=None).order_by())
    return EventVolume(window, now, types, len(names) - len(types), every, homeless)


def _said(number: int, every: int) -> str:
    return f"{'≈' if every > 1 else ''}{short(number * every)}"


Parts = tuple[Counter[str], list[int], list[int]]


def _in_parts(
    seen: Seen,
    types: set[str],
    window: str,
    until: datetime,
) -> dict[str, Parts]:
    """By type: verdicts, and how many there were in each part of the window, in all and of those nothing took."""
    parts, length = PARTS[window], WINDOWS[window]
    found: dict[str, Parts] = defaultdict(lambda: (Counter(), [0] * parts, [0] * parts))
    for type_, verdict, at in seen:
        if type_ in types:
            verdicts, each, problems = found[type_]
            verdicts[verdict] += 1
            received_at = moment(at) or until
            ago = int((until - received_at) / length * parts)
            place = parts - 1 - min(max(ago, 0), parts - 1)
            each[place] += 1
            problems[place] += verdict in PROBLEMS
    return found


class Keeping:
    """How long events are kept: those of a process go with it, and others never."""

    def __init__(self) -> None:
        self._times = retention()

    def of(self, type_: str) -> Iterator[str]:
        """What is so of the events of a type, in words."""
        interested = [one.name for one in registry.interested(type_)]
        handled = bool(registry.reactions.get(type_))
        if not interested and not handled:
            yield self._of_processes(self._times.get(ALL_OTHERS))
        usual = self._times.get(ALL_OTHERS)
        by_time = gathered((self._times.get(one, usual), one) for one in interested)
        for time, names in by_time.items():
            yield self._of_definitions(names, time)
        if handled:
            yield _("for ever where an event handler took it")

    def _of_definitions(self, names: list[str], time: timedelta | None) -> str:
        said = {"definitions": ", ".join(names[:NAMES])}
        if len(names) > NAMES:
            said["definitions"] += " …"
        if time is None:
            return _("for ever with %(definitions)s") % said
        return _("%(days)s days after the end of %(definitions)s") % {
            **said,
            "days": f"{time.days:,}",
        }

    def _of_processes(self, time: timedelta | None) -> str:
        if time is None:
            return _("for ever")
        return _("%(days)s days after the end of its process") % {
            "days": f"{time.days:,}"
        }
