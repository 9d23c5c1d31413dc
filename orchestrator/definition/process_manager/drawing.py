"""From a process manager's rows to its graph and its state transition table."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Literal

from orchestrator.definition.codec import adapter
from orchestrator.definition.domains import domain
from orchestrator.definition.graph import Disposition, Edge, Graph, Node, spoken
from orchestrator.definition.messages import Event
from orchestrator.definition.process_manager.rows import Row, Stored

if TYPE_CHECKING:
    from orchestrator.definition.process_manager.manager import ProcessManager


@dataclass(frozen=True)
class Table:
    """The state transition table: a row a step, a column an event; an empty cell means parked."""

    events: tuple[str, ...]
    rows: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]


def graph_of(cls: type[ProcessManager]) -> Graph:
    """Nodes from the steps, edges from the rows that move, dispositions from the others."""
    nodes = tuple(
        Node(str(step), spoken(str(step)), _kind(cls, step)) for step in cls.Step
    )
    edges, dispositions = tuple(_edges(cls)), tuple(_dispositions(cls))
    return Graph(cls.name, cls.version, cls.kind, nodes, edges, dispositions)


def transition_table(cls: type[ProcessManager]) -> Table:
    """The same rows as a table; each cell lists its rows as "[guard] / commands -> step"."""
    return Table(
        tuple(cls.events),
        tuple(
            (str(step), tuple(_cell(cls, step, event) for event in cls.events.values()))
            for step in cls.Step
        ),
    )


def _kind(
    cls: type[ProcessManager], step: StrEnum
) -> Literal["start", "step", "final"]:
    if step == cls.first:
        return "start"
    return "final" if step in cls.finals else "step"


def _edges(cls: type[ProcessManager]) -> Iterator[Edge]:
    for step, rows in cls.rows.items():
        for row in rows:
            if row.disposition == "move":
                yield Edge(
                    row.edge,
                    str(step),
                    str(step if row.target is None else row.target),
                    "event" if row.event else "deadline",
                    row.trigger_text,
                    row.guard_text,
                    tuple(issue.command.__name__ for issue in row.issues),
                    row.escalates,
                    _accepts(cls, row),
                    _assigns(cls, step, row),
                )


def _dispositions(cls: type[ProcessManager]) -> Iterator[Disposition]:
    for step, rows in cls.rows.items():
        for row in rows:
            if row.disposition != "move":
                yield Disposition(str(step), row.trigger_text, row.disposition)


def _accepts(cls: type[ProcessManager], row: Row) -> dict[str, list[Any]]:
    """Guards that look at the data; those on the event's own fields limit what is assigned instead."""
    return {
        guard.field: _stored_form(cls.Data, guard.field, guard.accepts)
        for guard in row.guards
        if not isinstance(guard.accepts, Stored)
        and guard.field not in _fields(row.event)
    }


def _assigns(
    cls: type[ProcessManager], step: StrEnum, row: Row
) -> dict[str, list[Any] | None]:
    assigned: dict[str, list[Any] | None] = {}
    if step == cls.first:
        assigned |= {
            name: _stored_form(cls.Data, name, (item.default,))
            for name, item in _fields(cls.Data).items()
            if domain(cls.Data, name) and item.default in domain(cls.Data, name)
        }
    for name in _fields(row.event).keys() & _fields(cls.Data).keys():
        limits = [g.accepts for g in row.guards if g.field == name]
        values = (
            limits[0]
            if limits and not isinstance(limits[0], Stored)
            else domain(cls.Data, name)
        )
        assigned[name] = _stored_form(cls.Data, name, values) if values else None
    for name, value in row.sets:
        assigned[name] = _stored_form(cls.Data, name, (value,))
    return dict(sorted(assigned.items()))


def _stored_form(form: type[Any], name: str, values: tuple[object, ...]) -> list[Any]:
    """Values as they stand in the stored JSON."""
    return [adapter(type(value)).dump_python(value, mode="json") for value in values]


def _fields(cls: type[Any] | None) -> dict[str, Any]:
    return getattr(cls, "__dataclass_fields__", {})


def _cell(
    cls: type[ProcessManager], step: StrEnum, event: type[Event]
) -> tuple[str, ...]:
    return tuple(_entry(step, row) for row in cls.rows_for(step, event))


def _entry(step: StrEnum, row: Row) -> str:
    if row.disposition != "move":
        return {"ignore": "ignored", "reject": "rejected"}[row.disposition]
    guard = f"[{row.guard_text}] " if row.guard_text else ""
    commands = ", ".join(issue.command.__name__ for issue in row.issues)
    target = step if row.target is None else row.target
    return f"{guard}{'/ ' + commands + ' ' if commands else ''}→ {target}"
