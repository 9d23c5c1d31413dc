"""Everything that makes a process manager invalid, raised while its class statement runs.

The proofs are those of python-statemachine's graph checks (one start, all reachable, no trap), and for the guards a
coverage check over the values that the data can really have in a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, is_dataclass
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NoReturn

from orchestrator.definition.codec import adapter
from orchestrator.definition.domains import domain, hints
from orchestrator.definition.identity import mistakes
from orchestrator.definition.messages import Command, Event
from orchestrator.definition.process_manager.coverage import check_coverage
from orchestrator.definition.process_manager.reachability import check_reachability
from orchestrator.definition.process_manager.rows import (
    During,
    Guard,
    Issue,
    Row,
    Stored,
)
from orchestrator.exceptions import InvalidDefinition, InvalidMessage

if TYPE_CHECKING:
    from orchestrator.definition.process_manager.manager import ProcessManager

Definition = type["ProcessManager"]


def check_shape(cls: Definition) -> None:
    """The class has steps, data and groups of rows at all.

    Raises:
        InvalidDefinition: naming what is missing.
    """
    step, data = getattr(cls, "Step", None), getattr(cls, "Data", None)
    if not (isinstance(step, type) and issubclass(step, StrEnum) and len(step) > 1):
        refuse(
            cls,
            None,
            "declare `class Step(StrEnum)` with at least a first and a final step",
        )
    if not is_dataclass(data):
        refuse(cls, None, "declare `Data` as a dataclass")
    for group in cls.transitions:
        if not isinstance(group, During):
            refuse(cls, None, f"transitions must be during(...) groups, not {group!r}")
        for row in group.rows:
            if not isinstance(row, Row):
                refuse(cls, None, f"{group.step} holds {row!r}, which is not a row")


def check(cls: Definition) -> None:
    """Every rule that the rows must keep.

    Raises:
        InvalidDefinition: naming class, row and reason of the first one that is broken.
    """
    for mistake in mistakes(cls.name, cls.version):
        refuse(cls, None, mistake)
    _check_steps(cls)
    for step, rows in cls.rows.items():
        for row in rows:
            for rule in ROW_RULES:
                rule(cls, step, row)
    _check_forms(cls)
    _check_names(cls)
    _check_start(cls)
    check_reachability(cls)
    check_coverage(cls)


def refuse(cls: Definition, row: Row | None, reason: str) -> NoReturn:
    raise InvalidDefinition(cls.__name__, "" if row is None else str(row), reason)


def _check_steps(cls: Definition) -> None:
    for step in [*cls.rows, *cls.finals]:
        if not isinstance(step, cls.Step):
            refuse(cls, None, f"{step!r} is not one of its steps")
    for step in cls.finals & cls.rows.keys():
        refuse(cls, cls.rows[step][0], f"{step} is final: nothing can happen in it")


def _check_trigger(cls: Definition, step: StrEnum, row: Row) -> None:
    if isinstance(row.trigger, timedelta):
        if row.trigger <= timedelta(0):
            refuse(cls, row, "a deadline must lie in the future")
        if step == cls.first:
            refuse(
                cls, row, f"{step} is never waited in: put the deadline on a later step"
            )
    elif not _is_class(row.trigger, Event):
        refuse(cls, row, f"{row.trigger!r} is not an Event class")


def _check_target(cls: Definition, step: StrEnum, row: Row) -> None:
    if row.target is not None and not isinstance(row.target, cls.Step):
        refuse(cls, row, f"{row.target!r} is not one of its steps")
    if row.disposition != "move":
        return
    if step == cls.first and row.target is None:
        refuse(cls, row, f"a row of {step} must go to a step")
    if row.event and not (
        row.target or row.issues or row.sets or row.escalates or _copied(cls, row)
    ):
        refuse(cls, row, "it changes nothing; write ignore(...) if that is meant")


def _copied(cls: Definition, row: Row) -> set[str]:
    return hints(row.event).keys() & hints(cls.Data).keys() if row.event else set()


def _check_predicates(cls: Definition, step: StrEnum, row: Row) -> None:
    for predicate in row.predicates:
        name = getattr(predicate, "__name__", "")
        if not name or name == "<lambda>":
            refuse(
                cls,
                row,
                "conditions are named functions, so that the diagram can name them",
            )


def _check_guards(cls: Definition, step: StrEnum, row: Row) -> None:
    known = hints(cls.Data) if step != cls.first else {}
    own = hints(row.event) if row.event else {}
    for guard in row.guards:
        if isinstance(guard.accepts, Stored):
            if guard.field not in own or guard.accepts.field not in known:
                refuse(
                    cls, row, f"{guard}: needs that field in the event and in the data"
                )
        elif guard.field not in own and guard.field not in known:
            refuse(
                cls, row, f"neither the event nor the data has a field {guard.field!r}"
            )
        else:
            form = row.event if row.event and guard.field in own else cls.Data
            _check_guard_values(cls, row, guard, form)


def _check_guard_values(
    cls: Definition, row: Row, guard: Guard, form: type[Any]
) -> None:
    accepts = guard.accepts if isinstance(guard.accepts, tuple) else ()
    if not accepts:
        refuse(cls, row, f"the guard on {guard.field!r} accepts nothing")
    values = domain(form, guard.field)
    for value in accepts:
        fits = (
            value in values
            if values
            else isinstance(value, _plain(hints(form)[guard.field]))
        )
        if not fits:
            refuse(cls, row, f"{guard.field!r} can never be {value!r}")


def _check_sets(cls: Definition, step: StrEnum, row: Row) -> None:
    for name, value in row.sets:
        if name not in hints(cls.Data):
            refuse(cls, row, f"sets {name!r}, which the data does not have")
        values = domain(cls.Data, name)
        if not (
            value in values
            if values
            else isinstance(value, _plain(hints(cls.Data)[name]))
        ):
            refuse(cls, row, f"sets {name!r} to {value!r}, which is not its type")


def _check_copies(cls: Definition, step: StrEnum, row: Row) -> None:
    for name in _copied(cls, row):
        own, stored = hints(row.event)[name], hints(cls.Data)[name]  # type: ignore[arg-type]
        if _clash(own, stored):
            refuse(
                cls,
                row,
                f"the event's {name!r} does not fit the data's field of that name",
            )


def _check_commands(cls: Definition, step: StrEnum, row: Row) -> None:
    for issue in row.issues:
        if not _is_class(issue.command, Command):
            refuse(cls, row, f"{issue.command!r} is not a Command class")
        form = issue.command.__dataclass_fields__
        _check_renames(cls, row, issue)
        for name, item in form.items():
            source = dict(issue.renames).get(name, name)
            given = hints(cls.Data).get(source) or (
                row.event and hints(row.event).get(source)
            )
            if given is None:
                if item.default is MISSING and item.default_factory is MISSING:
                    reason = f"{issue.command.__name__}.{name} cannot be filled: neither data nor event has {source!r}"
                    refuse(cls, row, reason)
            elif _clash(given, hints(issue.command)[name]):
                refuse(
                    cls, row, f"{source!r} does not fit {issue.command.__name__}.{name}"
                )


def _check_renames(cls: Definition, row: Row, issue: Issue) -> None:
    unknown = dict(issue.renames).keys() - issue.command.__dataclass_fields__.keys()
    shared = {
        name for other in row.issues for name in other.command.__dataclass_fields__
    }
    if unknown - shared:
        refuse(
            cls, row, f"{issue.command.__name__} has no field {min(unknown)!r} to fill"
        )


def _check_disposition(cls: Definition, step: StrEnum, row: Row) -> None:
    if row.disposition == "move":
        return
    same = cls.rows_for(step, row.trigger)  # type: ignore[arg-type]
    if same[-1] is not row:
        refuse(cls, row, "rows for this event after it would never be tried")


ROW_RULES: tuple[Callable[[Definition, StrEnum, Row], None], ...] = (
    _check_trigger,
    _check_target,
    _check_predicates,
    _check_guards,
    _check_sets,
    _check_copies,
    _check_commands,
    _check_disposition,
)


def _check_forms(cls: Definition) -> None:
    commands = {issue.command for row in cls.all_rows() for issue in row.issues}
    for form in [cls.Data, *cls.events.values(), *commands]:
        try:
            adapter(form)
        except InvalidMessage as error:
            refuse(cls, None, str(error))


def _check_names(cls: Definition) -> None:
    """Messages are stored, and found again, by the names of their classes."""
    known: dict[str, type[Any]] = {}
    for row in cls.all_rows():
        issued = [issue.command for issue in row.issues]
        for form in [row.event, *issued] if row.event else issued:
            if known.setdefault(form.__name__, form) is not form:
                reason = f"two message classes have the name {form.__name__}"
                refuse(cls, row, reason)


def _check_start(cls: Definition) -> None:
    starting = [row for row in cls.rows.get(cls.first, ()) if row.disposition == "move"]
    if not starting:
        refuse(cls, None, f"no event starts it: {cls.first} has no rows")
    if cls.correlation and cls.correlation not in hints(cls.Data):
        refuse(
            cls, None, f"the correlation field {cls.correlation!r} is not in its data"
        )
    for row in starting:
        given = {*_copied(cls, row), *dict(row.sets)}
        for name, item in cls.Data.__dataclass_fields__.items():
            if (
                item.default is MISSING
                and item.default_factory is MISSING
                and name not in given
            ):
                refuse(
                    cls, row, f"starts a process but leaves the data's {name!r} empty"
                )


def _is_class(value: object, base: type[Any]) -> bool:
    return isinstance(value, type) and issubclass(value, base)


def _clash(given: Any, wanted: Any) -> bool:
    """Whether two annotations can certainly not be the same value; what is not plain is left to the codec."""
    if not (isinstance(given, type) and isinstance(wanted, type)):
        return False
    return not (issubclass(given, wanted) or issubclass(wanted, given))


def _plain(hint: Any) -> type[Any]:
    return hint if isinstance(hint, type) else object
