"""What makes a workflow invalid beyond its graph, raised while its class statement runs.

The graph itself is checked when it is compiled: see `row_rules`, `step_rules`, `structure`, `branching` and `wiring`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from orchestrator.definition.domains import hints
from orchestrator.definition.identity import mistakes
from orchestrator.definition.messages import Event
from orchestrator.definition.workflow import refusal
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.result_forms import make_strict, without_json_form
from orchestrator.definition.workflow.step_rules import children, is_class
from orchestrator.definition.workflow.steps import Function, function_name

if TYPE_CHECKING:
    from orchestrator.definition.workflow.workflow import Workflow

Definition = type["Workflow"]


def check_shape(cls: Definition) -> None:
    """The class has a name, a version, an Input and a queue at all.

    Raises:
        InvalidDefinition: naming what is missing.
    """
    for mistake in mistakes(cls.name, cls.version):
        refuse(cls, mistake)
    form: Any = cls.Input
    if not (isinstance(form, type) and is_dataclass(form)):
        refuse(cls, "declare `Input` as a dataclass")
    queue: Any = cls.queue
    if not isinstance(queue, str) or not queue:
        refuse(cls, f"the queue {queue!r} must be the name of a queue")
    _check_input(cls)
    _check_waits_for(cls)


def _check_input(cls: Definition) -> None:
    make_strict(cls.Input)
    if reason := without_json_form(cls.Input):
        refuse(cls, f"Input cannot be written as JSON: {reason}")
    if cls.correlation and cls.correlation not in hints(cls.Input):
        refuse(cls, f"the correlation field {cls.correlation!r} is not in its Input")


def _check_waits_for(cls: Definition) -> None:
    waits_for: Any = cls.waits_for
    if not isinstance(waits_for, Sequence):
        refuse(cls, "waits_for holds Event classes: waits_for = (...,)")
    for event in waits_for:
        if not is_class(event, Event):
            refuse(cls, f"waits_for holds Event classes, and {event!r} is none")
    if waits_for and not callable(cls.flow):
        refuse(cls, "waits_for is for a graph made from the input: this one is known")


def check(cls: Definition, plan: Plan) -> None:
    """Every rule that the compiled graph must keep.

    Raises:
        InvalidDefinition: naming class, row and reason of the first one that is broken.
    """
    checked = list[Any]()  # few, and not all annotations can be hashed
    for vertex in plan.vertices.values():
        function = vertex.step.function
        if function is not None and vertex.returns not in checked:
            checked.append(vertex.returns)
            _check_result(cls, vertex, function)
        _check_event(cls, vertex)
        _check_recursion(cls, vertex)


def refuse(cls: Definition, reason: str, row: object = None) -> NoReturn:
    refusal.refuse(cls.__name__, row, reason)


def _check_result(cls: Definition, vertex: Vertex, function: Function) -> None:
    make_strict(vertex.returns)
    if reason := without_json_form(vertex.returns):
        what = f"the result of {function_name(function)}"
        refuse(cls, f"{what} cannot be written as JSON: {reason}", vertex.row)


def _check_event(cls: Definition, vertex: Vertex) -> None:
    event = vertex.step.event
    if event is not None and callable(cls.flow) and event not in cls.waits_for:
        name = function_name(event)
        refuse(
            cls,
            f"{vertex.name} waits for {name}, but which events concern a workflow must be known before its graph is "
            f"made from the input: add {name} to waits_for = (...) of the class",
            vertex.row,
        )


def _check_recursion(cls: Definition, vertex: Vertex) -> None:
    """No process runs itself, at any depth."""
    child = vertex.step.definition
    waiting, seen = [child] if child is not None else [], set[Definition]()
    while waiting:
        one = waiting.pop()
        if is_class(one, cls):
            refuse(
                cls,
                f"{vertex.name} runs {cls.__name__} itself, without end",
                vertex.row,
            )
        if one not in seen:
            seen.add(one)
            waiting += children(one)
