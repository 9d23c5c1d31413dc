"""Workflows: steps connected by rows, compiled to a plan that engine, validator and diagram read.

The graph itself is checked when it is compiled: see `row_rules`, `step_rules`, `structure`, `branching` and
`parameters`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from orchestrator.definition.annotations import is_class, is_dataclass_type
from orchestrator.definition.codec import make_strict, why_unwritable
from orchestrator.definition.declarations.migrating import migration_mistakes
from orchestrator.definition.declarations.outside_ids import identity_mistakes
from orchestrator.definition.declarations.process_definition import (
    COMMON,
    IN_ROWS,
    inherited_rows,
)
from orchestrator.definition.graph import Graph
from orchestrator.definition.labels import name_of
from orchestrator.definition.messages import STRICT, Event
from orchestrator.definition.refusals import (
    attribute_mistakes,
    class_mistakes,
    refuse,
    refuse_misspelt,
)
from orchestrator.definition.secrets import Secrets, find_secrets, secret_fields
from orchestrator.definition.workflow.compilation import Compilation
from orchestrator.definition.workflow.drawing import workflow_graph
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.steps import Runnable

ATTRIBUTES = (*COMMON, "Input", "flow", "waits_for")
"""The attributes of a workflow."""

MISPLACED = IN_ROWS | {
    "transitions": "the rows of a workflow are its flow",
    "steps": "its flow names the steps",
    "final": "a workflow ends after its last steps",
    "otherwise": "write it at a step, wait(..., otherwise=...)",
}
"""The attributes that a workflow does not have, and what to write."""


@dataclass(frozen=True)
class Nothing:
    """The input of a workflow that needs none."""


UNANNOUNCED = (
    "{0} {1}, but which events concern a workflow must be known before its graph is made from the input: "
    "add {1} to waits_for = (...) of the class"
)


class Workflow(Runnable):
    """A graph of steps. Subclass it with `Input` and `flow`; the class statement checks it.

    `flow` is a sequence of rows, or a static method that makes the rows from the input when a process starts. With a
    static method, `waits_for` names the events that the processes may wait for.
    """

    Input: ClassVar[type[Any]] = Nothing
    # Rows, or a static method: a type checker would take a declared callable for an ordinary method.
    flow: ClassVar[Any]

    waits_for: ClassVar[Sequence[type[Event]]] = ()

    kind: ClassVar[str] = "workflow"
    static: ClassVar[Plan | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        refuse_misspelt(cls, ATTRIBUTES, MISPLACED)
        if "flow" not in vars(cls):
            refuse(cls.__name__, class_mistakes(inherited_rows(cls, "flow")))
            return  # an intermediate class that only shares attributes
        cls.name = cls._declared_name()
        refuse(cls.__name__, class_mistakes(_of_shape(cls)))
        if "__pydantic_config__" not in vars(cls.Input):
            cls.Input.__pydantic_config__ = STRICT
        cls.static, waited = None, cls.waits_for
        if not callable(cls.flow):
            cls.static = cls._compiled(cls.flow)
            steps = [vertex.step for vertex in cls.static.vertices.values()]
            waited = [step.event for step in steps if step.event is not None]
            waited += cls.static.ignored
        cls.events = {event.__name__: event for event in waited}
        declared = vars(cls).get("migrations", ())
        names = list(cls.static.vertices) if cls.static is not None else None
        found = migration_mistakes(declared, cls.version, names, one_to_one=True)
        refuse(cls.__name__, class_mistakes(found))

    @classmethod
    def plan(cls, input: Any = None) -> Plan:
        """Return the compiled graph: the static one, or that of this input.

        Raises:
            InvalidDefinition: the graph made from the input contradicts itself.
        """
        if cls.static is not None:
            return cls.static
        return cls._compiled(cls.flow(input))

    @classmethod
    def _compiled(cls, rows: Any) -> Plan:
        plan = Compilation(cls.__name__, cls.Input).of(rows)
        refuse(cls.__name__, _broken(cls, plan))
        return plan

    @classmethod
    def graph(cls, plan: Plan | None = None) -> Graph:
        """Return the graph of a plan; of the static plan without one."""
        if plan is not None and plan is not cls.static:
            return workflow_graph(cls, plan)
        return cls._static_graph()

    @classmethod
    @cache
    def _static_graph(cls) -> Graph:
        return workflow_graph(cls, cls.static)

    @classmethod
    def secrets(cls, plan: Plan | None = None) -> Secrets:
        """Return the secret fields, including those of steps' results.

        Args:
            plan: the plan of a process whose graph is made from its input.
        """
        if plan is None or plan is cls.static:
            return cls._static_secrets()
        return _secrets(cls, plan)

    @classmethod
    @cache
    def _static_secrets(cls) -> Secrets:
        return _secrets(cls, cls.static)

    @classmethod
    def result_type(cls) -> Any:
        """Return the type of the process's result: that of its one last step, or a dict of several.

        The result may be None if the last step may be on a branch that is not taken.
        """
        if cls.static is None:
            return Any
        ends = [cls.static[name] for name in cls.static.ends()]
        if len(ends) != 1:
            return dict[str, Any]
        found = ends[0].result_type
        return found if ends[0].certain else found | None


def _secrets(cls: type[Workflow], plan: Plan | None) -> Secrets:
    vertices = list(plan.vertices.values()) if plan is not None else []
    results = [vertex.returns for vertex in vertices]
    inputs = [child.Input for one in vertices if (child := one.step.definition)]
    elements = [(one.name, one.each.over) for one in vertices if one.each is not None]
    forms = [cls.Input, *results, *inputs]
    return find_secrets(forms, cls.events.values(), elements=elements)


def _of_shape(cls: type[Workflow]) -> Iterator[str]:
    """Yield the mistakes in the attributes, the Input and the events of a class."""
    yield from attribute_mistakes(cls)
    form: Any = cls.Input
    if not is_dataclass_type(form):
        yield "declare `Input` as a dataclass"
    yield from _of_input(cls, form)
    yield from _of_events(cls)


def _of_input(cls: type[Workflow], form: type[Any]) -> Iterator[str]:
    make_strict(form)
    if reason := why_unwritable(form):
        yield f"Input cannot be written as JSON: {reason}"
    yield from identity_mistakes(cls, form, "Input", secret_fields(form))


def _of_events(cls: type[Workflow]) -> Iterator[str]:
    waits_for: Any = cls.waits_for
    if not isinstance(waits_for, Sequence):
        yield "waits_for holds Event classes: waits_for = (...,)"
    for event in waits_for:
        if not is_class(event, Event):
            yield f"waits_for holds Event classes, and {event!r} is none"
    if waits_for and not callable(cls.flow):
        yield "waits_for is for a graph made from the input: this one is known"


def _broken(cls: type[Workflow], plan: Plan) -> Iterator[tuple[object, str]]:
    """Yield the rows of steps that this class cannot have, with the reasons."""
    checked = list[Any]()  # few, and not all annotations can be hashed
    for vertex in plan.vertices.values():
        function, event = vertex.step.function, vertex.step.event
        if function is not None and vertex.returns not in checked:
            checked.append(vertex.returns)
            make_strict(vertex.returns)
            if reason := why_unwritable(vertex.returns):
                what = f"the result of {name_of(function)}"
                yield vertex.row, f"{what} cannot be written as JSON: {reason}"
        if event is not None and _is_unannounced(cls, event):
            yield (
                vertex.row,
                UNANNOUNCED.format(f"{vertex.name} waits for", name_of(event)),
            )
        if any(is_class(child, cls) for child in _children(vertex)):
            yield vertex.row, f"{vertex.name} runs {cls.__name__} itself, without end"
    for event in plan.ignored:
        if _is_unannounced(cls, event):
            yield None, UNANNOUNCED.format("it ignores", name_of(event))


def _is_unannounced(cls: type[Workflow], event: type[Event]) -> bool:
    return callable(cls.flow) and event not in cls.waits_for


def _children(vertex: Vertex) -> set[type[Workflow]]:
    """Return the sub-workflows of a step at any depth, as far as they are known before it starts."""
    waiting, found = [vertex], set[type[Workflow]]()
    while waiting:
        child = waiting.pop().step.definition
        if child is not None and child not in found:
            found.add(child)
            waiting += child.static.vertices.values() if child.static else ()
    return found
