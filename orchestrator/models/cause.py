"""What moved a process, as its checkpoints say it."""

from __future__ import annotations

from typing import NamedTuple

from django.db import models
from django.utils.translation import gettext_lazy as _


class CauseKind(models.TextChoices):
    """What can move a process, in words for people; each kind refers to something else, as told here."""

    START = "start", _("Start")
    """A workflow was started; refers to nothing."""
    EVENT = "event", _("An event")
    """To the inbox row."""
    DEADLINE = "deadline", _("Deadline passed")
    """To the step run; its part is the number of the deadline."""
    STEP = "step", _("A step")
    """To the step run; its part tells several changes of one visit apart."""
    COMMAND = "command", _("A command's outcome")
    """To a command that was troubled and is done now; its part is the revision."""
    OPERATOR = "operator", _("An operator's action")
    """To the key of the audit row."""
    PARENT = "parent", _("Its parent process waits for it no more")
    """To the step run of the parent, which waits for this process no more."""
    SETTLED = "settled", _("Nothing fails any more")
    """To an event or a deadline's step run that was troubled and moves nothing; its part is the revision."""
    EVENT_FAILED = "failure:inboxevent", _("An event could not be handled")
    COMMAND_FAILED = "failure:issuedcommand", _("A command failed")
    STEP_FAILED = "failure:steprun", _("A step or a deadline failed")
    """To what failed; its part is the revision."""

    @property
    def is_failure(self) -> bool:
        return self in FAILURES


FAILURES = (CauseKind.EVENT_FAILED, CauseKind.COMMAND_FAILED, CauseKind.STEP_FAILED)
OF_STEP_RUNS = (CauseKind.STEP, CauseKind.DEADLINE, CauseKind.STEP_FAILED)


class Cause(NamedTuple):
    """What moved a process: a kind, what that kind refers to, and what tells several changes by it apart."""

    kind: CauseKind
    ref: str = ""
    part: str = ""

    @classmethod
    def of(cls, kind: CauseKind, ref: object = "", *part: object) -> Cause:
        """Return the cause with its values as text."""
        return cls(kind, str(ref), ":".join(map(str, part)))

    @classmethod
    def parse(cls, text: str) -> Cause:
        """Return the cause that is written so.

        Raises:
            ValueError: there is no such kind.
        """
        words = text.split(":")
        length = 2 if words[0] == "failure" else 1
        return cls.of(CauseKind(":".join(words[:length])), *words[length:])

    def __str__(self) -> str:
        return ":".join(filter(None, self))

    @property
    def step_run(self) -> int | None:
        """The key of the step run that it refers to, if it refers to one."""
        return int(self.ref) if self.kind in OF_STEP_RUNS else None
