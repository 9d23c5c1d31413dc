"""Every parameter of every step gets its source, and the source must be able to fill it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NoReturn

from orchestrator.definition.domains import hints
from orchestrator.definition.workflow.agreement import (
    MISSING,
    Unknown,
    agree,
    element,
    field_of,
    spelled,
    takes_none,
)
from orchestrator.definition.workflow.binding import (
    Binding,
    Parameter,
    bind,
    returns,
    taken,
)
from orchestrator.definition.workflow.guarantees import Guarantees
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.refusal import refuse
from orchestrator.definition.workflow.steps import function_name

UNREADABLE = (NameError, TypeError, ValueError)
"""What is raised by annotations that cannot be resolved, and by what has no signature."""


def wire(definition: str, plan: Plan, form: type[Any], order: Sequence[str]) -> None:
    """Binds the parameters of all steps.

    Args:
        definition: the name of the class, for messages.
        plan: without cycles; its vertices get their bindings.
        form: the workflow's Input.
        order: its vertices, each after all that lead to it.

    Raises:
        InvalidDefinition: naming the row, the step and its parameter.
    """
    asked = dict.fromkeys(
        plan.results[parameter.name]
        for vertex in plan.vertices.values()
        for parameter in _all_parameters(definition, vertex)
        if parameter.name in plan.results
    )
    guarantees = Guarantees(plan, order, asked)
    for name in order:
        _Wiring(definition, plan, form, guarantees, plan[name]).wire()


def read_returns(definition: str, plan: Plan) -> None:
    """Notes what the functions and sub-processes of all steps give.

    Raises:
        InvalidDefinition: a function does not say it.
    """
    for vertex in plan.vertices.values():
        function, child = vertex.step.function, vertex.step.definition
        if child is not None:
            vertex.returns = child.result_type()
        if function is None:
            continue
        found = _read(definition, vertex, function, partial(returns, function))
        if found is MISSING:
            reason = "has no return annotation: say what its result is, None if there is none"
            refuse(definition, vertex.row, f"{function_name(function)} {reason}")
        vertex.returns = found


def _all_parameters(definition: str, vertex: Vertex) -> Iterator[Parameter]:
    step, undo = vertex.step, vertex.undo
    runs = step.function or step.definition
    yield from _read(definition, vertex, runs, partial(taken, step))
    if undo is not None:
        yield from _read(definition, vertex, undo.function, partial(taken, undo))


def _read(
    definition: str, vertex: Vertex, function: object, read: Callable[[], Any]
) -> Any:
    try:
        return read()
    except UNREADABLE as error:
        refuse(definition, vertex.row, f"{function_name(function)}: {error}")


class _Wiring:
    """The bindings of one vertex."""

    def __init__(
        self,
        definition: str,
        plan: Plan,
        form: type[Any],
        guarantees: Guarantees,
        vertex: Vertex,
    ) -> None:
        self.definition, self.plan, self.form = definition, plan, form
        self.guarantees, self.vertex = guarantees, vertex
        self.item = vertex.each.item if vertex.each is not None else ""
        self.undoes = False

    def wire(self) -> None:
        step, undo = self.vertex.step, self.vertex.undo
        of = function_name(step.function)
        if step.definition is not None:
            of = f"{function_name(step.definition)}.Input"
        self.vertex.bindings = self._bound(taken(step), of)
        self._check_item(of)
        if undo is not None:
            self.undoes = True
            found = self._bound(taken(undo), function_name(undo.function))
            self.vertex.undo_bindings = found

    def refuse(self, reason: str) -> NoReturn:
        refuse(self.definition, self.vertex.row, reason)

    def _bound(self, wanted: Iterable[Parameter], of: str) -> tuple[Binding, ...]:
        bindings = []
        for parameter in wanted:
            binding = bind(parameter, self._giver, self.form, self.item)
            if binding is not None:
                self._check(parameter, binding, of)
                bindings.append(binding)
            elif not parameter.optional:
                self._refuse_unbound(parameter, of)
        return tuple(bindings)

    def _giver(self, name: str) -> str | None:
        """The vertex before this one that gives a result of this name."""
        vertex = self.plan.results.get(name)
        if vertex is None:
            return None
        own = self.undoes and vertex == self.vertex.name
        return (
            vertex
            if own or self.guarantees.can_have(self.vertex.name, vertex)
            else None
        )

    def _refuse_unbound(self, parameter: Parameter, of: str) -> NoReturn:
        name = parameter.name
        if name in self.plan.results:
            giver = self.plan.results[name]
            self.refuse(
                f"{of} has a parameter {name}, but {giver}, which gives it, does not come before {self.vertex.name}"
            )
        self.refuse(
            f"{of} has a parameter {name}, but no result and no field of Input has that name"
        )

    def _check(self, parameter: Parameter, binding: Binding, of: str) -> None:
        if binding.source == "error":
            self._check_error(parameter, of)
            return
        if binding.source == "result":
            self._check_presence(parameter, binding, of)
        given = self._given(binding)
        if not agree(given, parameter.annotation):
            self.refuse(
                f"{of} wants {parameter.name}: {spelled(parameter.annotation)}, but it gets {spelled(given)}"
            )

    def _check_error(self, parameter: Parameter, of: str) -> None:
        incoming = self.plan.incoming[self.vertex.name]
        if self.undoes or not any(link.exceptional for link in incoming):
            self.refuse(
                f"{of} has a parameter {parameter.name}: Failure, but no catch leads to {self.vertex.name}"
            )

    def _check_presence(self, parameter: Parameter, binding: Binding, of: str) -> None:
        if self.undoes and binding.name == self.vertex.name:
            return
        if self.guarantees.must_have(self.vertex.name, binding.name):
            return
        if binding.default is MISSING and not takes_none(parameter.annotation):
            self.refuse(
                f"{of} needs {parameter.name}, but {binding.name} may have no result then: "
                f"write {parameter.name}: {spelled(parameter.annotation)} | None, or give it a default"
            )

    def _given(self, binding: Binding) -> Any:
        """The annotation of what a parameter gets."""
        if binding.source == "result":
            giver = self.plan[binding.name]
            element = self.undoes and giver is self.vertex and giver.each is not None
            return giver.returns if element else giver.result_type
        if binding.source == "input":
            return hints(self.form)[binding.name]
        if binding.source == "whole_input":
            return self.form
        return self._element() if binding.source == "item" else Unknown

    def _element(self) -> Any:
        """The annotation of the elements that a map runs over."""
        over = self.vertex.each.over if self.vertex.each is not None else ""
        (link,) = self.plan.incoming[self.vertex.name]
        given = self.plan[link.source].result_type
        return element(field_of(given, over) if over else given)

    def _check_item(self, of: str) -> None:
        if self.item and not any(b.source == "item" for b in self.vertex.bindings):
            self.refuse(
                f"{self.vertex.name} runs for each element, but {of} has no {self.item!r} that gets it"
            )
