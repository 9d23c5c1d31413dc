"""Workflows: steps connected by rows, compiled to a plan that engine, validator and diagram read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from orchestrator.definition.graph import Graph
from orchestrator.definition.identity import kebab, key_in
from orchestrator.definition.messages import STRICT, Event
from orchestrator.definition.workflow.compilation import compiled
from orchestrator.definition.workflow.plan import Plan


@dataclass(frozen=True)
class Nothing:
    """The input of a workflow that needs none."""


class Workflow:
    """A graph of steps. Subclass it with `Input` and `flow`; the class statement checks it.

    `flow` is a sequence of rows, or a static method that makes them from the input when a process starts; `waits_for`
    then names the events that its processes may wait for.
    """

    name: ClassVar[str] = ""
    version: ClassVar[int] = 1
    queue: ClassVar[str] = "default"
    correlation: ClassVar[str] = ""
    patience: ClassVar[timedelta | None] = None
    Input: ClassVar[type[Any]] = Nothing
    # Rows, or a static method: a type checker would take a declared callable for an ordinary method.
    flow: ClassVar[Any]

    waits_for: ClassVar[Sequence[type[Event]]] = ()

    kind: ClassVar[str] = "workflow"
    events: ClassVar[Mapping[str, type[Event]]] = {}
    static: ClassVar[Plan | None] = None

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "flow" not in vars(cls):
            return  # an intermediate class that only shares attributes
        from orchestrator.definition.workflow import checks

        cls.name = vars(cls).get("name") or kebab(cls.__name__)
        checks.check_shape(cls)
        if "__pydantic_config__" not in vars(cls.Input):
            cls.Input.__pydantic_config__ = STRICT
        cls.static, waited = None, cls.waits_for
        if not callable(cls.flow):
            cls.static = cls._compiled(cls.flow)
            steps = [vertex.step for vertex in cls.static.vertices.values()]
            waited = [step.event for step in steps if step.event is not None]
        cls.events = {event.__name__: event for event in waited}

    @classmethod
    def plan(cls, input: Any = None) -> Plan:
        """The compiled graph: the same for all processes, or that of this input.

        Raises:
            InvalidDefinition: the graph made from the input contradicts itself.
        """
        if cls.static is not None:
            return cls.static
        return cls._compiled(cls.flow(input))

    @classmethod
    def _compiled(cls, rows: Any) -> Plan:
        from orchestrator.definition.workflow import checks

        plan = compiled(cls.__name__, rows, cls.Input)
        checks.check(cls, plan)
        return plan

    @classmethod
    def graph(cls, plan: Plan | None = None) -> Graph:
        """The picture of a plan; of the static one when none is given."""
        from orchestrator.definition.workflow.drawing import graph_of

        if plan is not None and plan is not cls.static:
            return graph_of(cls, plan)
        return _static_graph(cls)

    @classmethod
    def can_handle(cls, event: Event) -> bool:
        """Whether one of the steps waits for such an event."""
        return type(event).__name__ in cls.events

    @classmethod
    def starting_events(cls) -> frozenset[str]:
        """No event starts a workflow: it is started with its input."""
        return frozenset()

    @classmethod
    def correlation_key(cls, message: object) -> str:
        """The business key in an input or an event, as text; "" when it carries none."""
        return key_in(message, cls.correlation)

    @classmethod
    def result_type(cls) -> Any:
        """The type of the process's result: that of its one last step, or a dict of several.

        It may be None where the last step may be on a branch that is not taken.
        """
        if cls.static is None:
            return Any
        ends = [cls.static[name] for name in cls.static.ends()]
        if len(ends) != 1:
            return dict[str, Any]
        found = ends[0].result_type
        return found if ends[0].certain else found | None

    @staticmethod
    def summary(input: Any) -> str:
        """One line in business terms for lists; override it. At most 200 characters are kept."""
        return ""


def _static_graph(cls: type[Workflow]) -> Graph:
    from orchestrator.definition.workflow.drawing import graph_of

    if cls not in _graphs:
        _graphs[cls] = graph_of(cls, cls.static)
    return _graphs[cls]


_graphs: dict[type[Workflow], Graph] = {}
