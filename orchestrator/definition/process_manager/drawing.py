"""The graph of a process manager, drawn from its rows."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Literal

from orchestrator.definition.annotations import domain
from orchestrator.definition.codec import stored_form
from orchestrator.definition.declarations.guards import Stored
from orchestrator.definition.declarations.transition_rows import TransitionRow
from orchestrator.definition.graph import Disposition, Edge, Graph, Node
from orchestrator.definition.labels import spoken_name
from orchestrator.definition.process_manager.state_machine import (
    StateMachine,
    copied_fields,
    data_guards,
    dataclass_fields,
)


def manager_graph(cls: type[StateMachine]) -> Graph:
    """Draw nodes from the steps, edges from the rows that move, and dispositions from the other rows."""
    nodes = tuple(
        Node(str(step), spoken_name(str(step)), _kind(cls, step)) for step in cls.Step
    )
    edges, dispositions = tuple(_edges(cls)), tuple(_dispositions(cls))
    return Graph(cls.name, cls.version, cls.kind, nodes, edges, dispositions)


def _kind(cls: type[StateMachine], step: StrEnum) -> Literal["start", "step", "final"]:
    if step == cls.first:
        return "start"
    return "final" if step in cls.finals else "step"


def _edges(cls: type[StateMachine]) -> Iterator[Edge]:
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
                    data_guards(cls, row),
                    _assigns(cls, step, row),
                    tuple(
                        issue.command.__name__ for issue in row.issues if issue.at_once
                    ),
                    row.set_texts,
                    row.notifies,
                    row.owner or "",
                )


def _dispositions(cls: type[StateMachine]) -> Iterator[Disposition]:
    """Yield the dispositions of rows that do not move, and of `otherwise`. Events that are only parked have none."""
    for step, rows in cls.rows.items():
        handled = cls.handled_events(step)
        for row in rows:
            if row.disposition != "move" and row.trigger_text in handled:
                name, guard = row.trigger_text, row.guard_text
                yield Disposition(str(step), name, row.disposition, guard)
    for step, default in cls.default_dispositions.items():
        for name, event in cls.events.items():
            if _may_leave_cases(cls.rows_for(step, event)):
                yield Disposition(str(step), name, default)


def _may_leave_cases(rows: list[TransitionRow]) -> bool:
    """Return whether the rows for an event in a step may leave cases open."""
    if not rows or not rows[-1].conditional:
        return not rows
    guards = [guard for row in rows for guard in row.guards]
    stale = any(isinstance(guard.accepts, Stored) for guard in guards)
    return stale or all(row.disposition != "move" for row in rows)


def _assigns(
    cls: type[StateMachine], step: StrEnum, row: TransitionRow
) -> dict[str, list[Any] | None]:
    assigned: dict[str, list[Any] | None] = {}
    if step == cls.first:
        assigned |= {
            name: [stored_form(item.default)]
            for name, item in dataclass_fields(cls.Data).items()
            if item.default in domain(cls.Data, name)
        }
    for name in copied_fields(cls.Data, row):
        (accepted, *_) = [g.accepts for g in row.guards if g.field == name] or [()]
        limits = () if isinstance(accepted, Stored) else accepted
        values = limits or domain(cls.Data, name)
        assigned[name] = list(map(stored_form, values)) or None
    for name, value in row.sets:
        values = domain(cls.Data, name) if callable(value) else (value,)
        assigned[name] = list(map(stored_form, values)) or None
    return dict(sorted(assigned.items()))
