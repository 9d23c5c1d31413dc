"""The notifier: a process beside a supervisor's workers that gathers occurrences and has notices sent.

It runs only if the settings have recipients. Those of several hosts may run at once: each notice is claimed. No
receiver keeps it waiting: every attempt is a process of its own.
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

from orchestrator.configuration.conf import SettingRefused, conf
from orchestrator.configuration.notice_settings import recipients
from orchestrator.engine.notices import outages, outbox
from orchestrator.engine.notices.gathering import gather_notices
from orchestrator.models import Notice
from orchestrator.workers.send_attempt import Sending, SendingOutcome

log = logging.getLogger(__name__)

NAME = "procession-tell"
MOST_AT_ONCE = 10
"""The most attempts at once; each recipient has one."""
OUTAGES_SECONDS = 5.0
"""Seconds between two looks for outages."""
FORGET_SECONDS = 3600.0
PORTION_SECONDS = 1.0
"""How long it gathers at a time: the outcomes of attempts must be stored before their claims run out."""


class Notifier:
    """Gathers occurrences and has notices sent."""

    def __init__(self) -> None:
        self.owner = uuid4().hex
        self.sending: list[Sending] = []
        self._more = False
        self._outages_at = 0.0
        self._forget_at = time.monotonic() + FORGET_SECONDS * random.uniform(0.1, 1)  # noqa: S311  # jitter

    def run(self, over: Callable[[], bool]) -> None:
        """Run until `over` returns True; another one repeats the unfinished attempts, under the same ids."""
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
        """Do what is due, without waiting for anything but the database.

        Raises:
            DatabaseError: it refused for now.
            SettingRefused: the settings of recipients have a mistake.
            OSError: the system can start no process.
        """
        self.settle()
        now = time.monotonic()
        if now >= self._outages_at:
            self._outages_at = now + OUTAGES_SECONDS
            outages.check_queues()
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
        """Gather occurrences until a time; return whether there may be more."""
        while gather_notices():
            if time.monotonic() > until:
                return True
        return False

    def pause(self) -> None:
        """Wait until the next look is due, or an attempt has an outcome."""
        seconds = conf().SWEEP_SECONDS * random.uniform(0.8, 1.2)  # noqa: S311  # jitter
        lines = [one.line for one in self.sending]
        if lines:
            wait(lines, timeout=seconds)
        else:
            time.sleep(seconds)

    def settle(self) -> None:
        """Store the outcomes of attempts; the next look stores what the database refuses now.

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
            stored = outbox.mark_sent(notice)
        else:
            name, attempt, error = notice.recipient, notice.attempt, outcome.error
            log.warning("%s was not told, attempt %s: %s", name, attempt, error)
            after = timedelta(seconds=outcome.after)
            stored = outbox.mark_not_sent(
                notice, error, after, hopeless=outcome.hopeless
            )
        if not stored:
            log.info("another notifier has claimed notice %s", notice)


def has_recipients() -> bool:
    """Return whether the settings have recipients; False while they have a mistake."""
    try:
        return bool(recipients())
    except SettingRefused:
        return False


def run_notifier() -> None:
    """Send notices until this process is killed."""
    Notifier().run(lambda: False)
