"""Rules for single rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from orchestrator.definition.annotations import is_class
from orchestrator.definition.declarations.transition_rows import TransitionRow
from orchestrator.definition.messages import Event
from orchestrator.definition.refusals import why_unnamed
from orchestrator.definition.workflow.rows import (
    Case,
    Catch,
    Each,
    FlowRow,
    Fork,
    Join,
    Needs,
    Repeat,
    Route,
    Start,
    Then,
    Undo,
    error_types,
    name,
)
from orchestrator.definition.workflow.steps import Step
from orchestrator.definition.workflow.validation.step_rules import (
    condition_mistakes,
    is_int_from,
    why_no_step,
)


def row_mistakes(row: FlowRow | TransitionRow) -> Iterator[str]:
    """Yield the mistakes in a row."""
    steps = list(_steps(row))
    for step in steps:
        if reason := why_no_step(step):
            yield reason
            return  # the rules below compare names
    yield from RULES[type(row)](row)


def _steps(row: Any) -> Iterator[Any]:
    """Every step that a row names."""
    given = vars(row)
    for field in ("step", "steps", "needed", "into", "do", "to", "then", "otherwise"):
        value = given.get(field)
        if value is None:
            continue
        if isinstance(value, Step):
            yield value
        elif isinstance(value, Mapping):
            yield from value.values()
        elif isinstance(value, Sequence) and not isinstance(value, str):
            yield from (one for one in value if not isinstance(one, Case))
        else:
            yield value
    for case in _cases(row):
        yield case.to


def _cases(row: Any) -> Iterable[Case]:
    into = getattr(row, "into", ())
    branches = into if isinstance(into, Sequence) else ()
    return [
        one for one in (*getattr(row, "cases", ()), *branches) if isinstance(one, Case)
    ]


def _start(row: Start) -> Iterator[str]:
    if not row.steps:
        yield "name the steps that start"
    yield from _distinct(row.steps)


def _then(row: Then) -> Iterator[str]:
    if len(row.steps) < 2:
        yield "name at least two steps"


def _needs(row: Needs) -> Iterator[str]:
    if not row.needed:
        yield f"name what {name(row.step)} needs"
    yield from _distinct(row.needed)


def _on(row: Any) -> Iterator[str]:
    if row.on is not None and not isinstance(row.on, str):
        yield f"on={row.on!r} must be the name of a field"


def _fork(row: Any) -> Iterator[str]:
    yield from _on(row)
    if not isinstance(row.into, Mapping | Sequence) or not row.into:
        yield "name the branches: into=[...], or into={value: step} with on=..."
    elif isinstance(row.into, Mapping) != (row.on is not None):
        yield "into={value: step} and on=... belong together"
    elif isinstance(row.into, Sequence):
        yield from _distinct([one for one in row.into if not isinstance(one, Case)])
        yield from _conditions(_cases(row))
        if row.otherwise is not None and not _cases(row):
            yield "otherwise needs branches with a condition"


def _join(row: Join) -> Iterator[str]:
    if len(row.steps) < 2:
        yield "name at least two steps that come together"
    yield from _distinct(row.steps)
    named = ("all", "every", "any")
    if row.wait_for not in named and not is_int_from(row.wait_for, 1):
        yield f'wait_for={row.wait_for!r} must be "all", "every", "any" or a whole number from 1'
    elif isinstance(row.wait_for, int) and row.wait_for > len(row.steps):
        yield f"wait_for={row.wait_for} is more than the {len(row.steps)} steps that come together"
    if row.on_failure not in ("wait", "fail_fast"):
        yield f'on_failure={row.on_failure!r} must be "wait" or "fail_fast"'
    if row.rest not in ("run", "cancel"):
        yield f'rest={row.rest!r} must be "run" or "cancel"'


def _each(row: Any) -> Iterator[str]:
    if not isinstance(row.over, str):
        yield "over is the name of a field; empty when the result itself is the list"
    if not isinstance(row.item, str) or not row.item.isidentifier():
        yield f"item={row.item!r} must be the name of a parameter"
    if row.window is not None and not is_int_from(row.window, 1):
        yield f"window={row.window!r} must be a whole number from 1"
    share = type(row.tolerate) is float and 0 <= row.tolerate <= 1
    if not share and not is_int_from(row.tolerate, 0):
        yield f"tolerate={row.tolerate!r} must be a whole number from 0, or a share between 0.0 and 1.0"


def _route(row: Any) -> Iterator[str]:
    yield from _on(row)
    if (row.on is None) != (row.to is None) or bool(row.cases) == bool(row.to):
        yield "give either on=... with to={value: step}, or cases"
        return
    if row.to is not None and not isinstance(row.to, Mapping):
        yield "to={value: step} maps the field's values to steps"
    for case in row.cases:
        if not isinstance(case, Case):
            yield f"{name(case)} needs a condition: case(predicate, to={name(case)})"
            return
        if type(case.priority) is not int:
            yield f"priority={case.priority!r} must be a whole number"
    yield from _conditions(row.cases)
    if row.cases and row.otherwise is None:
        yield "predicates may all fail: say where it goes otherwise=..."


def _repeat(row: Repeat) -> Iterator[str]:
    if not row.steps:
        yield "name the steps that are repeated"
    yield from _distinct(row.steps)
    if not is_int_from(row.at_most, 1):
        yield f"at_most={row.at_most!r} must be a whole number from 1: a loop needs a bound"
    yield from condition_mistakes(row.until)


def _catch(row: Catch) -> Iterator[str]:
    if not row.steps:
        yield "name the steps whose failure is caught"
    yield from _distinct(row.steps)
    if row.error == ():
        yield "name the errors that are caught"
    for error in error_types(row.error):
        if not is_class(error, Exception):
            yield f"{error!r} is not an Exception class"
    if name(row.to) in map(name, row.steps):
        yield f"{name(row.to)} cannot catch its own failure"


def _undo(row: Undo) -> Iterator[str]:
    by = row.by.function if isinstance(row.by, Step) else row.by
    if reason := why_unnamed(by, "what undoes a step"):
        yield reason
    if isinstance(row.by, Step) and row.by.optional:
        yield f"{row.by.name} undoes {name(row.step)}, so it cannot be optional: people hear of an effect that stays"


def _transition(row: TransitionRow) -> Iterator[str]:
    if row.disposition != "ignore":
        yield "a flow has no rows of process managers, except ignore(Event)"
    elif not is_class(row.trigger, Event):
        yield f"{row.trigger!r} is not an Event class"
    elif row.conditional:
        yield "in a flow it has no guards: a wait with guards says otherwise=ignore"


def _distinct(steps: Sequence[Any]) -> Iterator[str]:
    seen = set[str]()
    for step in map(name, steps):
        if step in seen:
            yield f"{step} is named twice"
        seen.add(step)


def _conditions(cases: Iterable[Case]) -> Iterator[str]:
    for case in cases:
        yield from condition_mistakes(case.predicate)


RULES: dict[type[FlowRow | TransitionRow], Callable[[Any], Iterator[str]]] = {
    Start: _start,
    Then: _then,
    Needs: _needs,
    Fork: _fork,
    Join: _join,
    Each: _each,
    Route: _route,
    Repeat: _repeat,
    Catch: _catch,
    Undo: _undo,
    TransitionRow: _transition,
}
