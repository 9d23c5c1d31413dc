"""What each parameter of a step function is filled with, found by name when the workflow is declared."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, get_type_hints

from orchestrator.definition.domains import hints
from orchestrator.definition.workflow.agreement import (
    MISSING,
    without_none,
    without_outcomes,
)
from orchestrator.definition.workflow.context import Failure, StepContext
from orchestrator.definition.workflow.steps import Function, Step

Source = Literal["result", "input", "whole_input", "context", "error", "item"]

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


@dataclass(frozen=True)
class Binding:
    """A parameter and where its value comes from; `name` is the vertex, or the input's field."""

    parameter: str
    source: Source
    name: str = ""
    default: Any = MISSING


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


def bind(
    parameter: Parameter,
    giver: Callable[[str], str | None],
    form: type[Any],
    item: str = "",
) -> Binding | None:
    """What a parameter is filled with; None when there is nothing of its name.

    Args:
        parameter: of a step function.
        giver: the name of a result -> the vertex before this one that gives it, if any.
        form: the workflow's Input.
        item: the parameter that gets the element of a list.
    """
    name, annotation = parameter.name, without_none(parameter.annotation)
    if annotation is StepContext:
        return Binding(name, "context")
    if annotation is Failure:
        return Binding(name, "error")
    if item and name == item:
        return Binding(name, "item")
    if (vertex := giver(name)) is not None:
        default = (
            parameter.default if parameter.default is not FROM_FACTORY else MISSING
        )
        return Binding(name, "result", vertex, default)
    if name in hints(form):
        return Binding(name, "input", name)
    if name == "input":
        return Binding(name, "whole_input")
    return None
