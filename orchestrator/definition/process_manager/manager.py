"""Process managers: event + current step -> commands + next step.

After Hohpe and Woolf, Enterprise Integration Patterns (2003), "Process Manager": it only routes; business
logic lives in the command handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar, Literal
from uuid import UUID

from orchestrator.definition.graph import Graph
from orchestrator.definition.identity import kebab, key_in
from orchestrator.definition.messages import STRICT, Command, Event
from orchestrator.definition.process_manager.rows import During, Issue, Row, name_of

Outcome = Literal["moved", "ignored", "rejected", "parked"]


@dataclass(frozen=True)
class Decision:
    """What an event, or a deadline, leads to. Nothing has happened yet: the engine carries it out.

    `timers` are the deadlines of the step that is entered, shortest first; empty when the process stays in its step.
    """

    outcome: Outcome
    step: StrEnum
    data: Any
    commands: tuple[Command, ...] = ()
    timers: tuple[timedelta, ...] = ()
    edge: str = ""
    entered: bool = False
    escalates: bool = False


class ProcessManager:
    """A state machine of rows. Subclass it with `Step`, `Data` and `transitions`; the class statement checks it.

    An instance of it is one process at one moment: its id, step and data.
    """

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    queue: ClassVar[str] = "default"
    correlation: ClassVar[str] = ""
    patience: ClassVar[timedelta | None] = None
    final: ClassVar[Sequence[StrEnum]] = ()
    transitions: ClassVar[Sequence[During]]
    Step: ClassVar[type[StrEnum]]
    Data: ClassVar[type[Any]]

    kind: ClassVar[str] = "process_manager"
    rows: ClassVar[Mapping[StrEnum, tuple[Row, ...]]]
    first: ClassVar[StrEnum]
    finals: ClassVar[frozenset[StrEnum]]
    events: ClassVar[Mapping[str, type[Event]]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "transitions" not in vars(cls):
            return  # an intermediate class that only shares attributes
        from orchestrator.definition.process_manager import validation

        validation.check_shape(cls)
        cls.name = vars(cls).get("name") or kebab(cls.__name__)
        cls.first, cls.finals = _ends(cls)
        cls.rows = _numbered(cls.transitions)
        cls.events = {
            name_of(row.event): row.event for row in cls.all_rows() if row.event
        }
        if "__pydantic_config__" not in vars(cls.Data):
            cls.Data.__pydantic_config__ = STRICT
        validation.check(cls)

    def __init__(self, process_id: UUID, step: str, data: Any) -> None:
        self.process_id = process_id
        self.step = self.Step(step)
        self.data = data

    @classmethod
    def can_handle(cls, event: Event) -> bool:
        """Whether this process manager has any row for the event."""
        return type(event).__name__ in cls.events

    def execute(
        self, event: Event, execute_command: Callable[[Command], None]
    ) -> Decision:
        """Decides on the event and hands each command over; the caller stores the decision in the same transaction."""
        return self._carry_out(
            self.decide(self.step, self.data, event), execute_command
        )

    def execute_deadline(
        self, fired: int, execute_command: Callable[[Command], None]
    ) -> Decision:
        """The same for the current step's deadline number `fired`, counted from 0, shortest first."""
        return self._carry_out(
            self.decide_deadline(self.step, self.data, fired), execute_command
        )

    def _carry_out(
        self, decision: Decision, execute_command: Callable[[Command], None]
    ) -> Decision:
        for command in decision.commands:
            execute_command(command)
        return decision

    @classmethod
    def decide(cls, step: StrEnum, data: Any, event: Event) -> Decision:
        """What the event leads to in this step. Pure: it neither asks nor changes anything outside.

        Args:
            step: the current step.
            data: the stored data; None before the process has started.
            event: what has happened.
        """
        for row in cls.rows_for(step, type(event)):
            if row.disposition == "ignore":
                return Decision("ignored", step, data)
            if row.disposition == "reject":
                return Decision("rejected", step, data)
            if _holds(row, data, event):
                return cls._move(row, step, data, event)
        return Decision("parked", step, data)

    @classmethod
    def decide_deadline(cls, step: StrEnum, data: Any, fired: int) -> Decision:
        """What the step's deadline number `fired` leads to; "ignored" when its guard does not hold."""
        row = cls.deadlines(step)[fired]
        if _holds(row, data, None):
            return cls._move(row, step, data, None)
        return Decision("ignored", step, data)

    @classmethod
    def _move(cls, row: Row, step: StrEnum, data: Any, event: Event | None) -> Decision:
        data = _changed(cls.Data, row, data, event)
        entered = row.target is not None
        target = row.target if row.target is not None else step
        return Decision(
            "moved",
            target,
            data,
            commands=tuple(_filled(issue, data, event) for issue in row.issues),
            timers=cls.timers(target) if entered else (),
            edge=row.edge,
            entered=entered,
            escalates=row.escalates,
        )

    @classmethod
    def rows_for(cls, step: StrEnum, event: type[Event]) -> list[Row]:
        """The rows of a step for an event, in the order they are tried."""
        return [row for row in cls.rows.get(step, ()) if row.trigger is event]

    @classmethod
    def deadlines(cls, step: StrEnum) -> list[Row]:
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
    def correlation_key(cls, message: object) -> str:
        """The business key in an event or in data, as text; "" when it carries none."""
        return key_in(message, cls.correlation)

    @classmethod
    def all_rows(cls) -> Iterator[Row]:
        for rows in cls.rows.values():
            yield from rows

    @classmethod
    @cache
    def graph(cls) -> Graph:
        """The picture of this definition, from the same rows the engine runs."""
        from orchestrator.definition.process_manager.drawing import graph_of

        return graph_of(cls)

    @staticmethod
    def summary(data: Any) -> str:
        """One line in business terms for lists; override it. At most 200 characters are kept."""
        return ""


