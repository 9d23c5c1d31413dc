"""Handlers of commands and events: functions of the application, their context and their answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeVar, get_type_hints, overload
from uuid import UUID

from asgiref.sync import async_to_sync

from orchestrator.definition.annotations import takes_arguments
from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE
from orchestrator.definition.messages import Command, Event


@dataclass(frozen=True)
class CommandContext:
    """The context of a handler's call.

    `command_id` is equal in every attempt, and so is the `idempotency_key`. The attempt is counted from 1; inside the
    transaction it is that of the event or deadline.
    """

    process_id: UUID | None
    command_id: UUID
    attempt: int
    correlation_key: str

    @property
    def idempotency_key(self) -> str:
        """The command's id as text, to send along with effects outside the database."""
        return str(self.command_id)


class Answer:
    """The answer of a handler: a text of at most 200 characters for the history, and the events that it caused."""

    def __init__(self, text: str, *events: Event) -> None:
        given: tuple[Any, ...] = events
        for event in given:
            if isinstance(event, str):
                raise TypeError(
                    f"a handler returns events, not {event!r:.200}; how it went is said by Answer({event!r:.200})"
                )
            if not isinstance(event, Event):
                raise TypeError(f"a handler returns events, not {event!r}")
        self.text = text[:200]
        self.events = events


HandlerResult = Answer | Event | Iterable[Event] | None
"""The values that a handler may return."""

M = TypeVar("M", bound=Command | Event)
R = TypeVar("R", bound=HandlerResult)


class HandlerDecorator(Protocol[M]):
    """A decorator for functions of a message, with or without its context."""

    @overload
    def __call__(self, function: Callable[[M], R], /) -> Callable[[M], R]: ...

    @overload
    def __call__(
        self, function: Callable[[M, CommandContext], R], /
    ) -> Callable[[M, CommandContext], R]: ...

    @overload
    def __call__(
        self, function: Callable[[M], Coroutine[Any, Any, R]], /
    ) -> Callable[[M], Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(
        self, function: Callable[[M, CommandContext], Coroutine[Any, Any, R]], /
    ) -> Callable[[M, CommandContext], Coroutine[Any, Any, R]]: ...


@dataclass(frozen=True)
class Handler:
    """A function registered for a message type; timeout in seconds."""

    function: Callable[..., Any]
    message: type[Command | Event]
    after_commit: bool
    attempts: int
    timeout: float
    queue: str
    threads: int | None = None

    @property
    def name(self) -> str:
        return f"{self.function.__module__}.{self.function.__qualname__}"

    @property
    def is_call(self) -> bool:
        """Whether it waits outside: a worker has many such calls in flight at once."""
        return self.threads is not None or iscoroutinefunction(self.function)

    def __call__(self, message: Command | Event, context: CommandContext) -> Answer:
        returned = self.call_function(message, context)
        if self.after_commit and inspect.iscoroutine(returned):
            returned = async_to_sync(_awaited)(returned)
        return self.to_answer(returned)

    def call_function(self, message: Command | Event, context: CommandContext) -> Any:
        """Return what its function returns; of an asynchronous function a coroutine."""
        function, takes_context = function_in_use(self.function), self._takes_context
        if function is not self.function:  # a test has replaced it
            takes_context = _takes_context(function)
        return function(message, context) if takes_context else function(message)

    @cached_property
    def _takes_context(self) -> bool:
        return _takes_context(self.function)

    def to_answer(self, returned: Any) -> Answer:
        """Return what its function returned as an answer.

        Raises:
            TypeError: the function returned something else than events; the message names it.
        """
        if isinstance(returned, Answer):
            return returned
        if returned is None:
            return Answer("")
        many = isinstance(returned, list | tuple | Iterator)
        events = list(returned) if many else [returned]
        try:
            return Answer("", *events)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}") from None


def _takes_context(function: Callable[..., Any]) -> bool:
    return len(inspect.signature(function).parameters) > 1


async def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return await coroutine


USUAL = {"attempts": 4, "timeout": 300, "queue": DEFAULT_QUEUE}
"""The values that a decorator has by default."""


