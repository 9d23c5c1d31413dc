"""Everything that makes a process manager invalid, raised while its class statement runs.

The proofs are those of python-statemachine's graph checks (one start, all reachable, no trap), and for the guards a
coverage check over the values that the data can really have in a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

from orchestrator.definition.codec import adapter
from orchestrator.definition.invalid import invalid, name_reasons
from orchestrator.definition.messages import Command, Event
from orchestrator.definition.process_manager.reachability import check_reachability
from orchestrator.definition.process_manager.rows import (
    During,
    Issue,
    Stored,
    TransitionRow,
)
from orchestrator.definition.process_manager.state_machine import (
    StateMachine,
    fields_of,
    required,
)
from orchestrator.definition.typing import clash, domain, hints, is_class
from orchestrator.exceptions import InvalidMessage

Machine = type[StateMachine]
Reasons = Iterator[str]


def check_shape(cls: Machine) -> None:
    """The class has steps, data and groups of rows at all.

    Raises:
        InvalidDefinition: naming what is missing.
    """
    for reason in _of_shape(cls):
        invalid(cls.__name__, None, reason)


def check(cls: Machine) -> None:
    """Every rule that the rows must keep by themselves and together.

    Raises:
        InvalidDefinition: naming class, row and reason of the first one that is broken.
    """
    for row, reason in _broken(cls):
        invalid(cls.__name__, row, reason)
    check_reachability(cls)


def _of_shape(cls: Machine) -> Reasons:
    step, data = getattr(cls, "Step", None), getattr(cls, "Data", None)
    if not is_class(step, StrEnum) or len(step) < 2:  # type: ignore[arg-type]  # a class
        yield "declare `class Step(StrEnum)` with at least a first and a final step"
    if not is_dataclass(data):
        yield "declare `Data` as a dataclass"
    groups: Any = cls.transitions
    for group in groups:
        if not isinstance(group, During):
            yield f"transitions must be during(...) groups, not {group!r}"
        for row in group.rows:
            if not isinstance(row, TransitionRow):
                yield f"{group.step} holds {row!r}, which is not a row"


def _broken(cls: Machine) -> Iterator[tuple[TransitionRow | None, str]]:
    for reason in (*name_reasons(cls.name, cls.version), *_of_steps(cls)):
        yield None, reason
    for step in cls.finals & cls.rows.keys():
        yield cls.rows[step][0], f"{step} is final: nothing can happen in it"
    for step, rows in cls.rows.items():
        for row in rows:
            for rule in ROW_RULES:
                for reason in rule(cls, step, row):
                    yield row, reason
    for reason in _of_forms(cls):
        yield None, reason
    yield from _of_names(cls)
    yield from _of_start(cls)


def _of_steps(cls: Machine) -> Reasons:
    for step in [*cls.rows, *cls.finals]:
        if not isinstance(step, cls.Step):
            yield f"{step!r} is not one of its steps"


def _of_trigger(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    if isinstance(row.trigger, timedelta):
        if row.trigger <= timedelta(0):
            yield "a deadline must lie in the future"
        if step == cls.first:
            yield f"{step} is never waited in: put the deadline on a later step"
    elif not is_class(row.trigger, Event):
        yield f"{row.trigger!r} is not an Event class"


def _of_target(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    if row.target is not None and not isinstance(row.target, cls.Step):
        yield f"{row.target!r} is not one of its steps"
    if row.disposition != "move":
        return
    if step == cls.first and row.target is None:
        yield f"a row of {step} must go to a step"
    if row.event and not (
        row.target or row.issues or row.sets or row.escalates or _copied(cls, row)
    ):
        yield "it changes nothing; write ignore(...) if that is meant"


def _copied(cls: Machine, row: TransitionRow) -> set[str]:
    return hints(row.event).keys() & hints(cls.Data).keys() if row.event else set()


def _of_predicates(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    for predicate in row.predicates:
        if getattr(predicate, "__name__", "<lambda>") in ("", "<lambda>"):
            yield "conditions are named functions, so that the diagram can name them"


def _of_guards(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    known = hints(cls.Data) if step != cls.first else {}
    own = hints(row.event) if row.event else {}
    for guard in row.guards:
        if isinstance(guard.accepts, Stored):
            if guard.field not in own or guard.accepts.field not in known:
                yield f"{guard}: needs that field in the event and in the data"
        elif guard.field not in own and guard.field not in known:
            yield f"neither the event nor the data has a field {guard.field!r}"
        elif not guard.accepts:
            yield f"the guard on {guard.field!r} accepts nothing"
        else:
            form = row.event if row.event and guard.field in own else cls.Data
            for value in guard.accepts:
                if not _fits(value, form, guard.field):
                    yield f"{guard.field!r} can never be {value!r}"


def _of_sets(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    for name, value in row.sets:
        if name not in hints(cls.Data):
            yield f"sets {name!r}, which the data does not have"
        if not _fits(value, cls.Data, name):
            yield f"sets {name!r} to {value!r}, which is not its type"


def _fits(value: object, form: type[Any], name: str) -> bool:
    """Whether a field can have this value; only what is plain tells."""
    hint, values = hints(form)[name], domain(form, name)
    if values:
        return value in values
    return not isinstance(hint, type) or isinstance(value, hint)


def _of_copies(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    own = hints(row.event) if row.event else {}
    for name in _copied(cls, row):
        if clash(own[name], hints(cls.Data)[name]):
            yield f"the event's {name!r} does not fit the data's field of that name"


def _of_commands(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    sources = (hints(row.event) if row.event else {}) | hints(cls.Data)
    for issue in row.issues:
        if not is_class(issue.command, Command):
            yield f"{issue.command!r} is not a Command class"
        command = issue.command.__name__
        yield from _of_renames(row, issue)
        for name, field in fields_of(issue.command).items():
            source = dict(issue.renames).get(name, name)
            given = sources.get(source)
            if given is None:
                if required(field):
                    yield f"{command}.{name} cannot be filled: neither data nor event has {source!r}"
            elif clash(given, hints(issue.command)[name]):
                yield f"{source!r} does not fit {command}.{name}"


def _of_renames(row: TransitionRow, issue: Issue) -> Reasons:
    unknown = dict(issue.renames).keys() - fields_of(issue.command).keys()
    shared = {name for other in row.issues for name in fields_of(other.command)}
    if unknown - shared:
        yield f"{issue.command.__name__} has no field {min(unknown)!r} to fill"


def _of_disposition(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    same = cls.rows_for(step, row.event) if row.event else [row]
    if row.disposition != "move" and same[-1] is not row:
        yield "rows for this event after it would never be tried"


ROW_RULES: tuple[Callable[[Machine, StrEnum, TransitionRow], Reasons], ...] = (
    _of_trigger,
    _of_target,
    _of_predicates,
    _of_guards,
    _of_sets,
    _of_copies,
    _of_commands,
    _of_disposition,
)


def _of_forms(cls: Machine) -> Reasons:
    commands = {issue.command for row in cls.all_rows() for issue in row.issues}
    for form in [cls.Data, *cls.events.values(), *commands]:
        try:
            adapter(form)
        except InvalidMessage as error:
            yield str(error)


def _of_names(cls: Machine) -> Iterator[tuple[TransitionRow, str]]:
    """Messages are stored, and found again, by the names of their classes."""
    known: dict[str, type[Any]] = {}
    for row in cls.all_rows():
        issued = [issue.command for issue in row.issues]
        for form in [row.event, *issued] if row.event else issued:
            if known.setdefault(form.__name__, form) is not form:
                yield row, f"two message classes have the name {form.__name__}"


def _of_start(cls: Machine) -> Iterator[tuple[TransitionRow | None, str]]:
    starting = [row for row in cls.rows.get(cls.first, ()) if row.disposition == "move"]
    if not starting:
        yield None, f"no event starts it: {cls.first} has no rows"
    if cls.correlation and cls.correlation not in hints(cls.Data):
        yield None, f"the correlation field {cls.correlation!r} is not in its data"
    for row in starting:
        given = {*_copied(cls, row), *dict(row.sets)}
        for name, field in fields_of(cls.Data).items():
            if required(field) and name not in given:
                yield row, f"starts a process but leaves the data's {name!r} empty"
