"""Definitions, command handlers and event handlers of the running code, by name."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Callable, Coroutine, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from types import ModuleType
from typing import Any, Protocol, TypeVar, overload
from uuid import UUID

from asgiref.sync import async_to_sync

from orchestrator.definition import Command, Event, ProcessManager, Workflow
from orchestrator.definition.invalid import is_asynchronous
from orchestrator.definition.process_definition import DEFAULT_QUEUE
from orchestrator.definition.words import name_of
from orchestrator.definition.workflow.plan import Plan
from orchestrator.exceptions import (
    InvalidDefinition,
    UnknownDefinition,
    UnknownEventType,
)


@dataclass(frozen=True)
class CommandContext:
    """What a handler may know of its call.

    `command_id` is equal in every attempt, and so is the `idempotency_key` that is made of it. The attempt is counted
    from 1; inside the transaction it is that of the event or deadline.
    """

    process_id: UUID | None
    command_id: UUID
    attempt: int
    correlation_key: str

    @property
    def idempotency_key(self) -> str:
        """The command's id as text, for whatever has effects outside."""
        return str(self.command_id)


class Answer:
    """What a handler may return to say how it went, in at most 200 characters, beside the events it caused."""

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


Returned = Answer | Event | Iterable[Event] | None
"""What a handler may return."""

C = TypeVar("C", bound=Command)
E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=Command | Event)
R = TypeVar("R", bound=Returned)


