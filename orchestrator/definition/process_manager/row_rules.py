"""Rules for single rows of a process manager, with its data and messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from datetime import timedelta
from difflib import get_close_matches
from enum import StrEnum
from typing import Any, Literal

from orchestrator.definition.annotations import (
    Unknown,
    agree,
    domain,
    hints,
    is_class,
    return_type,
    takes_arguments,
    type_text,
    without_none,
)
from orchestrator.definition.codec import encode_as
from orchestrator.definition.declarations.guards import Stored
from orchestrator.definition.declarations.transition_rows import Issue, TransitionRow
from orchestrator.definition.labels import name_of
from orchestrator.definition.messages import Command, Event
from orchestrator.definition.process_manager.state_machine import (
    StateMachine,
    copied_fields,
    dataclass_fields,
    is_required,
)
from orchestrator.definition.refusals import (
    DELAY,
    is_delay,
    why_deferred,
    why_not_plain,
)
from orchestrator.exceptions import InvalidMessage
from orchestrator.text import PLAIN_NAME, is_plain_name

Machine = type[StateMachine]
Reasons = Iterator[str]

CONTAINERS = (list, tuple, dict, set, frozenset)


def why_no_member(value: object, steps: Any) -> str:
    """Return why a value is not a step, and suggest the step whose text is the same or similar."""
    reason = f"{value!r} is not one of its steps"
    texts = {text: step.name for step in steps for text in (str(step), step.name)}
    meant = get_close_matches(str(value), texts, n=1, cutoff=0.8)
    return f"{reason}: write Step.{texts[meant[0]]}" if meant else reason


def _of_trigger(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    if isinstance(row.trigger, timedelta):
        if row.trigger <= timedelta(0):
            yield "a deadline must lie in the future"
        elif not is_delay(row.trigger):
            yield f"a deadline must be a {DELAY}"
        if step == cls.first:
            yield f"{step} is never waited in: put the deadline on a later step"
    elif not is_class(row.trigger, Event):
        yield f"{row.trigger!r} is not an Event class"


def _of_target(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    if row.target is not None and not isinstance(row.target, cls.Step):
        yield why_no_member(row.target, cls.Step)
    if row.target_before is not None:
        yield f"it goes to {row.target_before} and to {row.target}: a row has one .go_to"
    if row.disposition != "move":
        return
    if step == cls.first and row.target is None:
        yield f"a row of {step} must go to a step"
    changes = row.target or row.issues or row.sets or row.escalates
    if row.event and not (changes or copied_fields(cls.Data, row)):
        yield "it changes nothing; write ignore(...) if that is meant"
    if not row.event and not (changes or row.notifies or row.owner is not None):
        yield "it does nothing: add .go_to, .issue, .set, .escalate, .notify or .assign"


def _of_predicates(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    for predicate in row.predicates:
        if getattr(predicate, "__name__", "<lambda>") in ("", "<lambda>"):
            yield "conditions are named functions, so that the diagram can name them"
        elif later := why_deferred(predicate):
            yield f"{name_of(predicate)} {later}: a condition is a plain function"
        elif not takes_arguments(predicate, 2):
            yield f"{name_of(predicate)} must take the data and the event"


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
    names = [name for name, _ in row.sets]
    given = dataclass_fields(row.event).keys() if row.event else set[str]()
    for name, value in row.sets:
        if names.count(name) > 1:
            yield f"sets {name!r} twice"
        elif name not in hints(cls.Data):
            yield f"sets {name!r}, which the data does not have"
        elif callable(value):
            yield from _of_function(cls, name, value)
        elif isinstance(value, str) and type(value) is str and value in given - {name}:
            yield (
                f"sets {name!r} to the text {value!r}, and {name_of(row.event)} has a field of that name: write a "
                "function of data and event that returns the field, or an enumeration's member for the text"
            )
        elif not _fits(value, cls.Data, name):
            yield f"sets {name!r} to {value!r}, which is not its type"


def _of_function(cls: Machine, name: str, function: Any) -> Reasons:
    """Requires a plain, named function of the data and the event."""
    if reason := why_not_plain(function, f"what sets {name!r}"):
        yield reason
    elif not takes_arguments(function, 2):
        yield f"{name_of(function)} must take the data and the event"
    elif not agree(return_type(function), hints(cls.Data)[name]):
        yield f"what {name_of(function)} returns does not fit the data's field {name!r}"


def _of_keeps(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    shared = dataclass_fields(row.event).keys() & dataclass_fields(cls.Data).keys()
    for name in row.keeps:
        if name not in shared:
            yield f"keeps {name!r}, which is no field of both the event and the data"
        elif name in dict(row.sets):
            yield f"keeps {name!r} and sets it"
        elif row.disposition != "move":
            yield "only a row that moves copies fields"


def _fits(value: object, form: type[Any], name: str) -> bool:
    """Whether a field can have this value."""
    hint, values = hints(form)[name], domain(form, name)
    if values:
        return value in values
    try:
        encode_as(hint, value, exact=False)
    except InvalidMessage:
        return False
    return True


def _of_copies(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    for name in sorted(copied_fields(cls.Data, row) - dict(row.sets).keys()):
        given, wanted = _in_event(cls, row, name), hints(cls.Data)[name]
        if not agree(given, wanted):
            why = _why(given, wanted)
            yield f"the event's {name!r} does not fit the data's field of that name{why}"


def _in_event(cls: Machine, row: TransitionRow, name: str) -> Any:
    """The annotation of an event's field, narrowed by the row's guards."""
    return _guarded(cls, row, name, hints(row.event)[name] if row.event else Unknown)


def _in_data(cls: Machine, row: TransitionRow, name: str) -> Any:
    """The annotation of a data field after the row."""
    sets = dict(row.sets)
    if name in row.computes or name in row.keeps:
        return hints(cls.Data)[name]
    if name in sets:
        return _of_value(sets[name], hints(cls.Data)[name])
    if name in copied_fields(cls.Data, row):
        return _in_event(cls, row, name)
    return _guarded(cls, row, name, hints(cls.Data)[name])


def _of_value(value: object, hint: Any) -> Any:
    """The annotation of a field's value: the value itself, or the field's annotation if it is a container."""
    compound = isinstance(value, CONTAINERS) or is_dataclass(value)
    return without_none(hint) if compound else Literal[value]


def _guarded(cls: Machine, row: TransitionRow, name: str, hint: Any) -> Any:
    for guard in row.guards:
        if guard.field == name:
            if isinstance(guard.accepts, Stored):
                return hints(cls.Data)[guard.accepts.field]
            return Literal[guard.accepts]
    return hint


def _why(given: Any, wanted: Any) -> str:
    """Spells two annotations out, unless both are plain classes."""
    plainly = isinstance(given, type) and isinstance(wanted, type)
    return "" if plainly else f": {type_text(given)} is not always {type_text(wanted)}"


def _of_commands(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    sources = {name: _in_event(cls, row, name) for name in hints(row.event or Event)}
    sources |= {name: _in_data(cls, row, name) for name in hints(cls.Data)}
    for issue in row.issues:
        if not is_class(issue.command, Command):
            yield f"{issue.command!r} is not a Command class"
        command = issue.command.__name__
        yield from _of_renames(row, issue)
        for name, field in dataclass_fields(issue.command).items():
            source = dict(issue.renames).get(name, name)
            given = sources.get(source)
            if given is None:
                if is_required(field):
                    yield f"{command}.{name} cannot be filled: neither data nor event has {source!r}"
            elif not agree(given, wanted := hints(issue.command)[name]):
                yield f"{source!r} does not fit {command}.{name}{_why(given, wanted)}"


def _of_renames(row: TransitionRow, issue: Issue) -> Reasons:
    unknown = dict(issue.renames).keys() - dataclass_fields(issue.command).keys()
    shared = {name for other in row.issues for name in dataclass_fields(other.command)}
    if unknown - shared:
        yield f"{issue.command.__name__} has no field {min(unknown)!r} to fill"


def _of_disposition(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    changes = row.sets or row.issues or row.target is not None
    acts = changes or row.escalates or row.notifies or row.owner is not None
    if row.disposition != "move" and acts:
        yield (
            "only a row that moves sets fields, issues commands, escalates, notifies, assigns or goes to a step: "
            "begin it with when(...)"
        )
    same = cls.rows_for(step, row.event) if row.event else [row]
    if row.disposition != "move" and not row.conditional and same[-1] is not row:
        yield "rows for this event after it would never be tried"


def _of_notices(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    """Checks recipients as names only: each installation's settings define them."""
    if row.notifies and row.event and row.disposition == "move":
        yield "only a deadline notifies: begin the row with after(...)"
    given: tuple[Any, ...] = row.notifies  # code may run without a type checker
    for name in dict.fromkeys(given):
        named = isinstance(name, str) and is_plain_name(name) and len(name) <= 50
        if not named:
            yield f"{name!r} is no name of a recipient: it has up to 50 letters, and is {PLAIN_NAME}"
        elif given.count(name) > 1:
            yield f"notifies {name!r} twice"


def _of_owner(cls: Machine, step: StrEnum, row: TransitionRow) -> Reasons:
    """Checks the owner as a name only: each installation has its own users."""
    if row.owner is None:
        return
    if row.event and row.disposition == "move":
        yield "only a deadline assigns: begin the row with after(...)"
    given: Any = row.owner  # code may run without a type checker
    named = isinstance(given, str) and given.strip() == given and is_plain_name(given)
    if not named or len(given) > 150:
        yield f"{given!r} is no name of a person: it has up to 150 letters, and is {PLAIN_NAME}"


ROW_RULES: tuple[Callable[[Machine, StrEnum, TransitionRow], Reasons], ...] = (
    _of_trigger,
    _of_target,
    _of_predicates,
    _of_guards,
    _of_sets,
    _of_keeps,
    _of_copies,
    _of_commands,
    _of_disposition,
    _of_notices,
    _of_owner,
)
