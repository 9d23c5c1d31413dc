"""The parts that run processes, with their states, for the first page."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from monitoring.attention.board import Board
from monitoring.probes.machinery import Machinery, ServedQueue
from monitoring.probes.pulse import Beat

ICONS = {"well": "done", "bad": "failed", "late": "escalated", "unknown": "not_taken"}


@dataclass(frozen=True)
class RunningPart:
    """One part and its state.

    Args:
        name: in the page.
        word: for people.
        state: "well", "late" when it only slows work down, "bad", or "unknown".
        says: the state in words.
        at: the moment that the words end with.
        queue: the queue's name, if it is one.
    """

    name: str
    word: str
    state: str
    says: str
    at: datetime | None = None
    queue: str = ""

    @property
    def icon(self) -> str:
        return ICONS[self.state]


def running_parts(board: Board, machinery: Machinery) -> list[RunningPart]:
    """Return all parts: queues, workers, due work, sweep, database, Redis and channel layer."""
    return [
        *(_queue(queue, board.checked_at) for queue in machinery.queues),
        *_workers(machinery),
        RunningPart(
            "database", _("database"), "well", _milliseconds(machinery.milliseconds)
        ),
        _beat("redis", _("Redis"), board.redis),
        _beat("live", _("live pages"), board.live),
    ]


def _queue(queue: ServedQueue, now: datetime) -> RunningPart:
    number = queue.workers
    served = ngettext("%(number)s worker", "%(number)s workers", number)
    workers = served % {"number": number} if number else _("no worker")
    due = _("%(number)s due") % {"number": queue.due} if queue.due else _("nothing due")
    state = "well" if queue.workers else "unknown"
    state = "bad" if queue.unserved else "late" if queue.late(now) else state
    said = f"{workers} · {due}" + (f", {_('the oldest')}" if queue.oldest else "")
    name = f"queue-{queue.name}"
    return RunningPart(name, _("queue"), state, said, queue.oldest, queue.name)


def _workers(machinery: Machinery) -> Iterator[RunningPart]:
    alive, silent = machinery.workers, machinery.silent
    said = ngettext("%(number)s lives", "%(number)s live", alive) % {"number": alive}
    if silent:
        said += " · " + _("%(number)s silent") % {"number": silent}
    if machinery.seen_at:
        said += f" · {_('heartbeat')}"
    state = "bad" if not alive else "late" if silent else "well"
    yield RunningPart("workers", _("workers"), state, said, machinery.seen_at)
    late = any(queue.late(machinery.now) for queue in machinery.queues)
    due = "" if machinery.oldest else _("nothing due")
    state = "late" if late else "well"
    yield RunningPart("due", _("oldest due work"), state, due, machinery.oldest)
    swept = machinery.swept_at
    state = "unknown" if swept is None else "bad" if machinery.unswept else "well"
    said = _("no sweep yet") if swept is None else ""
    yield RunningPart("sweep", _("sweep"), state, said, swept)


def _beat(name: str, word: Any, beat: Beat) -> RunningPart:
    if beat.up is None:
        return RunningPart(name, word, "unknown", _("no answer yet"))
    if not beat.up:
        return RunningPart(name, word, "bad", _("silent, noticed"), beat.since)
    return RunningPart(name, word, "well", _milliseconds(beat.milliseconds))


def _milliseconds(number: float) -> str:
    return f"{number:.1f} ms"
