"""The check that the rows for one event in one step cover every case once.

The engine tries rows with a named predicate or a `stored(...)` guard in order, so these may overlap. The other rows
must divide the possible values of the data without gap or overlap. A last row without a guard takes the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import pairwise, product

from orchestrator.definition.annotations import domain, hints
from orchestrator.definition.codec import stored_form
from orchestrator.definition.dataflow import PossibleValues, can_hold, follow_edges
from orchestrator.definition.declarations.guards import Stored, guard_label
from orchestrator.definition.declarations.transition_rows import TransitionRow
from orchestrator.definition.graph import Graph
from orchestrator.definition.messages import Event
from orchestrator.definition.process_manager.state_machine import (
    StateMachine,
    data_guards,
)

CellRows = list[TransitionRow]
Cases = dict[str, tuple[object, ...]]
"""Field -> its values to try."""

BrokenRows = Iterator[tuple[TransitionRow, str]]
"""Invalid rows with their reasons."""

MAX_CASES = 10_000


def broken_coverage(cls: type[StateMachine], graph: Graph) -> BrokenRows:
    """Yield the rows that overlap or can never be taken, and the cases that no row takes."""
    values, _ = follow_edges(graph, str(cls.first), {})
    yield from _never_held(cls, values)
    for step in cls.rows:
        for event in cls.events.values():
            rows = cls.rows_for(step, event)
            if rows:
                possible = _possible(cls, event, rows, values[str(step)])
                yield from _of_cell(step, rows, possible)


def _never_held(
    cls: type[StateMachine], values: dict[str, PossibleValues]
) -> BrokenRows:
    """Yield the rows whose guards can never hold. A shared row must hold in one of its steps."""
    held: list[TransitionRow] = []
    never: list[TransitionRow] = []
    for step, rows in cls.rows.items():
        for row in rows:
            here = values.get(str(step))
            holds = here is not None and can_hold(data_guards(cls, row), here)
            (held if holds else never).append(row)
    for row in never:
        if not (row.shared and any(one.shared and one == row for one in held)):
            yield row, "its guard can never hold: the data never has these values here"
    for step in cls.rows:
        if str(step) not in values:
            yield from _unreached(step, cls.rows[step])


def _unreached(step: StrEnum, rows: Sequence[TransitionRow]) -> BrokenRows:
    for row in rows[:1]:
        yield row, f"{step} can never be reached: no guard on the way to it can hold"


def _of_cell(step: StrEnum, rows: CellRows, possible: Cases | None) -> BrokenRows:
    for row, later in pairwise(rows):
        if not row.conditional:
            where = f" in {step}" if later.shared else ""
            yield (
                later,
                f"never tried{where}: the row {str(row)!r} before it takes every case",
            )
    if possible is None:
        yield from _gap(step, rows, "values that cannot be listed")
        return
    for combination in product(*possible.values()):
        case = dict(zip(possible, combination, strict=True))
        yield from _of_case(step, rows, case)


def _possible(
    cls: type[StateMachine],
    event: type[Event],
    rows: CellRows,
    values: PossibleValues,
) -> Cases | None:
    """Return the values to try; None if there is no list of a guarded field's values."""
    found: Cases = {}
    size = 1
    for guard in (guard for row in rows for guard in row.guards):
        if isinstance(guard.accepts, Stored) or guard.field in found:
            continue
        form = event if guard.field in hints(event) else cls.Data
        listed = domain(form, guard.field)
        if form is cls.Data and guard.field in values:
            known = values[guard.field]
            listed = tuple(value for value in listed if stored_form(value) in known)
        size *= len(listed)
        if not listed or size > MAX_CASES:
            return None
        found[guard.field] = listed
    return found


def _of_case(step: StrEnum, rows: CellRows, case: dict[str, object]) -> BrokenRows:
    taking = [row for row in rows if _certain(row) and _accepts(row, case)]
    guarded = [row for row in taking if row.guards]
    shown = ", ".join(f"{name} = {guard_label(value)}" for name, value in case.items())
    if len(guarded) > 1:
        yield guarded[1], f"overlaps with {str(guarded[0])!r} when {shown}"
    stale = any(_looks_back(row) and _accepts(row, case) for row in rows)
    if not taking and not stale:
        yield from _gap(step, rows, shown or "its predicates do not hold")


def _gap(step: StrEnum, rows: CellRows, case: str) -> BrokenRows:
    """Report a case that no row takes. Without a moving row, `otherwise` of the step applies."""
    last = rows[-1]
    if last.conditional and any(row.disposition == "move" for row in rows):
        reason = f"a gap in {step}: no row takes {last.trigger_text} when {case}"
        advice = "add a row, a last one without a guard, park(...), ignore(...) or reject(...)"
        yield last, f"{reason}; {advice}"


def _certain(row: TransitionRow) -> bool:
    return not row.predicates and not _looks_back(row)


def _looks_back(row: TransitionRow) -> bool:
    return not row.predicates and any(
        isinstance(guard.accepts, Stored) for guard in row.guards
    )


def _accepts(row: TransitionRow, case: dict[str, object]) -> bool:
    return all(
        isinstance(guard.accepts, Stored) or case.get(guard.field) in guard.accepts
        for guard in row.guards
    )
