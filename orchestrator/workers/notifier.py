"""Telling people, in a process beside a supervisor's workers: it gathers what has happened, and has it sent.

It is there only where the settings say that anybody is to be told. Those of several hosts may run at once: each notice
is claimed. Nothing that a receiver does keeps it waiting, since every attempt is a process of its own.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from datetime import timedelta
from multiprocessing.connection import wait
from uuid import uuid4

from django.db import DatabaseError, connections

from orchestrator.conf import SettingRefused, conf
from orchestrator.engine.notices import outages, outbox
from orchestrator.engine.notices.gathering import gather
from orchestrator.models import Notice
from orchestrator.notice_settings import recipients
from orchestrator.workers.sending import Sending, SendingOutcome

log = logging.getLogger(__name__)

NAME = "procession-tell"
MOST_AT_ONCE = 10
"""How many attempts are under way at once; each recipient has one."""
OUTAGES_SECONDS = 5.0
"""How often is looked for dead queues."""
FORGET_SECONDS = 3600.0
PORTION_SECONDS = 1.0
"""How long is gathered at a time: what came of attempts is to be stored before their claims have run out."""


class Notifier:
    """Gathers what has happened and has it sent."""

    def __init__(self) -> None:
        self.owner = uuid4().hex
        self.sending: list[Sending] = []
        self._more = False
        self._outages_at = 0.0
        self._forget_at = time.monotonic() + FORGET_SECONDS * random.uniform(0.1, 1)  # noqa: S311  # jitter

    def run(self, over: Callable[[], bool]) -> None:
        """Runs until it is over; what is under way then is tried again by another one, under the same id."""
        while not over():
            try:
                self.look()
            except (DatabaseError, SettingRefused, OSError) as error:
                log.warning("people are not told for now: %s", error)
                connections.close_all()
                self._more = False
            if not self._more:
                self.pause()
        for one in self.sending:
            one.end()

    def look(self) -> None:
        """Does what there is to do, without waiting for anybody but the database.

        Raises:
            DatabaseError: it refused for now.
            SettingRefused: who is to be told cannot be read.
            OSError: the system has no process to spare.
        """
        self.settle()
        now = time.monotonic()
        if now >= self._outages_at:
            self._outages_at = now + OUTAGES_SECONDS
            outages.look()
        self._more = self._gather(now + PORTION_SECONDS)
        if now >= self._forget_at:
            outbox.give_up_unknown()
            if outbox.forget_old():
                self._more = True
            else:
                self._forget_at = now + FORGET_SECONDS
        while len(self.sending) < MOST_AT_ONCE and (notice := outbox.claim(self.owner)):
            self._send(notice)

    def _gather(self, until: float) -> bool:
        """Takes in what has happened, for a while; whether there may be more of it."""
        while gather():
            if time.monotonic() > until:
                return True
        return False

    def pause(self) -> None:
        """Waits until it is time to look again, or something came of what is being sent."""
        seconds = conf().SWEEP_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311  # jitter
        lines = [one.line for one in self.sending]
        if lines:
            wait(lines, timeout=seconds)
        else:
            time.sleep(seconds)

    def settle(self) -> None:
        """Stores what came of attempts; what cannot be stored now is stored with the next look.

        Raises:
            DatabaseError: it refused for now.
        """
        for one in list(self.sending):
            if (outcome := one.outcome) is not None:
                self._store(one.notice, outcome)
                self.sending.remove(one)
                one.end()

    def _send(self, notice: Notice) -> None:
        self.sending.append(Sending(notice, recipients()[notice.recipient]))

    def _store(self, notice: Notice, outcome: SendingOutcome) -> None:
        if not outcome.error:
            stored = outbox.sent(notice)
        else:
            log.warning(
                "%s was not told, attempt %s: %s",
                notice.recipient,
                notice.attempt,
                outcome.error,
            )
            after = timedelta(seconds=outcome.after)
            stored = outbox.not_sent(
                notice, outcome.error, after, hopeless=outcome.hopeless
            )
        if not stored:
            log.info("notice %s is somebody else's by now", notice)


def has_recipients() -> bool:
    """Whether anybody is to be told; False while the settings cannot be used."""
    try:
        return bool(recipients())
    except SettingRefused:
        return False


def run() -> None:
    """Tells people until this process is killed."""
    Notifier().run(lambda: False)
