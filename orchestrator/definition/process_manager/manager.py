"""Process managers: event + current step -> commands + next step.

After Hohpe and Woolf, Enterprise Integration Patterns (2003), "Process Manager": it only routes. Business
logic belongs in the command handlers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from functools import cache
from typing import Any, ClassVar
from uuid import UUID

from orchestrator.definition.codec import copied
from orchestrator.definition.declarations.guards import Stored
from orchestrator.definition.declarations.process_definition import (
    COMMON,
    IN_ROWS,
    inherited_rows,
)
from orchestrator.definition.declarations.transition_rows import (
    DEFAULTS,
    OUTCOMES,
    EventDecision,
    Issue,
    NoMove,
    TransitionRow,
    park,
)
from orchestrator.definition.graph import Graph
from orchestrator.definition.labels import name_of
from orchestrator.definition.messages import STRICT, Command, Event
from orchestrator.definition.process_manager.coverage import broken_coverage
from orchestrator.definition.process_manager.drawing import manager_graph
from orchestrator.definition.process_manager.rows import AnyStep, During
from orchestrator.definition.process_manager.state_machine import (
    StateMachine,
    copied_fields,
    dataclass_fields,
    is_required,
)
from orchestrator.definition.process_manager.validation import (
    broken_rows,
    shape_mistakes,
)
from orchestrator.definition.refusals import class_mistakes, refuse, refuse_misspelt
from orchestrator.definition.secrets import Secrets, find_secrets

ATTRIBUTES = (*COMMON, "Step", "Data", "transitions", "final", "otherwise")
"""The attributes of a process manager."""

MISPLACED = IN_ROWS | {
    "flow": "the rows of a process manager are its transitions",
    "waits_for": "its transitions name the events",
    "states": "declare class Step(StrEnum)",
    "steps": "declare class Step(StrEnum)",
    "initial": "the first member of Step is the first step",
}
"""The attributes that a process manager does not have, and what to write."""


@dataclass(frozen=True)
class Decision:
    """The consequences of an event or a deadline. The engine carries them out.

    `timers` are the deadlines of the entered step, shortest first; there are none if the process stays in its step.
    `at_once` are the positions of the commands that neither wait for the others nor hold them. `notifies` names the
    recipients of a notice; `owner` is the user name of the new owner, or "" for no change.
    """

    outcome: EventDecision
    step: StrEnum
    data: Any
    commands: tuple[Command, ...] = ()
    timers: tuple[timedelta, ...] = ()
    edge: str = ""
    entered: bool = False
    escalates: bool = False
    at_once: frozenset[int] = frozenset()
    notifies: tuple[str, ...] = ()
    owner: str = ""


class ProcessManager(StateMachine):
    """A state machine of rows. Subclass it with `Step`, `Data` and `transitions`; the class statement checks it.

    An instance is one process at one moment: its id, step and data.
    """

    _graph: ClassVar[Graph]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_misspelt(cls, ATTRIBUTES, MISPLACED)
        if "transitions" not in vars(cls):
            refuse(cls.__name__, class_mistakes(inherited_rows(cls, "transitions")))
            return  # an intermediate class that only shares attributes
        refuse(cls.__name__, class_mistakes(shape_mistakes(cls)))
        cls.name = cls._declared_name()
        cls.first, *_, last = cls.Step
        cls.finals = frozenset(cls.final or [last])
        cls.rows = _numbered(cls)
        cls.default_dispositions = _default_dispositions(cls)
        events = [row.event for row in cls.all_rows() if row.event]
        cls.events = {name_of(event): event for event in events}
        if "__pydantic_config__" not in vars(cls.Data):
            cls.Data.__pydantic_config__ = STRICT
        refuse(cls.__name__, broken_rows(cls))
        cls._graph = manager_graph(cls)
        refuse(cls.__name__, broken_coverage(cls, cls._graph))

    def __init__(self, process_id: UUID, step: str, data: Any) -> None:
        self.process_id = process_id
        self.step = self.Step(step)
        self.data = data

    def execute(
        self, event: Event, execute_command: Callable[[Command], None]
    ) -> Decision:
        """Decide on an event and hand over each command. The caller stores the decision in the same transaction."""
        decision = self.decide(self.step, self.data, event)
        return self._carry_out(decision, execute_command)

    def execute_deadline(
        self, fired: int, execute_command: Callable[[Command], None]
    ) -> Decision:
        """Decide on a deadline of the current step and hand over each command.

        Args:
            fired: the number of the deadline, counted from 0, shortest first.
            execute_command: takes each command.
        """
        decision = self.decide_deadline(self.step, self.data, fired)
        return self._carry_out(decision, execute_command)

    def _carry_out(
        self, decision: Decision, execute_command: Callable[[Command], None]
    ) -> Decision:
        for command in decision.commands:
            execute_command(command)
        return decision

    @classmethod
    def decide(
        cls, step: StrEnum, data: Any, event: Event, *, known: Any = None
    ) -> Decision:
        """Return the decision on an event. A pure function.

        Args:
            step: the current step.
            data: the stored data; None before the process has started.
            event: the event.
            known: the data that an earlier run of this decision stored. Computed fields are taken from it.
        """
        for row in cls.rows_for(step, type(event)):
            if _holds(row, data, event):
                if row.disposition == "move":
                    return cls._move(row, step, data, event, known)
                return Decision(OUTCOMES[row.disposition], step, data)
        return Decision(OUTCOMES[cls.default_disposition(step)], step, data)

    @classmethod
    def decide_deadline(
        cls, step: StrEnum, data: Any, fired: int, *, known: Any = None
    ) -> Decision:
        """Return the decision on the step's deadline number `fired`: "ignored" if its guard does not hold."""
        row = cls.deadlines(step)[fired]
        if _holds(row, data, None):
            return cls._move(row, step, data, None, known)
        return Decision("ignored", step, data)

    @classmethod
    def _move(
        cls,
        row: TransitionRow,
        step: StrEnum,
        data: Any,
        event: Event | None,
        known: Any,
    ) -> Decision:
        data = _changed(cls.Data, row, data, event, known)
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
            at_once=row.at_once,
            notifies=row.notifies,
            owner=row.owner or "",
        )

    @classmethod
    def graph(cls) -> Graph:
        """Return the graph of this definition, drawn from the rows that the engine runs."""
        return cls._graph

    @classmethod
    @cache
    def secrets(cls) -> Secrets:
        return _secrets(cls)