class Registers(Protocol[M]):
    """A decorator for functions that take the message, and its context if they like."""

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
        return self.threads is not None or is_asynchronous(self.function)

    def __call__(self, message: Command | Event, context: CommandContext) -> Answer:
        returned = self.returned(message, context)
        if self.after_commit and inspect.iscoroutine(returned):
            returned = async_to_sync(_awaited)(returned)
        return self.answered(returned)

    def returned(self, message: Command | Event, context: CommandContext) -> Any:
        """What its function gives back; of an asynchronous one a coroutine."""
        function = in_use(self.function)
        wanted = len(inspect.signature(function).parameters)
        return function(message, context) if wanted > 1 else function(message)

    def answered(self, returned: Any) -> Answer:
        """What its function has given back, as an answer.

        Raises:
            TypeError: naming the function, which has given back something else than events.
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


Declared = type[ProcessManager] | type[Workflow]
"""A definition of either kind."""

definitions: dict[tuple[str, int], Declared] = {}
command_handlers: dict[str, list[Handler]] = defaultdict(list)
reactions: dict[str, list[Handler]] = defaultdict(list)
twins: list[tuple[Declared, Declared]] = []
StandIn = Callable[[Callable[..., Any], Callable[..., Any]], Callable[..., Any]]
"""Gets a step's or a handler's function and what would run in its place so far; gives what runs."""

stand_ins: list[StandIn] = []
"""What tests put around these functions or in their place; empty otherwise."""


def in_use(function: Callable[..., Any]) -> Callable[..., Any]:
    """What runs for a step's or a handler's function: itself, unless a test says otherwise."""
    chosen = function
    for stand_in in stand_ins:
        chosen = stand_in(function, chosen)
    return chosen


def handles(
    command: type[C],
    *,
    after_commit: bool = False,
    attempts: int = 4,
    timeout: float = 300,
    queue: str = DEFAULT_QUEUE,
    threads: int | None = None,
) -> Registers[C]:
    """Registers the handler of a command.

    Args:
        command: the command's class.
        after_commit: for effects outside the database; runs after the commit, at least once, outside any transaction.
            Otherwise it runs inside the transition's transaction and rolls it back by raising.
        attempts: how often an after-commit handler is tried in all.
        timeout: seconds an after-commit handler may take before its worker is killed.
        queue: the queue whose workers run an after-commit handler.
        threads: how many calls of an after-commit handler that waits outside one worker has in flight at once, each in
            a thread of its own, beside other work. An `async def` needs none.

    Raises:
        InvalidDefinition: the function waits inside the commit, or a number makes no sense.
    """
    about = after_commit, attempts, timeout, queue, threads
    return _registering(command_handlers, command, *about)


def reacts_to(
    event: type[E],
    *,
    attempts: int = 4,
    timeout: float = 300,
    queue: str = DEFAULT_QUEUE,
) -> Registers[E]:
    """Registers a simple event handler: one event, one action, no process. It runs in a transaction of its own."""
    return _registering(reactions, event, True, attempts, timeout, queue)


def _registering(
    known: dict[str, list[Handler]], message: type[M], *about: Any
) -> Registers[M]:
    """A decorator that registers a function for a message type, as a `Handler` of what is said about it.

    It raises InvalidDefinition, naming the function, for one that gives no answer when it is called, or that can never
    be carried out.
    """
    kind: Any = message  # of one of the two that a handler is for

    def register(function: Any) -> Any:
        handler = Handler(function, kind, *about)
        for reason in _reasons(handler):
            raise InvalidDefinition(name_of(function), "", reason)
        known[message.__name__].append(handler)
        return function

    return register


def _reasons(handler: Handler) -> Iterator[str]:
    yield from _reasons_of_waiting(handler)
    if handler.threads is not None and handler.threads < 1:
        yield f"threads={handler.threads!r} must be a whole number from 1"
    if handler.attempts < 1:
        yield f"attempts={handler.attempts!r} must be a whole number from 1"
    if not handler.timeout > 0:
        yield f"timeout={handler.timeout!r} must be seconds, more than 0"
    if not handler.queue:
        yield f"queue={handler.queue!r} must be the name of a queue"


def _reasons_of_waiting(handler: Handler) -> Iterator[str]:
    if issubclass(handler.message, Event) and is_asynchronous(handler.function):
        yield "it is asynchronous, and runs inside a transaction, where nothing may wait: write a plain function"
    if inspect.isasyncgenfunction(handler.function):
        yield "it is asynchronous and yields: a handler returns its events"
    if handler.is_call and not handler.after_commit:
        what = "is asynchronous" if handler.threads is None else "has threads"
        yield (
            f"it {what}, and runs inside the commit, where nothing may wait: "
            "write a plain function, or say after_commit=True"
        )
    elif handler.threads is not None and is_asynchronous(handler.function):
        yield f"it is asynchronous and needs no threads: leave threads={handler.threads!r} out"


def collect(module: ModuleType) -> None:
    """Takes in the definitions that a `processes` module declares."""
    for value in vars(module).values():
        if _declared_in(module, value):
            register(value)


def register(definition: Declared) -> None:
    """Makes a definition known; a second one of the same name and version is kept aside for the system check."""
    known = definitions.setdefault((definition.name, definition.version), definition)
    if known is not definition:
        twins.append((known, definition))


def _declared_in(module: ModuleType, value: object) -> bool:
    return (
        isinstance(value, type)
        and issubclass(value, ProcessManager | Workflow)
        and ("transitions" in vars(value) or "flow" in vars(value))
        and value.__module__ == module.__name__
    )


def definition(name: str, version: int | None = None) -> Declared:
    """The definition of that name, in that version or else the newest.

    Raises:
        UnknownDefinition: the running code has none.
    """
    if version is None:
        version = max((v for n, v in definitions if n == name), default=0)
    try:
        return definitions[name, version]
    except KeyError:
        known = ", ".join(sorted({n for n, _ in definitions})) or "none"
        shown = f"{name} version {version}" if version else name
        raise UnknownDefinition(
            "no definition %(name)s in the running code; known: %(names)s", shown, known
        ) from None


def newest() -> Iterator[Declared]:
    """The newest version of every definition, by name."""
    for name in sorted({name for name, _ in definitions}):
        yield definition(name)


def process_managers() -> Iterator[type[ProcessManager]]:
    """Every definition of that kind."""
    return (d for d in definitions.values() if issubclass(d, ProcessManager))


def interested(event: str) -> list[Declared]:
    """The definitions that have rows for an event type, each in the newest version that does: live processes may run
    on an older one than the newest.
    """
    knowing = [key for key, cls in definitions.items() if event in cls.events]
    return [definition(*key) for key in sorted(dict(sorted(knowing)).items())]


def event_types() -> list[str]:
    """The names of all event types that something in the running code knows."""
    known = {name for one in definitions.values() for name in one.events}
    return sorted(known | {name for name, handlers in reactions.items() if handlers})


def event_class(name: str) -> type[Event]:
    """The class of an event type.

    Raises:
        UnknownEventType: nothing in the running code knows it.
    """
    for cls in definitions.values():
        if name in cls.events:
            return cls.events[name]
    for handler in reactions.get(name, ()):
        if issubclass(handler.message, Event):
            return handler.message
    raise UnknownEventType(
        f"no process manager and no event handler knows the event type {name!r}"
    )


def resembling(name: str) -> str:
    """The known event type whose name is nearest to one that is not known; "" when none is near."""
    known = {event for cls in definitions.values() for event in cls.events}
    return next(iter(get_close_matches(name, sorted(known | reactions.keys()))), "")


def command_handler(name: str) -> Handler | None:
    """The handler of a command type, if the running code has one."""
    handlers = command_handlers.get(name)
    return handlers[0] if handlers else None


def reaction(name: str) -> Handler | None:
    """The simple event handler of that full name."""
    return next((h for hs in reactions.values() for h in hs if h.name == name), None)


def queues() -> set[str]:
    """The queues that work of the running code is stored on; of what names none, the default one."""
    return {DEFAULT_QUEUE, *(queue for _, queue, _ in queues_named())}


def queues_named() -> Iterator[tuple[str, str, object]]:
    """Who names which queue: definitions, their steps, and handlers that run after the commit."""
    for definition in definitions.values():
        yield definition.__name__, definition.queue, definition
        if not issubclass(definition, ProcessManager) and definition.static:
            yield from _queues_of_steps(definition, definition.static)
    for handlers in [*command_handlers.values(), *reactions.values()]:
        for handler in handlers:
            if handler.after_commit:
                yield f"The handler {handler.name}", handler.queue, handler.function


def _queues_of_steps(
    workflow: type[Workflow], plan: Plan
) -> Iterator[tuple[str, str, object]]:
    """The queues that steps of a workflow, and what undoes them, have of their own."""
    for name, vertex in plan.vertices.items():
        of = f"{name} of {workflow.__name__}"
        if queue := vertex.step.policy.queue:
            yield f"The step {of}", queue, workflow
        if queue := vertex.undo_policy.queue:
            yield f"What undoes {of}", queue, workflow
