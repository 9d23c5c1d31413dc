"""The page of a process's messages, alone or beside those of other processes with its key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _

from monitoring.process.messages.message import (
    CHILDREN,
    COMMANDS,
    OUTSIDE,
    PARENT,
    FlowMessage,
    lane_of,
)
from monitoring.process.messages.sources import (
    FIRST,
    LOOKED_AT,
    Bound,
    ReadMessages,
    read_messages,
)
from monitoring.queries.processes import NOT_BY_INDEX, process_rows
from orchestrator.models import ProcessInstance

SHOWN = 100
"""The number of messages of a page."""

TOGETHER = 5
"""The maximum number of processes beside each other."""

OUTSIDERS = 3
"""The number of sources with their own lanes; further sources share one lane."""

OTHERS = f"{OUTSIDE}\N{HORIZONTAL ELLIPSIS}"

ORDER = {"start": 0, "event": 1, "command": 2, "answer": 3, "end": 4}
"""The order at one moment: a process starts before it issues, and issues before it ends."""

GAP = timedelta(minutes=1)
"""The time without a message above which the page says so."""


@dataclass(frozen=True)
class Lane:
    """A sender or receiver, and its place from the left, in thousandths of the width."""

    name: str
    label: str
    place: float
    process: ProcessInstance | None = None

    @property
    def said(self) -> str:
        """Its name for screen readers."""
        return self.label or self.name.removeprefix(OUTSIDE)


@dataclass(frozen=True)
class Arrow:
    """A message with the lanes of its arrow, and the time without a message before it."""

    message: FlowMessage
    sender: Lane
    receiver: Lane
    gap: timedelta | None = None

    @property
    def text_place(self) -> float:
        """The middle of the arrow."""
        return (self.sender.place + self.receiver.place) / 2

    @property
    def anchor(self) -> str:
        """The anchor of its text, which keeps the text on the page."""
        if self.text_place < 300:
            return "start"
        return "end" if self.text_place > 700 else "middle"

    @property
    def words_place(self) -> float:
        """The place of the text's anchor."""
        ends = sorted((self.sender.place, self.receiver.place))
        return {"start": ends[0] + 8, "end": ends[1] - 8}.get(
            self.anchor, self.text_place
        )

    @property
    def rightwards(self) -> bool:
        return self.sender.place < self.receiver.place


@dataclass(frozen=True)
class FlowPage:
    """A page of messages, the oldest first.

    Args:
        instance: the process of the page.
        lanes: from left to right.
        rows: the messages.
        older: the place of the page before; "" for none, and for several processes.
        cut: whether several processes have older messages.
        first: whether it has the newest messages.
        beside: the newest other processes with the same key.
        together: whether the page shows them too.
    """

    instance: ProcessInstance
    lanes: list[Lane]
    rows: list[Arrow]
    older: str
    cut: bool
    first: bool
    beside: list[ProcessInstance]
    together: bool


def flow_page(pk: UUID, before: str = "", *, together: bool = False) -> FlowPage:
    """Return a page of messages of one process, or the newest messages of all processes with its key.

    Raises:
        Http404: there is no such process.
    """
    instance = get_object_or_404(process_rows(data=False), pk=pk)
    beside = _beside(instance)
    together = together and bool(beside)
    place = None if together else Bound.parse(before)
    several = [instance, *beside] if together else [instance]
    several.sort(key=lambda process: process.started_at)
    parts = [read_messages(process, place) for process in several]
    messages, more = _newest(parts)
    older = str(_next_bound(messages, place)) if more and messages else ""
    lanes = _lanes(several, messages)
    return FlowPage(
        instance,
        [lane for lane in lanes.values() if lane.label],
        _rows(messages, lanes),
        "" if together else older,
        bool(together and older),
        place is None,
        beside,
        together,
    )


def _beside(instance: ProcessInstance) -> list[ProcessInstance]:
    """Return the newest other processes with the same key, among a limited number."""
    if not instance.correlation_key:
        return []
    same = ProcessInstance.objects.filter(correlation_key=instance.correlation_key)
    keys = same.order_by("correlation_key", "name").values("pk")[:LOOKED_AT]
    rows = process_rows(data=False).filter(pk__in=keys).exclude(pk=instance.pk)
    return list(rows.order_by(*NOT_BY_INDEX)[: TOGETHER - 1])


def _newest(parts: list[ReadMessages]) -> tuple[list[FlowMessage], bool]:
    """Return the newest of all messages read, oldest first, and whether there are older ones."""
    since = max(part.whole_since for part in parts)
    every = sorted(
        (message for part in parts for message in part.messages),
        key=lambda message: (message.after, ORDER[message.kind]),
    )
    whole = [message for message in every if message.after >= since]
    edge = whole[-SHOWN].after if len(whole) > SHOWN else since
    shown = [message for message in whole if message.after >= edge]
    return shown, since != FIRST or len(shown) < len(every)


def _next_bound(shown: list[FlowMessage], place: Bound | None) -> Bound:
    """Return the place at which the page before this one ends."""
    events = [message.event for message in shown if message.event is not None]
    issued = [message.revision for message in shown if message.kind == "command"]
    numbers = [revision for revision in issued if revision is not None]
    last = place or Bound(2**63 - 1, 2**31 - 1, shown[-1].after)
    return Bound(
        min(events, default=last.event),
        min(numbers, default=last.revision),
        shown[0].after,
    )


def _lanes(
    processes: list[ProcessInstance], messages: list[FlowMessage]
) -> dict[str, Lane]:
    """Return the lanes of these messages: sources, the parent, the processes, commands and sub-processes."""
    ends = [end for one in messages for end in (one.sender, one.receiver)]
    there = dict.fromkeys(ends)
    outside = [name for name in there if name.startswith(OUTSIDE)]
    shared = outside[OUTSIDERS:] if len(outside) > OUTSIDERS + 1 else []
    alone = [name for name in outside if name not in shared]
    every = {name: name.removeprefix(OUTSIDE) or _("unnamed") for name in alone}
    every |= {OTHERS: _("other sources")} if shared else {}
    every |= {PARENT: _("Part of")} if PARENT in there else {}
    known = {lane_of(one.pk): one for one in processes}
    every |= {name: one.name for name, one in known.items()}
    right = {COMMANDS: _("Commands"), CHILDREN: _("Sub-processes")}
    every |= {name: label for name, label in right.items() if name in there}
    width = 1_000 / len(every)
    lanes = {
        name: Lane(name, label, (number + 0.5) * width, known.get(name))
        for number, (name, label) in enumerate(every.items())
    }
    return lanes | {
        name: replace(lanes[OTHERS], name=name, label="") for name in shared
    }


def _rows(messages: Iterable[FlowMessage], lanes: dict[str, Lane]) -> list[Arrow]:
    """Return the messages as arrows, with one arrow for equal messages in a row."""
    found: list[Arrow] = []
    for message in messages:
        last: Any = found[-1] if found else None
        if last is not None and message.follows(last.message):
            one = replace(last.message, number=last.message.number + 1)
            found[-1] = replace(last, message=one)
            continue
        pause = message.at - last.message.at if last is not None else timedelta()
        gap = pause if pause >= GAP else None
        found.append(
            Arrow(message, lanes[message.sender], lanes[message.receiver], gap)
        )
    return found
