"""The rows a process manager is made of. Engine, validator and diagram read the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal

from orchestrator.definition.messages import Command, Event
from orchestrator.definition.words import (
    name_of,
    spoken_condition,
    spoken_delay,
    written,
)

DataPredicate = Callable[[Any, Any], bool]
"""A named condition: (data, event) -> bool. For deadlines the event is None."""


@dataclass(frozen=True)
class Stored:
    """Stands in a guard for the value of a field of the stored data."""

    field: str


def stored(field: str) -> Stored:
    """The event's field must equal this field of the stored data: a stale answer does not match."""
    return Stored(field)


@dataclass(frozen=True)
class Guard:
    """A field of the event, or else of the data, and the values it accepts."""

    field: str
    accepts: tuple[object, ...] | Stored

    def holds(self, value: object, data: object) -> bool:
        if isinstance(self.accepts, Stored):
            return bool(value == getattr(data, self.accepts.field))
        return value in self.accepts

    def __str__(self) -> str:
        if isinstance(self.accepts, Stored):
            return f"{self.field} = stored {self.accepts.field}"
        return f"{self.field} = {', '.join(map(answer, self.accepts))}"


@dataclass(frozen=True)
class Issue:
    """A command to issue; `renames` says which data or event field fills a field of another name."""

    command: type[Command]
    renames: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TransitionRow:
    """One transition of a step: when this arrives and the guards hold, change data, issue commands, go on.

    `when`, `after`, `ignore` and `reject` make rows; the methods only add to them.
    """

    trigger: type[Event] | timedelta
    disposition: Literal["move", "ignore", "reject"] = "move"
    predicates: tuple[DataPredicate, ...] = ()
    guards: tuple[Guard, ...] = ()
    sets: tuple[tuple[str, object], ...] = ()
    issues: tuple[Issue, ...] = ()
    target: StrEnum | None = None
    escalates: bool = False
    edge: str = field(default="", compare=False)

    def set(self, **values: object) -> TransitionRow:
        """Also gives these fields of the data these values."""
        return replace(self, sets=(*self.sets, *values.items()))

    def issue(self, *commands: type[Command], **renames: str) -> TransitionRow:
        """Also issues these commands, their fields filled by name from event and data."""
        issued = (Issue(command, tuple(renames.items())) for command in commands)
        return replace(self, issues=(*self.issues, *issued))

    def go_to(self, step: StrEnum) -> TransitionRow:
        """Then enters this step; without it the process stays where it is."""
        return replace(self, target=step)

    def escalate(self) -> TransitionRow:
        """Also raises the escalation level, for people to see."""
        return replace(self, escalates=True)

    @property
    def event(self) -> type[Event] | None:
        return None if isinstance(self.trigger, timedelta) else self.trigger

    @property
    def guard_text(self) -> str:
        """The guard as it stands in the brackets of an edge label."""
        named = map(spoken_condition, self.predicates)
        return " and ".join([*named, *map(str, self.guards)])

    @property
    def trigger_text(self) -> str:
        if isinstance(self.trigger, timedelta):
            return f"after {spoken_delay(self.trigger)}"
        return name_of(self.trigger)

    def __str__(self) -> str:
        guard = f" [{self.guard_text}]" if self.guards or self.predicates else ""
        commands = ", ".join(name_of(issue.command) for issue in self.issues)
        target = f" -> {self.target}" if self.target is not None else ""
        return (
            f"{self.trigger_text}{guard}{' / ' + commands if commands else ''}{target}"
        )


@dataclass(frozen=True)
class During:
    """The rows of one step."""

    step: StrEnum
    rows: tuple[TransitionRow, ...]


def during(step: StrEnum, *rows: TransitionRow) -> During:
    """Groups the rows of one step; rows for one event are tried in the order written."""
    return During(step, rows)


def when(
    event: type[Event], *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """A row for an event. A guard names a field and the value or values it accepts, or `stored("field")`."""
    return TransitionRow(event, predicates=predicates, guards=_guards(guards))


def after(
    delay: timedelta, *predicates: DataPredicate, **guards: object
) -> TransitionRow:
    """A row for a deadline, counted from entering the step."""
    return TransitionRow(delay, predicates=predicates, guards=_guards(guards))


def ignore(event: type[Event]) -> TransitionRow:
    """The event is expected to come late in this step: it is logged and changes nothing."""
    return TransitionRow(event, disposition="ignore")


def reject(event: type[Event]) -> TransitionRow:
    """The event is wrong in this step: an incident at once."""
    return TransitionRow(event, disposition="reject")


def _guards(guards: Mapping[str, object]) -> tuple[Guard, ...]:
    return tuple(Guard(name, _accepted(value)) for name, value in guards.items())


def _accepted(value: object) -> tuple[object, ...] | Stored:
    if isinstance(value, Stored):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(value)
    return (value,)


def answer(value: object) -> str:
    """A guard's value as people read it: a truth value answers a question."""
    return ("yes" if value else "no") if isinstance(value, bool) else written(value)
