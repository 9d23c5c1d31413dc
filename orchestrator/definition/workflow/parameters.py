"""What each parameter of a step is filled with, found by name when the workflow is declared.

Every parameter of every step gets its source, and the source must be able to fill it.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NoReturn, get_type_hints

from orchestrator.definition.invalid import invalid
from orchestrator.definition.typing import (
    MISSING,
    Unknown,
    agree,
    element,
    field_of,
    hints,
    spelled,
    takes_none,
    without_none,
    without_outcomes,
)
from orchestrator.definition.words import name_of
from orchestrator.definition.workflow.certainty import Certainty
from orchestrator.definition.workflow.context import Failure, StepContext
from orchestrator.definition.workflow.plan import Binding, Plan, Vertex
from orchestrator.definition.workflow.steps import Function, Step

REMEMBERED = 16_384
"""Functions whose parameters are kept: more than a large graph has, and a bound for graphs built again and again."""

BY_NAME = (
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
    inspect.Parameter.KEYWORD_ONLY,
)


class FromFactory:
    """The default of a field that makes a new one each time: what is not given is left out."""


FROM_FACTORY = FromFactory()


@dataclass(frozen=True)
class Parameter:
    """A parameter of a step function: its name, annotation and default (MISSING without one)."""

    name: str
    annotation: Any
    default: Any

    @property
    def optional(self) -> bool:
        """Whether it has a default."""
        return self.default is not MISSING


@lru_cache(REMEMBERED)
def parameters(function: Function) -> tuple[Parameter, ...]:
    """The parameters of a function, with resolved annotations.

    Raises:
        TypeError, ValueError, NameError: they cannot be told, or not be given by name.
    """
    annotated = get_type_hints(function)
    found = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind not in BY_NAME:
            raise TypeError(f"the parameter {name} cannot be given by name")
        annotation = annotated.get(name, MISSING)
        found.append(Parameter(name, annotation, parameter.default))
    return tuple(found)


@lru_cache(REMEMBERED)
def returns(function: Function) -> Any:
    """The annotation of a function's result, without the outcomes that it may return instead; MISSING without one."""
    return without_outcomes(get_type_hints(function).get("return", MISSING))


def taken(step: Step) -> tuple[Parameter, ...]:
    """What a step is given when it runs: its function's parameters, or the fields of its sub-process's Input."""
    if step.function is not None:
        return parameters(step.function)
    return fields(step.definition.Input) if step.definition is not None else ()


def fields(form: type[Any]) -> tuple[Parameter, ...]:
    """The fields of a workflow's Input, as the parameters of running it."""
    annotated = hints(form)
    return tuple(
        Parameter(field.name, annotated[field.name], _default(field))
        for field in dataclasses.fields(form)
        if field.init
    )


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return FROM_FACTORY
    return MISSING


UNREADABLE = (NameError, TypeError, ValueError)
"""What is raised by annotations that cannot be resolved, and by what has no signature."""


def bind_parameters(definition: str, plan: Plan, form: type[Any]) -> None:
    """Gives the vertices their bindings.

    Args:
        definition: the name of the class, for messages.
        plan: without cycles.
        form: the workflow's Input.

    Raises:
        InvalidDefinition: naming the row, the step and its parameter.
    """
    asked = dict.fromkeys(
        plan.results[parameter.name]
        for vertex in plan.vertices.values()
        for parameter in _all_parameters(definition, vertex)
        if parameter.name in plan.results
    )
    certainty = Certainty(plan, asked)
    for name in plan.order:
        _Parameters(definition, plan, form, certainty, plan[name]).bind()


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
            invalid(definition, vertex.row, f"{name_of(function)} {reason}")
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
        invalid(definition, vertex.row, f"{name_of(function)}: {error}")


class _Parameters:
    """Those of one vertex."""

    def __init__(
        self,
        definition: str,
        plan: Plan,
        form: type[Any],
        certainty: Certainty,
        vertex: Vertex,
    ) -> None:
        self.definition, self.plan, self.form = definition, plan, form
        self.certainty, self.vertex = certainty, vertex
        self.item = vertex.each.item if vertex.each is not None else ""
        self.undoes = False

    def bind(self) -> None:
        step, undo = self.vertex.step, self.vertex.undo
        of = name_of(step.function)
        if step.definition is not None:
            of = f"{name_of(step.definition)}.Input"
        self.vertex.bindings = self._bound(taken(step), of)
        self._check_item(of)
        if undo is not None:
            self.undoes = True
            found = self._bound(taken(undo), name_of(undo.function))
            self.vertex.undo_bindings = found

    def _invalid(self, reason: str) -> NoReturn:
        invalid(self.definition, self.vertex.row, reason)

    def _bound(self, wanted: Iterable[Parameter], of: str) -> tuple[Binding, ...]:
        bindings = []
        for parameter in wanted:
            binding = self._binding(parameter)
            if binding is not None:
                self._check(parameter, binding, of)
                bindings.append(binding)
            elif not parameter.optional:
                self._unbound(parameter, of)
        return tuple(bindings)

    def _binding(self, parameter: Parameter) -> Binding | None:
        """What a parameter is filled with; None when there is nothing of its name."""
        name, annotation = parameter.name, without_none(parameter.annotation)
        if annotation is StepContext:
            return Binding(name, "context")
        if annotation is Failure:
            return Binding(name, "error")
        if self.item and name == self.item:
            return Binding(name, "item")
        if (giver := self._giver(name)) is not None:
            made_anew = parameter.default is FROM_FACTORY
            default = MISSING if made_anew else parameter.default
            return Binding(name, "result", giver, default)
        if name in hints(self.form):
            return Binding(name, "input", name)
        return Binding(name, "whole_input") if name == "input" else None

    def _giver(self, name: str) -> str | None:
        """The vertex before this one that gives a result of this name."""
        giver, own = self.plan.results.get(name), self.vertex.name
        if giver is None or (self.undoes and giver == own):
            return giver
        return giver if self.certainty.can_have(own, giver) else None

    def _unbound(self, parameter: Parameter, of: str) -> NoReturn:
        name = parameter.name
        if name in self.plan.results:
            giver = self.plan.results[name]
            self._invalid(
                f"{of} has a parameter {name}, but {giver}, which gives it, does not come before {self.vertex.name}"
            )
        self._invalid(
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
            self._invalid(
                f"{of} wants {parameter.name}: {spelled(parameter.annotation)}, but it gets {spelled(given)}"
            )

    def _check_error(self, parameter: Parameter, of: str) -> None:
        incoming = self.plan.incoming[self.vertex.name]
        if self.undoes or not any(link.exceptional for link in incoming):
            self._invalid(
                f"{of} has a parameter {parameter.name}: Failure, but no catch leads to {self.vertex.name}"
            )

    def _check_presence(self, parameter: Parameter, binding: Binding, of: str) -> None:
        if self.undoes and binding.name == self.vertex.name:
            return
        if self.certainty.must_have(self.vertex.name, binding.name):
            return
        if binding.default is MISSING and not takes_none(parameter.annotation):
            self._invalid(
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
            self._invalid(
                f"{self.vertex.name} runs for each element, but {of} has no {self.item!r} that gets it"
            )
