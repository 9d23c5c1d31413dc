"""Questions to parts that may be silent: whoever asks has an answer in time, or knows that there is none."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Generic, TypeVar

from django.db import connections
from django.db.backends.base.base import BaseDatabaseWrapper

Answer = TypeVar("Answer")

PATIENCE = 3.0
"""Seconds that an answer may take."""

LONGEST = 10.0
"""Seconds after which nobody believes in an answer any more, and the question may be asked anew."""


class Asked(Generic[Answer]):
    """A question that is being asked, in a thread of its own with database connections of its own."""

    def __init__(self, find: Callable[[], Answer]) -> None:
        self._find = find
        self._found: Future[Answer] = Future()
        self._at = time.monotonic()
        self._lines: Sequence[BaseDatabaseWrapper] = []
        Thread(target=self._tell, daemon=True).start()

    def answer(self, patience: float = PATIENCE) -> Answer:
        """Waits for the answer.

        Raises:
            TimeoutError: there is none within so many seconds after it was asked.
            Exception: what was raised instead of an answer.
        """
        return self._found.result(max(0.0, self._at + patience - time.monotonic()))

    def over(self) -> bool:
        """Whether it was answered, or has taken so long that its connections are cut."""
        if time.monotonic() > self._at + LONGEST:
            self._hang_up()
            return True
        return self._found.done()

    def _tell(self) -> None:
        try:
            self._lines = connections.all()
            answer = self._find()
        except Exception as error:  # noqa: BLE001  whatever it was, those who asked are told
            self._found.set_exception(error)
        else:
            self._found.set_result(answer)
        finally:
            connections.close_all()

    def _hang_up(self) -> None:
        """Lets the thread find its lines to PostgreSQL cut: a proxy can keep one alive on which nobody answers."""
        for line in self._lines:
            if line.vendor == "postgresql" and line.connection is not None:
                with (
                    suppress(Exception),
                    socket.socket(fileno=line.connection.fileno()) as its,
                ):
                    try:
                        its.shutdown(socket.SHUT_RDWR)
                    finally:
                        its.detach()  # the connection closes it


class TimedQuestion(Generic[Answer]):
    """Something that is asked by one thread at a time, however many want to know.

    A database that has fallen silent can keep the thread that asks it for as long as its own limits allow; nobody else
    waits for that, and no second one is sent after it before `LONGEST`.
    """

    def __init__(self, find: Callable[[], Answer]) -> None:
        self._find = find
        self._lock = Lock()
        self._last: Asked[Answer] | None = None

    def ask(self) -> Asked[Answer]:
        """Asks, unless that is being done already."""
        with self._lock:
            if self._last is None or self._last.over():
                self._last = Asked(self._find)
            return self._last