def _secrets(cls: type[StateMachine]) -> Secrets:
    """Return the secret fields, and the fields with the same value."""
    same = [
        (guard.field, guard.accepts.field)
        for row in cls.all_rows()
        for guard in row.guards
        if isinstance(guard.accepts, Stored)
    ]
    same += [x for row in cls.all_rows() for one in row.issues for x in one.renames]
    messages = [*cls.events.values(), *cls.issued_commands().values()]
    return find_secrets([cls.Data], messages, same=same)


def _numbered(cls: type[StateMachine]) -> dict[StrEnum, tuple[TransitionRow, ...]]:
    """Return the rows by step, each move with the id of its edge. The rows of ANY come last."""
    rows: dict[StrEnum, tuple[TransitionRow, ...]] = {}
    count = 0
    for group, step in _steps_in_turn(cls):
        numbered = []
        for row in group.rows:
            row = replace(row, shared=group.steps != (step,))
            if row.disposition == "move":
                row = replace(row, edge=f"e{count}")
                count += 1
            numbered.append(row)
        rows[step] = (*rows.get(step, ()), *numbered)
    return rows


def _steps_in_turn(cls: type[StateMachine]) -> Iterator[tuple[During, StrEnum]]:
    """Yield each group with each of its steps. The groups of ANY come last."""
    for group in cls.transitions:
        if not isinstance(group.steps, AnyStep):
            for step in group.steps:
                yield group, step
    for group in cls.transitions:
        if isinstance(group.steps, AnyStep):
            for step in cls.waiting_steps():
                yield group, step


def _default_dispositions(cls: type[StateMachine]) -> dict[StrEnum, NoMove]:
    """Return the declared `otherwise` of each step, or of the class, without those that park."""
    said = dict.fromkeys(cls.waiting_steps(), cls.otherwise)
    said |= {
        step: group.otherwise
        for group, step in _steps_in_turn(cls)
        if group.otherwise is not None
    }
    return {step: DEFAULTS[one] for step, one in said.items() if one is not park}


def _holds(row: TransitionRow, data: Any, event: Event | None) -> bool:
    return all(
        guard.holds(_field(guard.field, event, data), data) for guard in row.guards
    ) and all(_apply(predicate, data, event) for predicate in row.predicates)


def _apply(function: Callable[..., Any], data: Any, event: Event | None) -> Any:
    """Call a function of a row with copies, so that it cannot change what is stored or what the next one gets."""
    return function(copied(type(data), data), copied(type(event), event))


def _field(name: str, event: Event | None, data: Any) -> object:
    """A field of the event, or else of the stored data."""
    return getattr(event, name) if hasattr(event, name) else getattr(data, name, None)


def _changed(
    form: type[Any], row: TransitionRow, data: Any, event: Event | None, known: Any
) -> Any:
    """Return the data after a row: with copied fields of the event, then with the values that the row sets."""
    changes = {name: getattr(event, name) for name in copied_fields(form, row)}
    changes |= dict(row.sets)
    for name, function in row.computes.items():
        stored = known is not None
        changes[name] = (
            getattr(known, name) if stored else _apply(function, data, event)
        )
    if data is None:
        return form(**changes)
    return replace(data, **changes) if changes else data


def _filled(issue: Issue, data: Any, event: Event | None) -> Command:
    renames = dict(issue.renames)
    values = {}
    for name, field in dataclass_fields(issue.command).items():
        source = renames.get(name, name)
        if hasattr(data, source):
            values[name] = getattr(data, source)
        elif hasattr(event, source):
            values[name] = getattr(event, source)
        elif is_required(field):
            raise AttributeError(source)  # excluded by validation
    return issue.command(**values)
