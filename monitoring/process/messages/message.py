"""A message between two lanes: its sender, its receiver, its time and its outcome."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

OUTSIDE, COMMANDS, PARENT, CHILDREN = "from ", "commands", "parent", "children"
"""Lanes beside those of processes; the lane of a source has its name after OUTSIDE."""


def lane_of(process: UUID) -> str:
    """Return the lane of a process."""
    return f"process {process}"


@dataclass(frozen=True)
class FlowMessage:
    """One message, or several equal messages that were sent together.

    Args:
        at: when it was sent.
        kind: "event", "answer", "command", "start" or "end".
        name: its type, or the name of the process that starts or ends.
        sender: the lane that it leaves.
        receiver: the lane that it reaches.
        process: the process that it belongs to.
        status: its outcome, as chips show it.
        revision: of the transition that it caused, or that issued it.
        took: the time until its outcome, if known.
        number: the number of equal messages.
        at_least: whether more were sent than were read.
        event: the key of an event.
        error: why it failed.
        to: the process that is started, or has ended.
        place: the latest time of the messages stored before it, if that is later than its own time.
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
        """The number of equal messages; "" for one."""
        if self.number == 1:
            return ""
        return f" \N{MULTIPLICATION SIGN}{self.number}{'+' if self.at_least else ''}"

    @property
    def after(self) -> datetime:
        """The time by which it is ordered; a message that is stored later comes later, also when clocks differ."""
        return self.place or self.at

    def follows(self, other: FlowMessage) -> bool:
        """Whether it equals another message in all but time; an event never does."""
        alike = ["kind", "name", "sender", "receiver", "status"]
        if self.kind == "command":
            alike.append("revision")
        return self.kind != "event" and all(
            getattr(self, name) == getattr(other, name) for name in alike
        )
