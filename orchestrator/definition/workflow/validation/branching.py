"""Rules for branches: the field exists, the values are possible, and every value has a branch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.definition.annotations import (
    agree,
    element_type,
    field_type,
    possible_values,
    says_nothing,
    type_text,
)
from orchestrator.definition.labels import value_label
from orchestrator.definition.workflow.plan import Choice, Plan, Vertex
from orchestrator.definition.workflow.rows import ResultPredicate
from orchestrator.definition.workflow.validation.signatures import Parameter, parameters


def broken_branching(plan: Plan) -> Iterator[tuple[object, str]]:
    """Yield the mistakes in the fields and values that decide on branches."""
    for vertex in plan.vertices.values():
        yield from _broken(plan, vertex)


def _broken(plan: Plan, vertex: Vertex) -> Iterator[tuple[object, str]]:
    """Invalid rows of a vertex with the reasons."""
    only = len(vertex.choices) == 1
    for choice in vertex.choices:
        yield from ((choice.row, one) for one in _reasons(vertex, choice, only=only))
    for predicate in vertex.step.predicates:
        yield from ((vertex.row, one) for one in _misfits(predicate, vertex))
    if vertex.each is not None:
        (link,) = plan.incoming[vertex.name]
        source, over = plan[link.source], vertex.each.over
        yield from ((vertex.each, one) for one in _unlistable(source, over))
    if vertex.loop is not None and vertex.ends_loop:
        loop = vertex.loop
        yield from ((loop.row, one) for one in _misfits(loop.until, vertex))


def _reasons(vertex: Vertex, choice: Choice, *, only: bool) -> Iterator[str]:
    for link in choice.links:
        if link.case is not None:
            yield from _misfits(link.case.predicate, vertex)
    if choice.on is not None:
        hint = _field(vertex, choice.on)
        if hint is None:
            yield f"{_what(vertex)} has no field {choice.on!r}"
        else:
            yield from _values(choice, hint, only=only)


def _values(choice: Choice, hint: Any, *, only: bool) -> Iterator[str]:
    """Yield the mistakes in the values of cases. `only`: nothing else follows the step."""
    elements = element_type(hint)
    listed = elements is not None and not says_nothing(hint)
    if listed and choice.exclusive:
        yield f"{choice.on or 'the result'} holds several values: write fork(...) for a branch each"
        return
    possible = possible_values(elements if listed else hint)
    if not possible:
        return
    taken = [link.value for link in choice.links if link.kind == "case"]
    for value in taken:
        if value not in possible:
            yield f"{choice.on or 'the result'} can never be {value_label(value)!r}"
    missing = [value_label(value) for value in possible if value not in taken]
    must = choice.exclusive or (only and not listed)
    if must and missing and choice.default is None:
        what = choice.on or "the result"
        yield f"no case for {what} = {', '.join(missing)}: add it, or say otherwise=..."


def _unlistable(source: Vertex, over: str) -> Iterator[str]:
    hint = _field(source, over)
    if hint is None:
        yield f"{_what(source)} has no field {over!r}"
    elif element_type(hint) is None:
        what = f"the field {over!r}" if over else "the result"
        yield f"{what} of {source.name} is no list"


def _field(vertex: Vertex, name: str) -> Any:
    """Return the annotation of a field of the result; of the result itself if the name is empty."""
    hint = vertex.result_type
    return field_type(hint, name) if name else hint


def _what(vertex: Vertex) -> str:
    return f"the result of {vertex.name}"


def _misfits(predicate: ResultPredicate, vertex: Vertex) -> Iterator[str]:
    """Refuse a predicate whose annotation does not fit the result."""
    first = _first(predicate)
    if first is not None and not agree(vertex.result_type, first.annotation):
        wanted, given = type_text(first.annotation), type_text(vertex.result_type)
        yield f"{predicate.__name__} wants {wanted}, but {vertex.name} gives {given}"


def _first(predicate: ResultPredicate) -> Parameter | None:
    try:
        return next(iter(parameters(predicate)), None)
    except (NameError, TypeError, ValueError):
        return (
            None  # perhaps a builtin; `step_rules` has checked that it takes the result
        )
