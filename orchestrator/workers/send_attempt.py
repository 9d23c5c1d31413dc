"""One attempt to send a notice: a process of its own, which reports the outcome and is killed when it takes too long.

So a slow mail server, receiver or channel keeps no other notice waiting.
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

from orchestrator import process_group
from orchestrator.configuration.notice_settings import Recipient
from orchestrator.exceptions import Permanent, Retry
from orchestrator.models import Notice
from orchestrator.notices.channel import channel_of, redact
from orchestrator.notices.item_lines import one_line
from orchestrator.notices.message import compose_message

log = logging.getLogger(__name__)

NAME = "procession-send"
SECONDS = 30.0
"""The most seconds that an attempt may take."""


@dataclass(frozen=True)
class SendingOutcome:
    """The outcome of an attempt.

    Args:
        error: why the notice was not sent, without secrets; "" if it was.
        after: seconds that the receiver asks to wait.
        hopeless: whether further attempts are in vain.
    """

    error: str = ""
    after: float = 0.0
    hopeless: bool = False


class Sending:
    """A running attempt.

    Args:
        notice: the notice, claimed.
        recipient: its recipient.
    """

    def __init__(self, notice: Notice, recipient: Recipient) -> None:
        self.notice = notice
        connections.close_all()  # a process shares none with its child
        self.line, its = Pipe(duplex=False)
        self.pid = process_group.fork_child(lambda: _send(its, notice, recipient))
        its.close()
        self._until = time.monotonic() + SECONDS
        self._outcome: SendingOutcome | None = None

    @property
    def outcome(self) -> SendingOutcome | None:
        """Its outcome, which never changes; None while it runs."""
        if self._outcome is None:
            if self.line.poll():
                self._outcome = self._receive()
            elif time.monotonic() > self._until:
                self._outcome = SendingOutcome(f"it took longer than {SECONDS:.0f} s")
        return self._outcome

    def end(self) -> None:
        """Kill its process, with or without an outcome."""
        process_group.end_child(self.pid)
        self.line.close()

    def _receive(self) -> SendingOutcome:
        try:
            return SendingOutcome(*json.loads(self.line.recv_bytes()))
        except (EOFError, OSError):
            return SendingOutcome("the process that was sending it has died")


def _send(line: Connection[Any, Any], notice: Notice, recipient: Recipient) -> None:
    process_group.name_process(NAME)
    line.send_bytes(json.dumps(astuple(send_notice(notice, recipient))).encode())


def send_notice(notice: Notice, recipient: Recipient) -> SendingOutcome:
    """Send a notice in this process; return the outcome."""
    try:
        said = notice.recipient, notice.counts, notice.items, notice.texts
        message = compose_message(str(notice.pk), *said, notice.created_at)
        channel_of(recipient).send(message)
    except Permanent as error:
        return SendingOutcome(_reason(error, recipient), hopeless=True)
    except Retry as error:
        seconds = error.after.total_seconds() if error.after else 0.0
        return SendingOutcome(_reason(error, recipient), after=seconds)
    except BaseException as error:  # noqa: BLE001  # a backend or a channel may raise anything
        return SendingOutcome(f"{type(error).__name__}: {_reason(error, recipient)}")
    return SendingOutcome()


def _reason(error: BaseException, recipient: Recipient) -> str:
    try:
        text = str(error)
    except BaseException:  # noqa: BLE001  # the channel's
        text = ""
    # Never "", which means success.
    return one_line(redact(text, recipient.secrets), 400) or type(error).__name__
