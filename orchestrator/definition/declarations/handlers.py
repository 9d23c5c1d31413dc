"""Handlers of commands and events: functions of the application, their context and their answers."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import Any, Protocol, TypeVar, overload
from uuid import UUID

from asgiref.sync import async_to_sync

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
        function = function_in_use(self.function)
        wanted = len(inspect.signature(function).parameters)
        return function(message, context) if wanted > 1 else function(message)

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


async def _awaited(coroutine: Coroutine[Any, Any, Any]) -> Any:
    return await coroutine


def handler_refusals(handler: Handler) -> Iterator[str]:
    yield from _waiting_refusals(handler)
    if handler.threads is not None and handler.threads < 1:
        yield f"threads={handler.threads!r} must be a whole number from 1"
    if handler.attempts < 1:
        yield f"attempts={handler.attempts!r} must be a whole number from 1"
    if not handler.timeout > 0:
        yield f"timeout={handler.timeout!r} must be seconds, more than 0"
    if not handler.queue:
        yield f"queue={handler.queue!r} must be the name of a queue"


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
