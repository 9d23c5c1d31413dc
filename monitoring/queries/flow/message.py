"""A message between two lanes: who sent it to whom, when, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

OUTSIDE, COMMANDS, PARENT, CHILDREN = "from ", "commands", "parent", "children"
"""Lanes besides those of processes; that of a source has its name after OUTSIDE."""


def lane_of(process: UUID) -> str:
    """The lane of a process."""
    return f"process {process}"


@dataclass(frozen=True)
class FlowMessage:
    """One message, or several of a kind that were sent together.

    Args:
        at: when it was sent.
        kind: "event", "answer", "command", "start" or "end".
        name: its type, or the name of the process that starts or ends.
        sender: the lane from which it comes.
        receiver: the lane to which it goes.
        process: whose it is.
        status: what came of it, as chips say it.
        revision: of the transition that it caused, or that issued it.
        took: from then until that, if it is known.
        number: how many they are.
        at_least: whether more of them were sent than were read.
        event: its own key, where it is an event.
        error: why it failed.
        to: the process that is started, or has ended.
        place: the latest time of those stored before it, where that is later than its own.
    """

    at: datetime
    kind: str
    name: str
    sender: str
    receiver: str
    process: UUID
    status: str
    revision: int | None = None
    took: timedelta | None = None
    number: int = 1
    at_least: bool = False
    event: int | None = None
    error: str = field(default="", compare=False)
    to: UUID | None = None
    place: datetime | None = None

    @property
    def times(self) -> str:
        """How many they are, where they are several."""
        if self.number == 1:
            return ""
        return f" \N{MULTIPLICATION SIGN}{self.number}{'+' if self.at_least else ''}"

    @property
    def after(self) -> datetime:
        """What it stands after: clocks differ, and what is stored later is shown later."""
        return self.place or self.at

    def follows(self, other: FlowMessage) -> bool:
        """Whether it was sent together with another of the same kind, and came to the same."""
        if self.kind == "event":
            return False
        return self._together == other._together

    @property
    def _together(self) -> tuple[object, ...]:
        one = self.revision if self.kind == "command" else None
        return (self.kind, self.name, self.sender, self.receiver, self.status, one)
