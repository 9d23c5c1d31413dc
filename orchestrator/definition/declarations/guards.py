"""Guards: a field and the values it accepts. Process managers and workflows write them in the same way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.definition.labels import value_label


@dataclass(frozen=True)
class Stored:
    """A guard's reference to the value of a field of the stored data."""

    field: str


def stored(field: str) -> Stored:
    """Require the event's field to equal this field of the stored data, so that a stale answer does not match."""
    return Stored(field)


@dataclass(frozen=True)
class Guard:
    """A field of the event, or else of the data, and its accepted values."""

    field: str
    accepts: tuple[object, ...] | Stored

    def holds(self, value: object, data: object) -> bool:
        if isinstance(self.accepts, Stored):
            return bool(value == getattr(data, self.accepts.field))
        return value in self.accepts

    def __str__(self) -> str:
        if isinstance(self.accepts, Stored):
            return f"{self.field} = stored {self.accepts.field}"
        return f"{self.field} = {', '.join(map(guard_label, self.accepts))}"


def read_guards(guards: Mapping[str, object]) -> tuple[Guard, ...]:
    """Return the guards in keyword arguments."""
    return tuple(Guard(name, _accepted(value)) for name, value in guards.items())


def _accepted(value: object) -> tuple[object, ...] | Stored:
    if isinstance(value, Stored):
        return value
    if isinstance(value, list | tuple | set | frozenset):
        return tuple(in_stable_order(value))
    return (value,)


def in_stable_order(values: Iterable[Any]) -> Iterable[Any]:
    """Return the values, those of a set sorted: its own order differs between operating system processes."""
    return sorted(values, key=repr) if isinstance(values, set | frozenset) else values


def guard_label(value: object) -> str:
    """Return the label of a guard's value: "yes" or "no" for a bool."""
    return ("yes" if value else "no") if isinstance(value, bool) else value_label(value)
