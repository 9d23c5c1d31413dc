"""Questions to services that may not answer: the caller gets an answer in time, or a timeout."""

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

AnswerValue = TypeVar("AnswerValue")

PATIENCE = 3.0
"""Seconds that an answer may take."""

LONGEST = 10.0
"""Seconds after which a question counts as unanswered and may be asked again."""


class ThreadedQuestion(Generic[AnswerValue]):
    """One question, asked in a thread with its own database connections."""

    def __init__(self, find: Callable[[], AnswerValue]) -> None:
        self._find = find
        self._found: Future[AnswerValue] = Future()
        self.at = time.monotonic()
        """The time of the question, by the clock of the process."""
        self._connections: Sequence[BaseDatabaseWrapper] = []
        Thread(target=self._run, daemon=True).start()

    def answer(self, patience: float = PATIENCE) -> AnswerValue:
        """Wait for the answer.

        Raises:
            TimeoutError: no answer came within `patience` seconds after the question.
            Exception: whatever the question raised.
        """
        return self._found.result(max(0.0, self.at + patience - time.monotonic()))

    def is_over(self) -> bool:
        """Whether it was answered, or is older than `LONGEST`; then its connections are closed."""
        if time.monotonic() > self.at + LONGEST:
            self._shut_connections()
            return True
        return self._found.done()

    def _run(self) -> None:
        try:
            self._connections = connections.all()
            answer = self._find()
        except Exception as error:  # noqa: BLE001  the callers get it, whatever it is
            self._found.set_exception(error)
        else:
            self._found.set_result(answer)
        finally:
            connections.close_all()

    def _shut_connections(self) -> None:
        """Shut the thread's connections to PostgreSQL, since a proxy can keep a dead one open."""
        for one in self._connections:
            if one.vendor == "postgresql" and one.connection is not None:
                with (
                    suppress(Exception),
                    socket.socket(fileno=one.connection.fileno()) as its,
                ):
                    try:
                        its.shutdown(socket.SHUT_RDWR)
                    finally:
                        its.detach()  # the connection closes the socket


class TimedQuestion(Generic[AnswerValue]):
    """A question that at most one thread asks at a time, however many callers it has.

    A database without answers can block the asking thread until its own timeouts end. No other thread waits for that,
    and no second one asks before `LONGEST` seconds are over.
    """

    def __init__(self, find: Callable[[], AnswerValue]) -> None:
        self._find = find
        self._lock = Lock()
        self._last: ThreadedQuestion[AnswerValue] | None = None

    def ask(self) -> ThreadedQuestion[AnswerValue]:
        """Ask, or join the question that is under way."""
        with self._lock:
            if self._last is None or self._last.is_over():
                self._last = ThreadedQuestion(self._find)
            return self._last
