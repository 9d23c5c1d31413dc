"""One attempt to send a notice: a process of its own, which tells what came of it and is killed when it takes too long.

So what a mail server, a receiver or a project's own channel does can keep nobody else waiting.
"""

from __future__ import annotations

import json
import logging
import time
from dataclasses import astuple, dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any

from django.db import connections

from orchestrator.exceptions import Permanent, Retry
from orchestrator.models import Notice
from orchestrator.notice_settings import Recipient
from orchestrator.notices.channel import channel_of, without
from orchestrator.notices.lines import one_line
from orchestrator.notices.message import compose
from orchestrator.workers import group

log = logging.getLogger(__name__)

NAME = "procession-send"
SECONDS = 30.0
"""How long an attempt may take."""


@dataclass(frozen=True)
class SendingOutcome:
    """What came of an attempt.

    Args:
        error: why it was not sent, without secrets; "" if it was.
        after: how many seconds the receiver wants to be left alone.
        hopeless: whether another attempt would not change it.
    """

    error: str = ""
    after: float = 0.0
    hopeless: bool = False


class Sending:
    """An attempt that is under way.

    Args:
        notice: what is sent, claimed.
        recipient: to whom.
    """

    def __init__(self, notice: Notice, recipient: Recipient) -> None:
        self.notice = notice
        connections.close_all()  # a process shares none with its child
        self.line, its = Pipe(duplex=False)
        self.pid = group.fork(lambda: _send(its, notice, recipient))
        its.close()
        self._until = time.monotonic() + SECONDS
        self._outcome: SendingOutcome | None = None

    @property
    def outcome(self) -> SendingOutcome | None:
        """What came of it, the same whenever it is asked; None as long as that is not known."""
        if self._outcome is None:
            if self.line.poll():
                self._outcome = self._heard()
            elif time.monotonic() > self._until:
                self._outcome = SendingOutcome(f"it took longer than {SECONDS:.0f} s")
        return self._outcome

    def end(self) -> None:
        """Ends it, whether or not anything came of it."""
        group.end(self.pid)
        self.line.close()

    def _heard(self) -> SendingOutcome:
        try:
            return SendingOutcome(*json.loads(self.line.recv_bytes()))
        except (EOFError, OSError):
            return SendingOutcome("the process that was sending it has died")


def _send(line: Connection[Any, Any], notice: Notice, recipient: Recipient) -> None:
    group.call(NAME)
    line.send_bytes(json.dumps(astuple(attempt(notice, recipient))).encode())


def attempt(notice: Notice, recipient: Recipient) -> SendingOutcome:
    """Sends a notice in this process; what came of it."""
    try:
        said = notice.recipient, notice.counts, notice.items, notice.texts
        message = compose(str(notice.pk), *said, notice.created_at)
        channel_of(recipient).send(message)
    except Permanent as error:
        return SendingOutcome(_said(error, recipient), hopeless=True)
    except Retry as error:
        seconds = error.after.total_seconds() if error.after else 0.0
        return SendingOutcome(_said(error, recipient), after=seconds)
    except Exception as error:  # noqa: BLE001  # a backend or a channel may raise anything
        return SendingOutcome(f"{type(error).__name__}: {_said(error, recipient)}")
    return SendingOutcome()


def _said(error: Exception, recipient: Recipient) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001  # the channel's
        text = ""
    # Never "", which would say that it has arrived.
    return one_line(without(text, recipient.secrets), 400) or type(error).__name__
