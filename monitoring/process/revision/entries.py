"""The rows of a process's history: an event, its changes and its commands."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from django.utils.translation import gettext as _

from monitoring.base.statuses import look
from monitoring.process.revision.overtaking import OvertakingEvents
from orchestrator.definition.secrets import MASK
from orchestrator.definition.secrets import mask_fields as masked_value
from orchestrator.models import CommandStatus, InboxEvent, IssuedCommand

SHOWN = 8
"""The number of commands of one transition that a row shows unfolded, besides failing ones."""

PLACES = 100
"""The maximum number of differences between two values that the page shows."""

MISSING = object()


@dataclass(frozen=True)
class FieldChange:
    """One field before and after; MISSING where it did not exist."""

    name: str
    before: Any
    after: Any
    hides: bool = False
    """Whether the difference is masked."""
    of_data: bool = False
    """Whether it is a field of the data, which needs a permission."""

    @property
    def differs(self) -> bool:
        return self.hides or self.before != self.after

    def masked(self, names: frozenset[str]) -> FieldChange:
        """Return the same change with secrets masked."""
        if not names:
            return self
        inside = not names.isdisjoint(self.name.split("."))

        def shown(value: Any) -> Any:
            if value is MISSING:
                return value
            return MASK if inside else masked_value(value, names)

        before, after = shown(self.before), shown(self.after)
        hides = self.differs and before == after
        return FieldChange(self.name, before, after, hides, self.of_data)

    @property
    def was_there(self) -> bool:
        return self.before is not MISSING

    @property
    def is_there(self) -> bool:
        return self.after is not MISSING


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
        return self.command.status in IssuedCommand.FAILING


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


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], hidden: frozenset[str]
) -> list[FieldChange]:
    """Return the fields that differ between two states of the data, in the order of the newer one.

    Args:
        before: the older state.
        after: the newer state.
        hidden: the names of secret fields; they are masked after the comparison, so that a change is shown.
    """
    names = [*after, *(name for name in before if name not in after)]
    both = ((one, before.get(one, MISSING), after.get(one, MISSING)) for one in names)
    return [
        FieldChange(name, was, now, of_data=True).masked(hidden)
        for name, was, now in both
        # A new field without a value is no difference.
        if was != now and not (was is MISSING and now in ("", None))
    ]


def status_change(before: str, after: str) -> list[FieldChange]:
    """Return the change of a process's status, in the words of its chip; empty if it is the same."""
    if before == after:
        return []
    return [FieldChange(_("status"), str(look(before).word), str(look(after).word))]


def json_diff(before: Any, after: Any, names: frozenset[str]) -> list[FieldChange]:
    """Return the first differences between two JSON values, in the order of the newer value.

    Values of secret names are masked.
    """
    found = islice(_differences("", before, after), PLACES)
    return [change.masked(names) for change in found]


def _differences(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*after, *(name for name in before if name not in after)]:
            inner = f"{path}.{name}" if path else name
            yield from _differences(
                inner, before.get(name, MISSING), after.get(name, MISSING)
            )
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            inner = f"{path}.{place}" if path else str(place)
            pair = (
                value[place] if place < len(value) else MISSING
                for value in (before, after)
            )
            yield from _differences(inner, *pair)
    elif type(before) is not type(after) or before != after:
        yield FieldChange(path, before, after)
