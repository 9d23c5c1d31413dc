"""Replacement of step and handler functions, and registration of a test's own definitions, for a block."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

from orchestrator import registry
from orchestrator.containers import group_by_key
from orchestrator.definition import Command, Workflow
from orchestrator.definition.declarations.handlers import StandIn, stand_ins
from orchestrator.definition.workflow.steps import Step
from orchestrator.registry import DefinitionClass

Replaceable = Callable[..., Any] | Step | type[Command] | str
"""A step, its function or name; a command, its handler's function or its name; an event handler's function or name."""


@contextmanager
def replaced(what: Replaceable, by: Callable[..., Any]) -> Iterator[None]:
    """Replace the function of a step or a handler.

    Args:
        what: the function, the step or the command; or the name of a step, a command or an event handler's function.
        by: the other function. It must take the same arguments, in a step by the same names.

    Raises:
        LookupError: nothing has that name, or several functions have it.
        TypeError: the other function takes other arguments.
    """
    function = _function(what)
    _check_signature(function, by)
    with add_stand_in(lambda asked, so_far: by if asked == function else so_far):
        yield


@contextmanager
def failing(
    what: Replaceable, error: BaseException, *, times: int | None = None
) -> Iterator[None]:
    """Make a step or a handler fail.

    Args:
        what: the step or handler, as for `replaced`.
        error: the error to raise.
        times: the number of failures before it works again; None for always.

    Raises:
        LookupError: nothing has that name, or several functions have it.
    """
    function, failed = _function(what), 0

    def failing_first(
        asked: Callable[..., Any], so_far: Callable[..., Any]
    ) -> Callable[..., Any]:
        if asked != function:
            return so_far

        @functools.wraps(so_far)
        def fail(*args: Any, **given: Any) -> Any:
            nonlocal failed
            if times is None or failed < times:
                failed += 1
                raise error
            return so_far(*args, **given)

        return fail

    with add_stand_in(failing_first):
        yield


@contextmanager
def registered(*definitions: DefinitionClass) -> Iterator[None]:
    """Register definitions outside apps' `processes` modules, such as those of a test."""
    before, duplicates = dict(registry.definitions), list(registry.duplicates)
    for definition in definitions:
        registry.register_definition(definition)
    try:
        yield
    finally:
        registry.definitions.clear()
        registry.definitions.update(before)
        registry.duplicates[:] = duplicates


@contextmanager
def add_stand_in(stand_in: StandIn) -> Iterator[None]:
    """Let a callable choose the function that runs for a step or a handler, until the end of the block."""
    stand_ins.append(stand_in)
    try:
        yield
    finally:
        stand_ins.remove(stand_in)


def _function(what: Replaceable) -> Callable[..., Any]:
    """The function of a step or a handler.

    Raises:
        LookupError: there is none, or there are several.
    """
    known = _known()
    if isinstance(what, Step):
        what = what.function or what.name
    if isinstance(what, type) and issubclass(what, Command):
        what = what.__name__
    if isinstance(what, str):
        return _named(what, known)
    if _made_from_input() or any(what in found for found in known.values()):
        return what
    raise LookupError(f"{_shown(what)} is neither a step's nor a handler's function")


def _named(name: str, known: dict[str, list[Callable[..., Any]]]) -> Callable[..., Any]:
    found = known.get(name, [])
    if len(found) == 1:
        return found[0]
    if found:
        raise LookupError(
            f"several functions run as {name}: {', '.join(map(_shown, found))}; name the function itself"
        )
    like = get_close_matches(name, known)
    hint = f"; is it {' or '.join(like)}?" if like else ""
    raise LookupError(f"no step, command or event handler is called {name!r}{hint}")


def _known() -> dict[str, list[Callable[..., Any]]]:
    """The functions of steps and handlers in the running code, by the names under which they run."""
    return group_by_key(dict.fromkeys([*_of_steps(), *_of_handlers()]))


def _of_steps() -> Iterator[tuple[str, Callable[..., Any]]]:
    for definition in registry.definitions.values():
        if not issubclass(definition, Workflow) or definition.static is None:
            continue
        for vertex in definition.static.vertices.values():
            for step in (vertex.step, vertex.undo):
                if step is not None and step.function is not None:
                    yield step.name, step.function


def _of_handlers() -> Iterator[tuple[str, Callable[..., Any]]]:
    for command, handlers in registry.command_handlers.items():
        yield from ((command, handler.function) for handler in handlers)
    for handlers in registry.reactions.values():
        for handler in handlers:
            yield handler.function.__name__, handler.function


def _made_from_input() -> bool:
    """Whether some workflow makes its steps from its input. They are not known before it runs."""
    return any(
        issubclass(definition, Workflow) and definition.static is None
        for definition in registry.definitions.values()
    )


def _check_signature(function: Callable[..., Any], by: Callable[..., Any]) -> None:
    """Refuse a function with another signature.

    Raises:
        TypeError: the function takes other arguments.
    """
    wanted = list(inspect.signature(function).parameters)
    by_place = function in {handler for _, handler in _of_handlers()}
    try:
        if by_place:
            # The context parameter of a handler is optional.
            number = min(len(inspect.signature(by).parameters), 2) or 1
            inspect.signature(by).bind(*[None] * number)
        else:
            inspect.signature(by).bind(**dict.fromkeys(wanted))
    except TypeError as mismatch:
        raise TypeError(
            f"{_shown(by)} cannot stand in for {_shown(function)}({', '.join(wanted)}): {mismatch}"
        ) from None


def _shown(function: Callable[..., Any]) -> str:
    return getattr(function, "__qualname__", repr(function))
