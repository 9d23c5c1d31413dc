"""Causes: what moved a process, as its checkpoints store it."""

from __future__ import annotations

from typing import NamedTuple

from django.db import models
from django.utils.translation import gettext_lazy as _


class CauseKind(models.TextChoices):
    """The kinds of causes. Each kind refers to another row, as the docstrings of the members say."""

    START = "start", _("Start")
    """A workflow was started; refers to nothing."""
    EVENT = "event", _("An event")
    """Refers to the inbox row."""
    DEADLINE = "deadline", _("Deadline passed")
    """Refers to the step run; the part is the number of the deadline."""
    STEP = "step", _("A step")
    """Refers to the step run; the part distinguishes several changes of one visit."""
    COMMAND = "command", _("A command's outcome")
    """Refers to a command that failed before and is done now; the part is the revision."""
    OPERATOR = "operator", _("An operator's action")
    """Refers to the key of the audit row."""
    PARENT = "parent", _("Its parent process waits for it no more")
    """Refers to the step run of the parent, which no longer waits for this process."""
    SETTLED = "settled", _("Nothing fails any more")
    """Refers to an event or a deadline's step run that failed before and moves nothing; the part is the revision."""
    EVENT_FAILED = "failure:inboxevent", _("An event could not be handled")
    COMMAND_FAILED = "failure:issuedcommand", _("A command failed")
    STEP_FAILED = "failure:steprun", _("A step or a deadline failed")
    """These three refer to the row that failed; the part is the revision."""

    @property
    def is_failure(self) -> bool:
        return self in FAILURES


FAILURES = (CauseKind.EVENT_FAILED, CauseKind.COMMAND_FAILED, CauseKind.STEP_FAILED)
OF_STEP_RUNS = (CauseKind.STEP, CauseKind.DEADLINE, CauseKind.STEP_FAILED)


class Cause(NamedTuple):
    """The cause of a change: a kind, the reference to a row, and a part that distinguishes several changes by it."""

    kind: CauseKind
    ref: str = ""
    part: str = ""

    @classmethod
    def of(cls, kind: CauseKind, ref: object = "", *part: object) -> Cause:
        """Return the cause with its values as text."""
        return cls(kind, str(ref), ":".join(map(str, part)))

    @classmethod
    def parse(cls, text: str) -> Cause:
        """Return the cause with this text.

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
        """The key of the step run to which it refers; None for other causes."""
        return int(self.ref) if self.kind in OF_STEP_RUNS else None
