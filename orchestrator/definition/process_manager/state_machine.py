"""The declaration of a process manager: steps, data, and the rows between steps."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field
from datetime import timedelta
from enum import StrEnum
from functools import cache
from itertools import chain
from typing import Any, ClassVar

from orchestrator.definition.codec import stored_form
from orchestrator.definition.declarations.guards import Stored
from orchestrator.definition.declarations.process_definition import ProcessDefinition
from orchestrator.definition.declarations.transition_rows import (
    Disposer,
    NoMove,
    TransitionRow,
    park,
)
from orchestrator.definition.messages import Command, Event
from orchestrator.definition.process_manager.rows import During


class StateMachine(ProcessDefinition):
    """Steps, and the rows of each step. Processes start in `first` and end in `finals`."""

    final: ClassVar[Sequence[StrEnum]] = ()
    otherwise: ClassVar[Disposer] = park
    transitions: ClassVar[Sequence[During]]
    Step: ClassVar[type[StrEnum]]
    Data: ClassVar[type[Any]]

    kind: ClassVar[str] = "process_manager"
    rows: ClassVar[Mapping[StrEnum, tuple[TransitionRow, ...]]]
    first: ClassVar[StrEnum]
    finals: ClassVar[frozenset[StrEnum]]
    default_dispositions: ClassVar[Mapping[StrEnum, NoMove]]
    """Step -> the disposition of an event that no row takes. Without an entry the event is parked."""

    @classmethod
    def waiting_steps(cls) -> list[StrEnum]:
        """Return the steps in which a process waits: all but the first and the final ones."""
        return [step for step in cls.Step if step not in {cls.first, *cls.finals}]

    @classmethod
    def default_disposition(cls, step: StrEnum) -> NoMove:
        """Return the disposition of an event that no row of a step takes."""
        return cls.default_dispositions.get(step, "park")

    @classmethod
    def rows_for(cls, step: StrEnum, event: type[Event]) -> list[TransitionRow]:
        """Return the rows of a step for an event, in the order they are tried."""
        return [row for row in cls.rows.get(step, ()) if row.trigger is event]

    @classmethod
    @cache
    def handled_events(cls, step: str) -> frozenset[str]:
        """Return the names of the events that a step takes, ignores or rejects, at least in some cases."""
        here = cls.Step(step)
        return frozenset(
            name for name, event in cls.events.items() if cls._handles(here, event)
        )

    @classmethod
    def _handles(cls, step: StrEnum, event: type[Event]) -> bool:
        rows = cls.rows_for(step, event)
        if any(row.disposition != "park" for row in rows):
            return True
        open_end = not rows or rows[-1].conditional
        return open_end and cls.default_disposition(step) != "park"

    @classmethod
    def deadlines(cls, step: StrEnum) -> list[TransitionRow]:
        """Return the deadline rows of a step, shortest first."""
        rows = [row for row in cls.rows.get(step, ()) if row.event is None]
        return sorted(rows, key=lambda row: row.trigger)  # type: ignore[arg-type,return-value]

    @classmethod
    @cache
    def timers(cls, step: StrEnum) -> tuple[timedelta, ...]:
        """Return the deadlines of a step, counted from entering it, shortest first."""
        return tuple(row.trigger for row in cls.deadlines(step))  # type: ignore[misc]

    @classmethod
    def starting_events(cls) -> frozenset[str]:
        """Return the names of the events that can start a process: those of the first step."""
        return frozenset(
            row.event.__name__
            for row in cls.rows[cls.first]
            if row.event and row.disposition == "move"
        )

    @classmethod
    def all_rows(cls) -> Iterator[TransitionRow]:
        return chain.from_iterable(cls.rows.values())

    @classmethod
    def issued_commands(cls) -> dict[str, type[Command]]:
        """Return the commands that the rows issue, by their names."""
        issued = (issue.command for row in cls.all_rows() for issue in row.issues)
        return {command.__name__: command for command in issued}


def dataclass_fields(cls: type[Any] | None) -> Mapping[str, Field[Any]]:
    """Return the fields of a dataclass by name; none for any other value."""
    fields: Mapping[str, Field[Any]] = getattr(cls, "__dataclass_fields__", {})
    return fields


def copied_fields(data: type[Any], row: TransitionRow) -> Collection[str]:
    """Return the names of the event's fields that a row copies to fields of the data of the same names."""
    own, stored = dataclass_fields(row.event), dataclass_fields(data)
    return (own.keys() & stored.keys()) - set(row.keeps)


def data_guards(cls: type[StateMachine], row: TransitionRow) -> dict[str, list[Any]]:
    """Return the values that guards on data fields accept. Guards on the event's fields limit assigned values."""
    return {
        guard.field: list(map(stored_form, guard.accepts))
        for guard in row.guards
        if not isinstance(guard.accepts, Stored)
        and guard.field not in dataclass_fields(row.event)
    }


def is_required(field: Field[Any]) -> bool:
    """Return whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING
