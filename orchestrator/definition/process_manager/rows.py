"""The rows a process manager is made of. Engine, validator and diagram read the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from enum import Enum, StrEnum
from typing import Any, Literal

from orchestrator.definition.messages import Command, Event

Predicate = Callable[[Any, Any], bool]
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
        return f"{self.field} = {', '.join(map(written, self.accepts))}"


@dataclass(frozen=True)
class Issue:
    """A command to issue; `renames` says which data or event field fills a field of another name."""

    command: type[Command]
    renames: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Row:
    """One transition of a step: when this arrives and the guards hold, change data, issue commands, go on.

    `when`, `after`, `ignore` and `reject` make rows; the methods only add to them.
    """

    trigger: type[Event] | timedelta
    disposition: Literal["move", "ignore", "reject"] = "move"
    predicates: tuple[Predicate, ...] = ()
    guards: tuple[Guard, ...] = ()
    sets: tuple[tuple[str, object], ...] = ()
    issues: tuple[Issue, ...] = ()
    target: StrEnum | None = None
    escalates: bool = False
    edge: str = field(default="", compare=False)

    def set(self, **values: object) -> Row:
        """Also gives these fields of the data these values."""
        return replace(self, sets=(*self.sets, *values.items()))

    def issue(self, *commands: type[Command], **renames: str) -> Row:
        """Also issues these commands, their fields filled by name from event and data."""
        issued = (Issue(command, tuple(renames.items())) for command in commands)
        return replace(self, issues=(*self.issues, *issued))

    def go_to(self, step: StrEnum) -> Row:
        """Then enters this step; without it the process stays where it is."""
        return replace(self, target=step)

    def escalate(self) -> Row:
        """Also raises the escalation level, for people to see."""
        return replace(self, escalates=True)

    @property
    def event(self) -> type[Event] | None:
        return None if isinstance(self.trigger, timedelta) else self.trigger

    @property
    def guard_text(self) -> str:
        """The guard as it stands in the brackets of an edge label."""
        named = (name_of(predicate).replace("_", " ") for predicate in self.predicates)
        return " and ".join([*named, *map(str, self.guards)])

    @property
    def trigger_text(self) -> str:
        if isinstance(self.trigger, timedelta):
            return f"after {spoken(self.trigger)}"
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
    rows: tuple[Row, ...]


def during(step: StrEnum, *rows: Row) -> During:
    """Groups the rows of one step; rows for one event are tried in the order written."""
    return During(step, rows)


def when(event: type[Event], *predicates: Predicate, **guards: object) -> Row:
    """A row for an event. A guard names a field and the value or values it accepts, or `stored("field")`."""
    return Row(event, predicates=predicates, guards=_guards(guards))


def after(delay: timedelta, *predicates: Predicate, **guards: object) -> Row:
    """A row for a deadline, counted from entering the step."""
    return Row(delay, predicates=predicates, guards=_guards(guards))


def ignore(event: type[Event]) -> Row:
    """The event is expected to come late in this step: it is logged and changes nothing."""
    return Row(event, disposition="ignore")


def reject(event: type[Event]) -> Row:
    """The event is wrong in this step: an incident at once."""
    return Row(event, disposition="reject")


def _guards(guards: Mapping[str, object]) -> tuple[Guard, ...]:
    return tuple(Guard(name, _accepted(value)) for name, value in guards.items())


def _accepted(value: object) -> tuple[object, ...] | Stored:
    if isinstance(value, Stored):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(value)
    return (value,)


def name_of(value: object) -> str:
    """The name of a class or function; of anything else, which validation refuses, how it is written."""
    return getattr(value, "__name__", repr(value))


def written(value: object) -> str:
    """A guard's value as people read it."""
    if isinstance(value, Enum):
        return str(value.value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def spoken(delay: timedelta) -> str:
    """A delay as people say it: "10 minutes", "1 hour 30 minutes"."""
    rest = int(delay.total_seconds())
    parts = []
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(parts) or f"{delay.total_seconds():g} seconds"
