"""What a process manager declares: its steps, its data and the rows between them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, Field
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar

from orchestrator.definition.messages import Event
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
    """By step what becomes of an event that no row takes, where that is not to park it."""

    @classmethod
    def waiting_steps(cls) -> list[StrEnum]:
        """The steps in which a process waits: all but the first and the final ones."""
        return [step for step in cls.Step if step not in {cls.first, *cls.finals}]

    @classmethod
    def rest(cls, step: StrEnum) -> Rest:
        """What becomes in a step of an event that none of its rows takes."""
        return cls.rests.get(step, "park")

    @classmethod
    def rows_for(cls, step: StrEnum, event: type[Event]) -> list[TransitionRow]:
        """The rows of a step for an event, in the order they are tried."""
        return [row for row in cls.rows.get(step, ()) if row.trigger is event]

    @classmethod
    @cache
    def listed(cls, step: str) -> frozenset[str]:
        """The names of the events that a step does not only park: it may take, ignore or reject them."""
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
        rows = [
            row for row in cls.rows.get(step, ()) if isinstance(row.trigger, timedelta)
        ]
        return sorted(rows, key=lambda row: row.trigger)  # type: ignore[arg-type,return-value]

    @classmethod
    @cache
    def timers(cls, step: StrEnum) -> tuple[timedelta, ...]:
        """The deadlines of a step, counted from entering it, shortest first."""
        return tuple(
            row.trigger
            for row in cls.deadlines(step)
            if isinstance(row.trigger, timedelta)
        )

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
        for rows in cls.rows.values():
            yield from rows


def fields_of(cls: type[Any] | None) -> Mapping[str, Field[Any]]:
    """The fields of a dataclass by name; none of anything else."""
    fields: Mapping[str, Field[Any]] = getattr(cls, "__dataclass_fields__", {})
    return fields


def copied(data: type[Any], row: TransitionRow) -> Collection[str]:
    """The names of the event's fields that a row copies: those that the data has too, but for what it keeps."""
    return (fields_of(row.event).keys() & fields_of(data).keys()) - set(row.keeps)


def required(field: Field[Any]) -> bool:
    """Whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING
