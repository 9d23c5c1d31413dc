"""The graph of a workflow, drawn from its plan."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Literal

from orchestrator.definition.codec import stored_form
from orchestrator.definition.declarations.guards import Stored
from orchestrator.definition.declarations.process_definition import ProcessDefinition
from orchestrator.definition.declarations.transition_rows import DEFAULTS, OUTCOMES
from orchestrator.definition.graph import Disposition, Edge, Graph, Node
from orchestrator.definition.labels import (
    name_of,
    spoken_condition,
    spoken_delay,
    spoken_name,
    value_label,
)
from orchestrator.definition.workflow.plan import Choice, Link, Plan, Vertex
from orchestrator.definition.workflow.rows import error_types
from orchestrator.definition.workflow.steps import Step


def workflow_graph(cls: type[ProcessDefinition], plan: Plan | None) -> Graph:
    """Draw nodes from the vertices and edges from the links; no node for a graph that is made from the input."""
    if plan is None:
        return Graph(cls.name, cls.version, cls.kind, (), ())
    entries = frozenset(plan.entries)
    nodes = tuple(_node(plan, vertex, entries) for vertex in plan.vertices.values())
    labels = _labels(plan)
    edges = tuple(_edge(plan, link, labels.get(link.id, "")) for link in plan.links)
    late = tuple(Disposition("", name_of(one), "ignore") for one in plan.ignored)
    return Graph(cls.name, cls.version, cls.kind, nodes, edges, late)


def _node(plan: Plan, vertex: Vertex, entries: Collection[str]) -> Node:
    return Node(
        vertex.name,
        spoken_name(vertex.name),
        "map" if vertex.each else vertex.step.kind,
        detail=", ".join(filter(None, [_detail(plan, vertex), _optional(vertex.step)])),
        entry=vertex.name in entries,
        undo=vertex.undo.name if vertex.undo is not None else "",
        join=_join(vertex),
        split=_split(vertex),
    )


def _detail(plan: Plan, vertex: Vertex) -> str:
    step = vertex.step
    child = step.definition.name if step.definition is not None else ""
    if vertex.each is not None:
        what = f"each of {vertex.each.over or 'the result'}"
        window = f", {vertex.each.window} at once" if vertex.each.window else ""
        run = f"{child} for {what}" if child else what
        args = f", {_args(step)}" if step.args else ""
        return f"{run}{window}{_tolerated(vertex.each.tolerate)}{args}"
    if child:
        return child
    if step.kind == "sleep" and step.deadline is not None:
        return spoken_delay(step.deadline)
    about = _awaited(plan, step) if step.event else _args(step)
    if step.choices is not None:
        about = " or ".join(value_label(choice) for choice in step.choices)
    if step.deadline is not None:
        about += f", at most {spoken_delay(step.deadline)}"
    return about


def _awaited(plan: Plan, step: Step) -> str:
    """The label of the events that a waiting step takes, and of what becomes of others."""
    said = DEFAULTS[step.otherwise] if step.otherwise is not None else None
    others = f", else {OUTCOMES[said]}" if said is not None else ""
    late = ", ignored when late" if step.event in plan.ignored else ""
    return f"for {name_of(step.event)}{_guarded(step)}{others}{late}"


def _guarded(step: Step) -> str:
    """The label of the events that a waiting step takes."""
    named = [*map(spoken_condition, step.predicates), *map(str, step.guards)]
    return f" [{' and '.join(named)}]" if named else ""


def _optional(step: Step) -> str:
    """The label of a step that may fail."""
    return "optional" if step.optional else ""


def _args(step: Step) -> str:
    """The label of parameters that are not bound by their own names."""
    return ", ".join(f"{name} = {_source(value)}" for name, value in step.args)


def _source(value: Any) -> str:
    if isinstance(value, Stored):
        return f"stored {value.field}"
    if isinstance(value, Step):
        return f"that of {value.name}"
    if callable(value):
        return f"that of {name_of(value)}"
    return repr(stored_form(value))


def _tolerated(failures: int | float) -> str:
    """The label of the number of elements that may fail."""
    if not failures:
        return ""
    share = f"{failures:.0%}" if isinstance(failures, float) else str(failures)
    return f", {share} may fail"


def _join(vertex: Vertex) -> str:
    row = vertex.join
    if row is None:
        return ""
    needed = row.wait_for if row.wait_for != "all" else ""
    text = f"{needed} of {vertex.ways_in}" if isinstance(needed, int) else needed
    failing = "fail fast" if row.on_failure == "fail_fast" else ""
    return ", ".join(part for part in (text, failing) if part)


def _split(vertex: Vertex) -> Literal["", "some", "one"]:
    """Return whether it takes all, some or one of its outgoing links."""
    if vertex.ends_loop:
        return "one"
    if not any(link.kind == "case" for link in vertex.links):
        return ""
    exclusive = len(vertex.choices) == 1 and vertex.choices[0].exclusive
    return "one" if exclusive else "some"


def _labels(plan: Plan) -> dict[str, str]:
    """The guards of the links, by their ids."""
    found: dict[str, str] = {}
    for vertex in plan.vertices.values():
        for choice in vertex.choices:
            found |= {link.id: _guard(choice, link) for link in choice.links}
        loop = vertex.loop
        if loop is not None and vertex.ends_loop:
            until = spoken_condition(loop.until)
            found[loop.back.id] = f"until {until}, at most {loop.at_most} times"
            found[loop.then.id] = until
            if loop.otherwise is not None:
                found[loop.otherwise.id] = f"still not {until}"
    return found


def _guard(choice: Choice, link: Link) -> str:
    if link.kind == "default":
        return "otherwise"
    if link.case is not None:
        priority = f" ({link.case.priority})" if link.case.priority else ""
        return f"{spoken_condition(link.case.predicate)}{priority}"
    if link.kind == "case":
        word = "is" if choice.exclusive else "has"
        return f"{choice.on or 'result'} {word} {value_label(link.value)}"
    return ""


def _edge(plan: Plan, link: Link, guard: str) -> Edge:
    errors = error_types(link.error) if link.error is not None else ()
    event = " or ".join(map(name_of, errors))
    deadline = plan[link.source].step.deadline
    if link.kind == "deadline" and deadline is not None:
        event = f"after {spoken_delay(deadline)}"
    return Edge(link.id, link.source, link.target, link.kind, event=event, guard=guard)
