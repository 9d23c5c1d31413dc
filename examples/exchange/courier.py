"""Brings announcements to the client's webhook, each when it is due, again and again until it is taken."""

from __future__ import annotations

import heapq
import itertools
import logging
import random
import threading
import time
from dataclasses import dataclass, replace
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from urllib.parse import urlsplit

from examples.exchange.announcements import Announcement

log = logging.getLogger(__name__)

MOST_WAITING = 20_000  # announcements; the oldest order of the day must not cost the memory of the machine
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0  # seconds between attempts
ATTEMPTS = 200


@dataclass(frozen=True)
class Errand:
    """An announcement on its way; `taken` is set when the client has it."""

    announcement: Announcement
    attempt: int = 0
    taken: threading.Event | None = None


class Courier:
    """A few threads that send what is due.

    Args:
        url: the client's webhook.
        secret: the signing key shared with the client.
        hands: how many announcements are sent at once.
    """

    def __init__(self, url: str, secret: str, hands: int = 4) -> None:
        self._url, self._secret = urlsplit(url), secret
        self._due: list[tuple[float, int, Errand]] = []
        self._order = itertools.count()
        self._changed = threading.Condition()
        for _ in range(hands):
            threading.Thread(target=self._work, daemon=True).start()

    def waiting(self) -> int:
        """How many announcements have not been taken yet."""
        with self._changed:
            return len(self._due)

    def full(self) -> bool:
        """Whether no more can be promised to be sent."""
        return self.waiting() >= MOST_WAITING

    def send(self, announcement: Announcement, delay: float) -> threading.Event:
        """Sends an announcement after a delay in seconds; the event is set once the client has it."""
        taken = threading.Event()
        self._put(Errand(announcement, taken=taken), delay)
        return taken

    def _put(self, errand: Errand, delay: float) -> None:
        with self._changed:
            heapq.heappush(
                self._due, (time.monotonic() + delay, next(self._order), errand)
            )
            self._changed.notify()

    def _next(self) -> Errand:
        with self._changed:
            while True:
                pause = self._due[0][0] - time.monotonic() if self._due else None
                if pause is not None and pause <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(pause)

    def _work(self) -> None:
        while True:
            errand = self._next()
            status = self._post(errand.announcement)
            if 200 <= status < 300:
                if errand.taken:
                    errand.taken.set()
            elif 400 <= status < 500 and status not in (408, 425, 429):
                log.warning("%s was refused: HTTP %s", errand.announcement.id, status)
            elif errand.attempt < ATTEMPTS:
                self._put(
                    replace(errand, attempt=errand.attempt + 1), _pause(errand.attempt)
                )

    def _post(self, announcement: Announcement) -> int:
        """The client's answer, 0 when there was none."""
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        connection = kind(self._url.hostname or "", self._url.port, timeout=10)
        try:
            body, headers = (
                announcement.body.encode(),
                announcement.headers(self._secret),
            )
            connection.request("POST", self._url.path, body, headers)
            return connection.getresponse().status
        except (OSError, HTTPException):
            return 0
        finally:
            connection.close()


def _pause(attempt: int) -> float:
    longest = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(attempt, 10))
    return random.uniform(longest / 2, longest)  # noqa: S311  spreads load, guards nothing
