"""The parameters and results of functions and sub-processes, from their annotations."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, get_type_hints

from orchestrator.definition.annotations import MISSING, hints, without_outcomes
from orchestrator.definition.labels import name_of
from orchestrator.definition.refusals import refuse_row
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.steps import Function, Step

REMEMBERED = 16_384
"""Most functions whose parameters are cached. A large graph has fewer."""

BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class FromFactory:
    """The default of a field with a default factory. A missing value is omitted."""


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
    """Return the parameters of a function, with resolved annotations.

    Raises:
        TypeError: a parameter cannot be given by name.
        ValueError, NameError: the signature or an annotation cannot be read.
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
def declared_result(function: Function) -> Any:
    """Return the annotation of a function's result, without outcomes such as `Skip`; MISSING if there is none."""
    return without_outcomes(get_type_hints(function).get("return", MISSING))


def step_parameters(step: Step) -> tuple[Parameter, ...]:
    """Return the parameters of a step: of its function, of its sub-process's Input, or what its question is about."""
    if step.function is not None:
        return parameters(step.function)
    if step.question is not None:
        return tuple(Parameter(one, Any, None) for one in step.question.about)
    child = step.definition
    return input_parameters(child.Input) if child is not None else ()


def input_parameters(form: type[Any]) -> tuple[Parameter, ...]:
    """Return the fields of a workflow's Input as parameters."""
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
"""The errors of unresolvable annotations and missing signatures."""


def read_returns(definition: str, plan: Plan) -> None:
    """Set the result types of all steps.

    Raises:
        InvalidDefinition: a function has no return annotation.
    """
    for vertex in plan.vertices.values():
        function, child = vertex.step.function, vertex.step.definition
        if vertex.step.kind == "sleep":
            vertex.returns = type(None)
        if child is not None:
            vertex.returns = child.result_type()
        if function is None:
            continue
        read = partial(declared_result, function)
        found = read_signature(definition, vertex, function, read)
        if found is MISSING:
            reason = "has no return annotation: say what its result is, None if there is none"
            refuse_row(definition, vertex.row, f"{name_of(function)} {reason}")
        vertex.returns = found


def read_signature(
    definition: str, vertex: Vertex, function: object, read: Callable[[], Any]
) -> Any:
    """Return what `read` returns.

    Raises:
        InvalidDefinition: `read` cannot resolve an annotation or a signature of the function.
    """
    try:
        return read()
    except UNREADABLE as error:
        refuse_row(definition, vertex.row, f"{name_of(function)}: {error}")
