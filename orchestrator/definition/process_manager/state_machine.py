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
from orchestrator.definition.guards import Stored
from orchestrator.definition.messages import Command, Event
from orchestrator.definition.process_definition import ProcessDefinition
from orchestrator.definition.process_manager.rows import (
    Disposes,
    During,
    Rest,
    TransitionRow,
    park,
)


class StateMachine(ProcessDefinition):
    """Steps and the rows by step; `first` is where processes start, and in `finals` they end."""

    final: ClassVar[Sequence[StrEnum]] = ()
    otherwise: ClassVar[Disposes] = park
    transitions: ClassVar[Sequence[During]]
    Step: ClassVar[type[StrEnum]]
    Data: ClassVar[type[Any]]

    kind: ClassVar[str] = "process_manager"
    rows: ClassVar[Mapping[StrEnum, tuple[TransitionRow, ...]]]
    first: ClassVar[StrEnum]
    finals: ClassVar[frozenset[StrEnum]]
    rests: ClassVar[Mapping[StrEnum, Rest]]
    """Step -> the disposition of an event that no row takes. A missing step parks it."""

    @classmethod
    def waiting_steps(cls) -> list[StrEnum]:
        """The steps in which a process waits: all but the first and the final ones."""
        return [step for step in cls.Step if step not in {cls.first, *cls.finals}]

    @classmethod
    def rest(cls, step: StrEnum) -> Rest:
        """The disposition of an event that no row of a step takes."""
        return cls.rests.get(step, "park")

    @classmethod
    def rows_for(cls, step: StrEnum, event: type[Event]) -> list[TransitionRow]:
        """The rows of a step for an event, in the order they are tried."""
        return [row for row in cls.rows.get(step, ()) if row.trigger is event]

    @classmethod
    @cache
    def listed(cls, step: str) -> frozenset[str]:
        """The names of the events that a step may take, ignore or reject."""
        here = cls.Step(step)
        return frozenset(
            name for name, event in cls.events.items() if cls._lists(here, event)
        )

    @classmethod
    def _lists(cls, step: StrEnum, event: type[Event]) -> bool:
        rows = cls.rows_for(step, event)
        if any(row.disposition != "park" for row in rows):
            return True
        open_end = not rows or rows[-1].conditional
        return open_end and cls.rest(step) != "park"

    @classmethod
    def deadlines(cls, step: StrEnum) -> list[TransitionRow]:
        """The deadline rows of a step, shortest first."""
        rows = [row for row in cls.rows.get(step, ()) if row.event is None]
        return sorted(rows, key=lambda row: row.trigger)  # type: ignore[arg-type,return-value]

    @classmethod
    @cache
    def timers(cls, step: StrEnum) -> tuple[timedelta, ...]:
        """The deadlines of a step, counted from entering it, shortest first."""
        return tuple(row.trigger for row in cls.deadlines(step))  # type: ignore[misc]

    @classmethod
    def starting_events(cls) -> frozenset[str]:
        """The names of the events that can start a process: those of the first step."""
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
        """The commands that the rows issue, by their names."""
        issued = (issue.command for row in cls.all_rows() for issue in row.issues)
        return {command.__name__: command for command in issued}


def fields_of(cls: type[Any] | None) -> Mapping[str, Field[Any]]:
    """The fields of a dataclass by name; none of anything else."""
    fields: Mapping[str, Field[Any]] = getattr(cls, "__dataclass_fields__", {})
    return fields


def copied(data: type[Any], row: TransitionRow) -> Collection[str]:
    """The names of the event's fields that a row copies: fields of the data too, except those that it keeps."""
    return (fields_of(row.event).keys() & fields_of(data).keys()) - set(row.keeps)


def accepts(cls: type[StateMachine], row: TransitionRow) -> dict[str, list[Any]]:
    """The guards on the data. Guards on the event's own fields limit the assigned values instead."""
    return {
        guard.field: list(map(stored_form, guard.accepts))
        for guard in row.guards
        if not isinstance(guard.accepts, Stored)
        and guard.field not in fields_of(row.event)
    }


def required(field: Field[Any]) -> bool:
    """Whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING
