"""Pings of Redis and the channel layer. Pages show the result, and do not wait for a silent service."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

from django.utils import timezone

from monitoring.live.watchers import layer_answers
from monitoring.probes.timed_questions import ThreadedQuestion
from orchestrator.setup_status import all_redis_respond

WAIT = 0.2
"""Seconds that a page waits for an answer; after that it shows the last one."""

AGAIN = 1.0
"""Seconds for which an answer is valid."""

SILENT = 2.0
"""Seconds after which a question counts as unanswered."""


@dataclass(frozen=True)
class Beat:
    """The result of the last question.

    Args:
        up: whether an answer came; None before the first.
        milliseconds: how long the answer took.
        since: when this server first got no answer, if it still gets none.
    """

    up: bool | None
    milliseconds: float = 0.0
    since: datetime | None = None


class Pulse:
    """Asks a service at most once at a time, and remembers since when it has been silent."""

    def __init__(self, answers: Callable[[], bool]) -> None:
        self._answers = answers
        self._lock = Lock()
        self._last = Beat(None)
        self._known_at = float("-inf")
        self._asked: ThreadedQuestion[Beat] | None = None

    def beat(self) -> Beat:
        """Return the result of now or of a moment ago. It waits at most `WAIT`, and not at all for a silent service."""
        with self._lock:
            if self._asked is None and time.monotonic() > self._known_at + AGAIN:
                self._asked = ThreadedQuestion(self._timed)
            asked = self._asked
        if asked is not None:
            self._wait(asked, 0.0 if self._last.up is False else WAIT)
        return self._last

    def _wait(self, asked: ThreadedQuestion[Beat], patience: float) -> None:
        try:
            found = asked.answer(patience)
        except TimeoutError:
            if time.monotonic() < asked.at + SILENT:
                return
            found = Beat(up=False)
        except Exception:  # noqa: BLE001  whatever failed, no answer came
            found = Beat(up=False)
        with self._lock:
            since = None if found.up else self._last.since or timezone.now()
            self._last = Beat(found.up, found.milliseconds, since)
            if asked is self._asked and (found.up or asked.is_over()):
                self._asked, self._known_at = None, time.monotonic()

    def _timed(self) -> Beat:
        begun = time.monotonic()
        up = self._answers()
        return Beat(up, (time.monotonic() - begun) * 1000)


def _layer_answers() -> bool:
    asyncio.run(asyncio.wait_for(layer_answers(), SILENT))
    return True


redis = Pulse(all_redis_respond)
live = Pulse(_layer_answers)
"""The channel layer, which brings changes to open pages."""
