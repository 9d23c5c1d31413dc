"""Guards: a field and the values it accepts. Both kinds of definitions write them in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.definition.words import written


@dataclass(frozen=True)
class Stored:
    """Stands in a guard for the value of a field of the stored data."""

    field: str


def stored(field: str) -> Stored:
    """Requires the event's field to equal this field of the stored data, so that a stale answer does not match."""
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


def guards_of(guards: Mapping[str, object]) -> tuple[Guard, ...]:
    """Reads guards from keyword arguments."""
    return tuple(Guard(name, _accepted(value)) for name, value in guards.items())


def _accepted(value: object) -> tuple[object, ...] | Stored:
    if isinstance(value, Stored):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(in_order(value))
    return (value,)


def in_order(values: Iterable[Any]) -> Iterable[Any]:
    """The values of a row; those of a set sorted, so that every operating system process has the same order."""
    return sorted(values, key=repr) if isinstance(values, set | frozenset) else values


def answer(value: object) -> str:
    """The label of a guard's value; a bool is written yes or no."""
    return ("yes" if value else "no") if isinstance(value, bool) else written(value)