def why_no_message(message: Any, kind: type[Command] | type[Event]) -> str:
    """Return why a handler cannot be for something, or "".

    Args:
        message: what the decorator was given.
        kind: Command for `handles`, Event for `reacts_to`.
    """
    decorator = "handles" if kind is Command else "reacts_to"
    noun, other = (
        ("a command", "reacts_to") if kind is Command else ("an event", "handles")
    )
    if inspect.isfunction(message):
        return f"it needs the {noun[2:].strip()}: write @{decorator}(The{kind.__name__}) above it"
    if isinstance(message, type) and message not in (Command, Event):
        if issubclass(message, kind):
            return ""
        if issubclass(message, Command | Event):
            return f"@{decorator} takes {noun}: write @{other}({message.__name__})"
    return f"@{decorator} takes the class of {noun}, not {message!r:.100}"


def handler_refusals(handler: Handler) -> Iterator[str]:
    """Yield why a handler can never run, or does not mean what it says."""
    function: Any = handler.function
    if isinstance(function, type) or not callable(function):
        yield "a handler is a function"
        return
    yield from _waiting_refusals(handler)
    yield from _parameter_refusals(handler)
    yield from _policy_refusals(handler)


def _policy_refusals(handler: Handler) -> Iterator[str]:
    """Yield the values of the decorator that make no sense. Code may run without a type checker."""
    threads: Any = handler.threads
    seconds: Any = handler.timeout
    queue: Any = handler.queue
    later: Any = handler.after_commit
    if threads is not None and not _is_count(threads):
        yield f"threads={threads!r} must be a whole number from 1"
    if not _is_count(handler.attempts):
        yield f"attempts={handler.attempts!r} must be a whole number from 1"
    if (
        isinstance(seconds, bool)
        or not isinstance(seconds, int | float)
        or seconds <= 0
    ):
        yield f"timeout={seconds!r} must be seconds, more than 0"
    if not queue or not isinstance(queue, str):
        yield f"queue={queue!r} must be the name of a queue"
    if not isinstance(later, bool):
        yield f"after_commit={later!r} must be True or False"
    given = {"attempts": handler.attempts, "timeout": seconds, "queue": queue}
    for name in () if later else [name for name in USUAL if given[name] != USUAL[name]]:
        yield (
            f"{name}={given[name]!r} means nothing inside the commit, which has the attempts and the queue of its "
            "event: leave it out, or say after_commit=True"
        )


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _parameter_refusals(handler: Handler) -> Iterator[str]:
    """Yield why a function does not take a message and perhaps its context."""
    name, function = handler.message.__name__, handler.function
    if not (takes_arguments(function, 1) or takes_arguments(function, 2)):
        yield f"it must take the message, {name}, and perhaps a CommandContext"
        return
    try:
        parameters = [*inspect.signature(function).parameters]
        hints = get_type_hints(function)
    except (NameError, TypeError, ValueError):
        return  # a builtin, or a name that comes later
    for place, wanted in zip(
        parameters, (handler.message, CommandContext), strict=False
    ):
        hint = hints.get(place, wanted)
        other = isinstance(hint, type) and not issubclass(wanted, hint)
        if other:
            yield f"{place} is a {hint.__name__}, and would get a {wanted.__name__}"


def _waiting_refusals(handler: Handler) -> Iterator[str]:
    if issubclass(handler.message, Event) and iscoroutinefunction(handler.function):
        yield "it is asynchronous, and runs inside a transaction, where nothing may wait: write a plain function"
    if inspect.isasyncgenfunction(handler.function):
        yield "it is asynchronous and yields: a handler returns its events"
    if handler.is_call and not handler.after_commit:
        what = "is asynchronous" if handler.threads is None else "has threads"
        yield (
            f"it {what}, and runs inside the commit, where nothing may wait: "
            "write a plain function, or say after_commit=True"
        )
    elif handler.threads is not None and iscoroutinefunction(handler.function):
        yield f"it is asynchronous and needs no threads: leave threads={handler.threads!r} out"


StandIn = Callable[[Callable[..., Any], Callable[..., Any]], Callable[..., Any]]
"""Takes a step's or a handler's function and its replacement so far; returns the function to run."""

stand_ins: list[StandIn] = []
"""Replacements of these functions, and wrappers around them, in tests; empty otherwise."""


def function_in_use(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that runs for a step's or a handler's function: itself, unless a test replaces it."""
    chosen = function
    for stand_in in stand_ins:
        chosen = stand_in(function, chosen)
    return chosen
