"""Rules for the graph: no unreachable step, no cycle outside a loop, no contradicting rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from orchestrator.definition.topology import closure, find_cycle
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.rows import error_types, name
from orchestrator.definition.workflow.steps import Runnable
from orchestrator.exceptions import (
    ChildCancelled,
    CorruptInput,
    InvalidDefinition,
    InvalidMessage,
    KeyTaken,
    LimitReached,
    NoCase,
    Permanent,
    Poll,
    Skip,
    SubprocessDeclined,
    SubprocessFailed,
    TimedOut,
    WorkerDied,
)

Contradictions = Iterator[tuple[object, str]]
"""Contradicting rows with the reasons."""


def broken_structure(plan: Plan) -> Contradictions:
    """Yield the mistakes in the connections of the vertices."""
    if not plan.vertices:
        yield None, "the flow has no steps"
    if names := find_cycle(plan.leading, plan.order):
        *_, source, target = names
        back = next(x for x in plan.incoming[target] if x.source == source)
        circle = " -> ".join(names)
        yield (
            back.row,
            f"steps wait for each other: {circle}; write repeat(...) for a loop",
        )
    for vertex in plan.vertices.values():
        for rule in RULES:
            yield from rule(plan, vertex)
    yield from _unreached(plan)


def _unreached(plan: Plan) -> Contradictions:
    """Require a path from a starting step to every step."""
    for entry in plan.entries:
        for link in plan.incoming[entry]:
            yield link.row, f"{entry} starts, so {link.source} cannot lead to it"
    reached = closure(plan.entries, plan.following)
    for vertex in plan.vertices.values():
        if vertex.name not in reached:
            yield vertex.row, f"nothing leads from start to {vertex.name}"


def _of_join(plan: Plan, vertex: Vertex) -> Contradictions:
    row = vertex.join
    if row is None:
        return
    joined = set(map(name, row.steps))
    for link in plan.incoming[vertex.name]:
        if link.source not in joined:
            yield (
                link.row,
                f"{link.source} leads to {vertex.name} beside its join: name it in the join",
            )
    if row.wait_for != "all" and len(joined) < vertex.ways_in:
        yield row, "a step that leads to it in two ways cannot be counted"


def _of_map(plan: Plan, vertex: Vertex) -> Contradictions:
    row = vertex.each
    if row is None:
        return
    if vertex.step.kind not in ("step", "run"):
        yield (
            row,
            f"{vertex.name} cannot wait for each element: let do=run(...) run a workflow that waits",
        )
    for link in plan.incoming[vertex.name]:
        if link.kind != "flow" or link.source != name(row.step):
            yield (
                link.row,
                f"{vertex.name} runs for each element, so nothing else may lead to it",
            )


def _of_loop(plan: Plan, vertex: Vertex) -> Contradictions:
    loop = vertex.loop
    if loop is None:
        return
    place = loop.steps.index(vertex.name)
    following = loop.steps[place + 1 : place + 2]
    for link in (link for choice in vertex.choices for link in choice.links):
        if link.kind != "flow" or (link.target,) != following:
            yield link.row, f"{vertex.name} is repeated, so it cannot lead elsewhere"
    before = loop.steps[max(place - 1, 0) : place]
    for link in plan.incoming[vertex.name]:
        if place and (link.source,) != before:
            yield (
                link.row,
                f"{vertex.name} is repeated after {before[0]}, so {link.source} cannot lead to it",
            )
    for link in vertex.exceptions:
        if link.target in loop.steps:
            yield link.row, f"{link.target} is in the loop that is left"


def _of_catch(plan: Plan, vertex: Vertex) -> Contradictions:
    if not vertex.catches:
        return
    for link in plan.incoming[vertex.name]:
        if link.kind != "error":
            yield (
                link.row,
                f"{vertex.name} catches failures, so {link.source} cannot lead to it too",
            )


def _of_errors(plan: Plan, vertex: Vertex) -> Contradictions:
    """Refuse an error route after a wider one."""
    before: list[type[BaseException]] = []
    for link in vertex.exceptions:
        if link.error is None:
            continue
        for error in error_types(link.error):
            if issubclass(error, tuple(before)):
                yield (
                    link.row,
                    f"a failure of {vertex.name} with {error.__name__} is caught by a row before it",
                )
            before.append(error)


def _of_caught(plan: Plan, vertex: Vertex) -> Contradictions:
    """Refuse errors with which no step of a `catch` can fail."""
    for link in vertex.exceptions:
        for error in error_types(link.error) if link.error is not None else ():
            reasons = [_never(plan[name], error) for name in link.group]
            if all(reasons):
                yield link.row, reasons[0]


def _of_optional(plan: Plan, vertex: Vertex) -> Contradictions:
    """Refuse an optional step where None cannot stand in for its result."""
    if not vertex.step.optional:
        return
    name = vertex.name
    if vertex.each is not None:
        yield (
            vertex.each,
            f"{name} runs for each element, so leave its optional out and say how many elements may fail: tolerate=1.0",
        )
    elif vertex.decides:
        yield (
            vertex.row,
            f"{name} is optional, but its result decides what follows: put a step after it that takes None and decides",
        )
    for link in vertex.regular:
        if plan[link.target].each is not None:
            yield (
                link.row,
                f"{name} is optional, but gives the list of {link.target}: put a step between that gives a list",
            )


OF_CHILD = (SubprocessFailed, ChildCancelled)
OF_RUN = (
    SubprocessDeclined,
    ChildCancelled,
    InvalidDefinition,
    InvalidMessage,
    KeyTaken,
    LimitReached,
    NoCase,
    TimedOut,
    WorkerDied,
)
"""The errors of a step that runs a sub-process, apart from errors of application code."""


def _never(vertex: Vertex, error: type[BaseException]) -> str:
    """Return why a step never fails with this error, or ""."""
    said, name = error.__name__, vertex.name
    if issubclass(error, Skip):
        return f"{said} passes {name} over, which is no failure"
    if issubclass(error, CorruptInput):
        return f"{said} has an earlier step done again; what follows when it is of no use is a Permanent"
    if issubclass(error, Poll):
        return f"{said} has {name} called again; when its time is over it fails with TimedOut"
    child = vertex.step.definition
    if vertex.step.function is not None:
        alone = issubclass(error, OF_CHILD)
        return (
            f"{name} runs no sub-process, so it fails with no {said}" if alone else ""
        )
    if child is None:
        lacking = vertex.needed is not None and issubclass(Permanent, error)
        return "" if lacking else f"{name} waits, and so does not fail with {said}"
    own = (
        _decided(vertex)
        or callable(child.flow)
        or child.summary is not Runnable.summary
    )
    if own or any(issubclass(kind, error) for kind in OF_RUN):
        return ""
    return f"{name} runs a sub-process, and fails with SubprocessFailed whatever failed in there, never with {said}"


def _decided(vertex: Vertex) -> bool:
    """Return whether a condition of the application reads its result."""
    cases = any(link.case is not None for link in vertex.regular)
    return cases or vertex.ends_loop


RULES: tuple[Callable[[Plan, Vertex], Contradictions], ...] = (
    _of_join,
    _of_map,
    _of_loop,
    _of_catch,
    _of_errors,
    _of_caught,
    _of_optional,
)
