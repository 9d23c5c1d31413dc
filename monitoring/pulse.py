"""Whether what answers over the network answers now: pages say so, and do not wait for what is silent."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from django.utils import timezone

from monitoring.asking import Asked
from monitoring.watchers import layer_answers
from orchestrator.setup_status import redis_answers

WAIT = 0.2
"""Seconds that a page waits for an answer; after that it says what was known before."""

AGAIN = 1.0
"""Seconds for which an answer counts."""

SILENT = 2.0
"""Seconds after which nothing is taken for an answer any more."""


@dataclass(frozen=True)
class Beat:
    """How it was when it was asked last.

    Args:
        up: whether it answered; None when that is not known yet.
        milliseconds: how long the answer took.
        since: when this server first had no answer, if it has none.
    """

    up: bool | None
    milliseconds: float = 0.0
    since: datetime | None = None


class Pulse:
    """Asks something again and again, never twice at a time, and remembers since when it has been silent."""

    def __init__(self, answers: Callable[[], bool]) -> None:
        self._answers = answers
        self._lock = Lock()
        self._last = Beat(None)
        self._known_at = self._asked_at = float("-inf")
        self._asked: Asked[Beat] | None = None

    def beat(self) -> Beat:
        """How it is now, or was a moment ago; who asks waits for at most `WAIT`, and not for what is known silent."""
        with self._lock:
            if self._asked is None and time.monotonic() > self._known_at + AGAIN:
                self._asked_at = time.monotonic()
                self._asked = Asked(self._timed)
            asked = self._asked
        if asked is not None:
            self._hear(asked, 0.0 if self._last.up is False else WAIT)
        return self._last

    def _hear(self, asked: Asked[Beat], patience: float) -> None:
        try:
            found = asked.answer(patience)
        except TimeoutError:
            if time.monotonic() < self._asked_at + SILENT:
                return
            found = Beat(up=False)
        except Exception:  # noqa: BLE001  whatever it was, nothing has answered
            found = Beat(up=False)
        with self._lock:
            since = None if found.up else self._last.since or timezone.now()
            self._last = Beat(found.up, found.milliseconds, since)
            if asked is self._asked and (found.up or asked.over()):
                self._asked, self._known_at = None, time.monotonic()

    def _timed(self) -> Beat:
        begun = time.monotonic()
        up = self._answers()
        return Beat(up, (time.monotonic() - begun) * 1000)


def _layer_answers() -> bool:
    async def ask() -> None:
        async with asyncio.timeout(SILENT):
            await layer_answers()

    asyncio.run(ask())
    return True


redis = Pulse(redis_answers)
live = Pulse(_layer_answers)
"""What brings changes to open pages."""
