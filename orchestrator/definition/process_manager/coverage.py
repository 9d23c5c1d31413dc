"""Do the rows for one event in one step cover every case, and none twice?

Rows with a named predicate or a `stored(...)` guard are tried in order and need not be disjoint. The others must split
the values that the data can really have in the step: no gap, no overlap; a last row without a guard takes the rest.
"""

from __future__ import annotations

from enum import StrEnum
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

from orchestrator.definition.codec import adapter
from orchestrator.definition.dataflow import Values, flow
from orchestrator.definition.domains import domain, hints
from orchestrator.definition.messages import Event
from orchestrator.definition.process_manager.rows import Row, Stored, written
from orchestrator.exceptions import InvalidDefinition

if TYPE_CHECKING:
    from orchestrator.definition.process_manager.manager import ProcessManager

MAX_CASES = 10_000


def check_coverage(cls: type[ProcessManager]) -> None:
    """Checks every step and event.

    Raises:
        InvalidDefinition: naming the row that overlaps or can never be taken, or the case that no row takes.
    """
    values, taken = flow(cls.graph(), str(cls.first), {})
    for row in cls.all_rows():
        if row.disposition == "move" and row.edge not in taken:
            raise InvalidDefinition(
                cls.__name__,
                str(row),
                "its guard can never hold: the data never has these values here",
            )
    for step in cls.rows:
        for event in cls.events.values():
            rows = cls.rows_for(step, event)
            if rows:
                _check_cell(cls, step, event, rows, values[str(step)])


def _check_cell(
    cls: type[ProcessManager],
    step: StrEnum,
    event: type[Event],
    rows: list[Row],
    values: Values,
) -> None:
    _check_order(cls, rows)
    possible = _possible(cls, event, rows, values)
    if possible is None:
        _check_otherwise(cls, step, rows, "values that cannot be listed")
        return
    for case in (
        dict(zip(possible, combination, strict=True))
        for combination in product(*possible.values())
    ):
        _check_case(cls, step, rows, case)


def _check_order(cls: type[ProcessManager], rows: list[Row]) -> None:
    for row, later in pairwise(rows):
        if not (row.guards or row.predicates):
            raise InvalidDefinition(
                cls.__name__,
                str(later),
                f"never tried: the row {str(row)!r} before it takes every case",
            )


def _possible(
    cls: type[ProcessManager], event: type[Event], rows: list[Row], values: Values
) -> dict[str, tuple[object, ...]] | None:
    """Field -> values to try, or None when a guarded field's values cannot be listed."""
    found: dict[str, tuple[object, ...]] = {}
    size = 1
    for guard in (guard for row in rows for guard in row.guards):
        if isinstance(guard.accepts, Stored) or guard.field in found:
            continue
        form = event if guard.field in hints(event) else cls.Data
        listed = domain(form, guard.field)
        if form is cls.Data and guard.field in values:
            listed = tuple(v for v in listed if _json(v) in values[guard.field])
        size *= len(listed)
        if not listed or size > MAX_CASES:
            return None
        found[guard.field] = listed
    return found


def _check_case(
    cls: type[ProcessManager], step: StrEnum, rows: list[Row], case: dict[str, object]
) -> None:
    taking = [row for row in rows if _certain(row) and _accepts(row, case)]
    guarded = [row for row in taking if row.guards]
    shown = ", ".join(f"{name} = {written(value)}" for name, value in case.items())
    if len(guarded) > 1:
        raise InvalidDefinition(
            cls.__name__,
            str(guarded[1]),
            f"overlaps with {str(guarded[0])!r} when {shown}",
        )
    stale = any(_looks_back(row) and _accepts(row, case) for row in rows)
    if not taking and not stale:
        _check_otherwise(cls, step, rows, shown or "its predicates do not hold")


def _check_otherwise(
    cls: type[ProcessManager], step: StrEnum, rows: list[Row], case: str
) -> None:
    last = rows[-1]
    if last.guards or last.predicates:
        raise InvalidDefinition(
            cls.__name__,
            str(last),
            f"a gap in {step}: no row takes {last.trigger_text} when {case}; "
            "add a row, a last one without a guard, ignore(...) or reject(...)",
        )


def _certain(row: Row) -> bool:
    return not row.predicates and not _looks_back(row)


def _looks_back(row: Row) -> bool:
    return not row.predicates and any(
        isinstance(guard.accepts, Stored) for guard in row.guards
    )


def _accepts(row: Row, case: dict[str, object]) -> bool:
    return all(
        isinstance(guard.accepts, Stored) or case.get(guard.field) in guard.accepts
        for guard in row.guards
    )


def _json(value: Any) -> Any:
    return adapter(type(value)).dump_python(value, mode="json")