def _ends(cls: type[ProcessManager]) -> tuple[StrEnum, frozenset[StrEnum]]:
    steps = list(cls.Step)
    return steps[0], frozenset(cls.final or steps[-1:])


def _numbered(transitions: Sequence[During]) -> dict[StrEnum, tuple[Row, ...]]:
    """The rows by step, each move with the id of its edge."""
    rows: dict[StrEnum, tuple[Row, ...]] = {}
    count = 0
    for group in transitions:
        numbered = []
        for row in group.rows:
            if row.disposition == "move":
                row = replace(row, edge=f"e{count}")
                count += 1
            numbered.append(row)
        rows[group.step] = (*rows.get(group.step, ()), *numbered)
    return rows


def _holds(row: Row, data: Any, event: Event | None) -> bool:
    return all(
        guard.holds(_field(guard.field, event, data), data) for guard in row.guards
    ) and all(predicate(data, event) for predicate in row.predicates)


def _field(name: str, event: Event | None, data: Any) -> object:
    """A field of the event, or else of the stored data."""
    return getattr(event, name) if hasattr(event, name) else getattr(data, name, None)


def _changed(form: type[Any], row: Row, data: Any, event: Event | None) -> Any:
    """The data after a row: the event's fields of the same name, then what the row sets."""
    names = field_names(form)
    changes = {
        name: getattr(event, name) for name in field_names(type(event)) if name in names
    }
    changes |= row.sets
    if data is None:
        return form(**changes)
    return replace(data, **changes) if changes else data


def _filled(issue: Issue, data: Any, event: Event | None) -> Command:
    renames = dict(issue.renames)
    values = {}
    for item in fields(issue.command):
        source = renames.get(item.name, item.name)
        if hasattr(data, source):
            values[item.name] = getattr(data, source)
        elif hasattr(event, source):
            values[item.name] = getattr(event, source)
        elif item.default is MISSING and item.default_factory is MISSING:
            raise AttributeError(source)  # excluded by validation
    return issue.command(**values)


def field_names(cls: type[Any]) -> Collection[str]:
    """The names of a dataclass's fields; none for anything else."""
    names: Collection[str] = getattr(cls, "__dataclass_fields__", {}).keys()
    return names
