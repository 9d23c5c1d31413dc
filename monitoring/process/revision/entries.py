"""The rows of a process's history: an event, its changes and its commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from django.utils.translation import gettext as _

from monitoring.base.differences import FieldChange
from monitoring.base.statuses import look
from monitoring.process.revision.overtaking import OvertakingEvents
from orchestrator.models import CommandStatus, InboxEvent, IssuedCommand

SHOWN = 8
"""The number of commands of one transition that a row shows unfolded, besides failing ones."""


@dataclass
class ShownCommand:
    """A command, and the command that holds it: the first earlier command that is not held."""

    command: IssuedCommand
    held_by: IssuedCommand | None = None

    @property
    def is_held(self) -> bool:
        return self.command.status == CommandStatus.HELD

    @property
    def can_be_skipped(self) -> bool:
        return self.command.is_failing


@dataclass(frozen=True)
class BegunStep:
    """A step that began, or whose undoing began."""

    label: str
    undone: bool = False

    @property
    def icon(self) -> str:
        return "undone" if self.undone else "arrow"


@dataclass
class Entry:
    """One row. A transition has a revision, and one commit wrote everything in its row."""

    at: datetime
    what: str
    source: str = ""
    kind: str = "transition"
    revision: int | None = None
    changes: list[FieldChange] = field(default_factory=list)
    commands: list[ShownCommand] = field(default_factory=list)
    event: InboxEvent | None = None
    overtaken_by: OvertakingEvents | None = None
    error: str = ""
    status: str = ""
    began: list[BegunStep] = field(default_factory=list)
    resumable: bool = False
    element_of: str = ""
    elements: int = 1
    cause: str = ""
    """The cause of the transition that an operator's action made, if it made one."""
    commit: int | None = None
    """The transition that the same commit wrote."""
    leads_to: int | None = None
    """The later transition that it led to."""
    is_moment: bool = False
    """Whether the page shows the moment just after it."""

    @property
    def anchor(self) -> str:
        """The id of its row."""
        return f"revision-{self.revision}"

    @property
    def below(self) -> int:
        """The first revision of a page of the history with its consequence in the middle."""
        return (self.leads_to or 0) + 15

    @property
    def shown(self) -> list[ShownCommand]:
        """The first commands, and all failing ones."""
        return [
            one
            for place, one in enumerate(self.commands)
            if place < SHOWN or one.can_be_skipped
        ]

    @property
    def folded(self) -> list[ShownCommand]:
        """The other commands."""
        return [one for one in self.commands[SHOWN:] if not one.can_be_skipped]


@dataclass(frozen=True)
class HistoryPage:
    """Entries newest first, and the revision below which the next page starts.

    `size` is the number of transitions of a page; `cut` says that it lacks some of the events that moved nothing.
    """

    entries: list[Entry]
    older: int | None = None
    size: int = 0
    cut: bool = False


def status_change(before: str, after: str) -> list[FieldChange]:
    """Return the change of a process's status, in the words of its chip; empty if it is the same."""
    if before == after:
        return []
    return [FieldChange(_("status"), str(look(before).word), str(look(after).word))]
