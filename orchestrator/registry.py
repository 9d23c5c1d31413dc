"""Definitions, command handlers and event handlers of the running code, by name."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from importlib import import_module
from pkgutil import walk_packages
from types import ModuleType
from typing import Any, NamedTuple, TypeGuard, TypeVar

from django.apps import apps
from django.core.exceptions import FieldDoesNotExist
from django.db.models import DecimalField, Field, FloatField, Model

from orchestrator.definition import Command, Event, ProcessManager, Workflow
from orchestrator.definition.declarations.handlers import (
    Handler,
    HandlerDecorator,
    handler_refusals,
    why_no_message,
)
from orchestrator.definition.declarations.process_definition import DEFAULT_QUEUE
from orchestrator.definition.labels import name_of
from orchestrator.definition.messages import renamed
from orchestrator.definition.workflow.plan import Plan
from orchestrator.exceptions import (
    InvalidDefinition,
    UnknownDefinition,
    UnknownEventType,
)

C = TypeVar("C", bound=Command)
E = TypeVar("E", bound=Event)
M = TypeVar("M", bound=Command | Event)

DefinitionClass = type[ProcessManager] | type[Workflow]
"""A definition of either kind."""

definitions: dict[tuple[str, int], DefinitionClass] = {}
command_handlers: dict[str, list[Handler]] = defaultdict(list)
reactions: dict[str, list[Handler]] = defaultdict(list)
duplicates: list[tuple[DefinitionClass, DefinitionClass]] = []
imported: set[DefinitionClass] = set()
"""The definitions that `processes` modules import from outside their apps."""


def handles(
    command: type[C],
    *,
    after_commit: bool = False,
    attempts: int = 4,
    timeout: float = 300,
    queue: str = DEFAULT_QUEUE,
    threads: int | None = None,
) -> HandlerDecorator[C]:
    """Register the handler of a command.

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
        InvalidDefinition: this is no command, the function waits inside the commit or cannot take the command, or a
            number makes no sense.
    """
    _refuse_message(command, Command)
    about = after_commit, attempts, timeout, queue, threads
    return _registrar(command_handlers, command, *about)


def reacts_to(
    event: type[E],
    *,
    attempts: int = 4,
    timeout: float = 300,
    queue: str = DEFAULT_QUEUE,
) -> HandlerDecorator[E]:
    """Register a simple event handler: one event, one action, no process. It runs in a transaction of its own."""
    _refuse_message(event, Event)
    return _registrar(reactions, event, True, attempts, timeout, queue)


def _refuse_message(message: Any, kind: type[Command] | type[Event]) -> None:
    """Check what a decorator was given.

    Raises:
        InvalidDefinition: it is no message of the kind.
    """
    if reason := why_no_message(message, kind):
        raise InvalidDefinition(name_of(message), "", reason)


def _registrar(
    known: dict[str, list[Handler]], message: type[M], *about: Any
) -> HandlerDecorator[M]:
    """Return a decorator that registers a function as a `Handler` of a message type.

    The decorator raises InvalidDefinition for a function that gives no answer when called, or that can never run.
    """
    kind: Any = message  # of one of the two that a handler is for

    def register(function: Any) -> Any:
        handler = Handler(function, kind, *about)
        for reason in handler_refusals(handler):
            raise InvalidDefinition(name_of(function), "", reason)
        known[message.__name__].append(handler)
        return function

    return register


def register_module(module: ModuleType, app: str = "") -> None:
    """Register the definitions of a `processes` module or package.

    Args:
        module: has them, or is a package whose modules have them.
        app: the name of the app, whose other modules may declare what this one imports.
    """
    within = app or module.__name__
    for part in (module, *_modules_of(module)):
        for value in filter(is_definition, vars(part).values()):
            if f"{value.__module__}.".startswith(f"{within}."):
                register_definition(value)
            else:
                imported.add(value)


def unregistered_definitions() -> Iterator[DefinitionClass]:
    """Yield the imported definitions that no `processes` module has brought, by name.

    Those that a function makes, or a test, are left out, and those whose module is not loaded any more.
    """
    known = {*definitions.values(), *(one for pair in duplicates for one in pair)}
    kinds: tuple[DefinitionClass, ...] = ProcessManager, Workflow
    found = {one for kind in kinds for one in _subclasses(kind)} - known
    yield from sorted(filter(_is_lasting, found), key=name_of)


def _subclasses(kind: DefinitionClass) -> Iterator[DefinitionClass]:
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def _is_lasting(definition: DefinitionClass) -> bool:
    parts = definition.__module__.split(".")
    tests = any(part.startswith("test") or part == "conftest" for part in parts)
    made = "<locals>" in definition.__qualname__
    loaded = definition.__module__ in sys.modules
    return is_definition(definition) and loaded and not tests and not made


def _modules_of(package: ModuleType) -> Iterator[ModuleType]:
    """Import the modules of a package, at any depth; a plain module has none."""
    paths = getattr(package, "__path__", ())
    for found in walk_packages(paths, f"{package.__name__}."):
        yield import_module(found.name)


def register_definition(definition: DefinitionClass) -> None:
    """Register a definition; a second one of the same name and version goes to `duplicates`, for the system check."""
    known = definitions.setdefault((definition.name, definition.version), definition)
    if known is not definition:
        duplicates.append((known, definition))


def is_definition(value: object) -> TypeGuard[DefinitionClass]:
    return (
        isinstance(value, type)
        and issubclass(value, ProcessManager | Workflow)
        and ("transitions" in vars(value) or "flow" in vars(value))
    )


def find_definition(name: str, version: int | None = None) -> DefinitionClass:
    """Return the definition of a name, in a version or else the newest.

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


def newest_definitions() -> Iterator[DefinitionClass]:
    """Yield the newest version of every definition, by name."""
    for name in sorted({name for name, _ in definitions}):
        yield find_definition(name)


class Subject(NamedTuple):
    """The application's model that a definition's processes are about, and its field with their correlation key."""

    model: type[Model]
    field: Field[Any, Any]

    def key_of(self, obj: Model) -> str:
        """Return the correlation key of an object; "" for another model's, and for one without a value."""
        ours = self.model._meta.concrete_model
        if not issubclass(obj._meta.concrete_model or type(obj), ours or self.model):
            return ""
        value = self.field.to_python(getattr(obj, self.field.attname))
        return "" if value is None else str(value)


def find_subject(definition: DefinitionClass) -> Subject:
    """Return the subject of a definition that names one.

    Raises:
        InvalidDefinition: there is no such model, or no such field with unique values.
    """
    app, name, *fields = definition.subject.split(".")
    try:
        model = apps.get_model(app, name)
        field = model._meta.get_field(fields[0] if fields else model._meta.pk.name)
    except (LookupError, FieldDoesNotExist) as missing:
        raise InvalidDefinition(definition.__name__, "", str(missing)) from None
    if other := model._meta.swapped:
        reason = f"the project has {other} in the place of {model._meta.label}"
        raise InvalidDefinition(definition.__name__, "", reason)
    if not isinstance(field, Field) or not field.concrete or not _is_unique(field):
        reason = f"{model._meta.label}.{field.name} is no column with unique values"
        raise InvalidDefinition(definition.__name__, "", reason)
    if isinstance(field, DecimalField | FloatField):
        reason = f"{model._meta.label}.{field.name} has values that are written in several ways, such as 1.5 and 1.50"
        raise InvalidDefinition(definition.__name__, "", reason)
    return Subject(model, field)


def _is_unique(field: Field[Any, Any]) -> bool:
    constraints = field.model._meta.total_unique_constraints
    return field.unique or any(one.fields == (field.name,) for one in constraints)


def subjects() -> Iterator[tuple[str, Subject]]:
    """Yield the names of the definitions with a subject, each with this subject.

    The newest version of a definition decides for all its versions. Wrong subjects are left out: a system check
    reports them.
    """
    for definition in newest_definitions():
        if definition.subject:
            with suppress(InvalidDefinition):
                yield definition.name, find_subject(definition)


def process_managers() -> Iterator[type[ProcessManager]]:
    """Return every process manager, in all its versions."""
    return (d for d in definitions.values() if issubclass(d, ProcessManager))


def current_name(kind: str) -> str:
    """Return the name of an event's class today: `kind`, unless that is a former name of a class."""
    if kind not in renamed or any(kind in one.events for one in definitions.values()):
        return kind
    return kind if reactions.get(kind) else renamed[kind]


def with_former_names(kinds: Iterable[str]) -> set[str]:
    """Return the names of events' classes with their former names, under which events may be stored."""
    found = set(kinds)
    return found | {one for one, current in renamed.items() if current in found}


def receivers(event: str) -> list[DefinitionClass]:
    """Return the definitions with rows for an event type, each in its newest version that has them.

    Live processes may run on an older version than the newest.
    """
    event = current_name(event)
    knowing = [key for key, cls in definitions.items() if event in cls.events]
    return [find_definition(*key) for key in sorted(dict(sorted(knowing)).items())]


def event_types() -> list[str]:
    """Return the names of all event types that the running code knows."""
    known = {name for one in definitions.values() for name in one.events}
    return sorted(known | {name for name, handlers in reactions.items() if handlers})


def event_class(name: str) -> type[Event]:
    """Return the class of an event type.

    Raises:
        UnknownEventType: nothing in the running code knows it.
    """
    current = current_name(name)
    for cls in definitions.values():
        if current in cls.events:
            return cls.events[current]
    for handler in reactions.get(current, ()):
        if issubclass(handler.message, Event):
            return handler.message
    raise UnknownEventType(
        f"no process manager and no event handler knows the event type {name!r}"
    )


def similar_event_type(name: str) -> str:
    """Return the known event type with the most similar name; "" without a similar one."""
    known = {event for cls in definitions.values() for event in cls.events}
    return next(iter(get_close_matches(name, sorted(known | reactions.keys()))), "")


def command_handler(name: str) -> Handler | None:
    """Return the handler of a command type; None without one."""
    handlers = command_handlers.get(name) or command_handlers.get(renamed.get(name, ""))
    return handlers[0] if handlers else None


def find_reaction(name: str) -> Handler | None:
    """Return the simple event handler with this full name; None without one."""
    return next((h for hs in reactions.values() for h in hs if h.name == name), None)


def defining_modules() -> set[str]:
    """Return the names of the modules that define the registered definitions, their steps, and the handlers."""
    found = {definition.__module__ for definition in definitions.values()}
    for handlers in [*command_handlers.values(), *reactions.values()]:
        found |= {handler.function.__module__ for handler in handlers}
    for definition in definitions.values():
        if not issubclass(definition, ProcessManager) and definition.static:
            steps = (one.step for one in definition.static.vertices.values())
            found |= {getattr(step.function, "__module__", "") for step in steps}
    return found - {""}


def work_queues() -> set[str]:
    """Return the queues that the running code names, and the default one."""
    return {DEFAULT_QUEUE, *(queue for _, queue, _ in named_queues())}


def named_queues() -> Iterator[tuple[str, str, object]]:
    """Yield words, queue and object for each definition, step and after-commit handler that names a queue."""
    for definition in definitions.values():
        yield definition.__name__, definition.queue, definition
        if not issubclass(definition, ProcessManager) and definition.static:
            yield from _step_queues(definition, definition.static)
    for handlers in [*command_handlers.values(), *reactions.values()]:
        for handler in handlers:
            if handler.after_commit:
                yield f"The handler {handler.name}", handler.queue, handler.function


def _step_queues(
    workflow: type[Workflow], plan: Plan
) -> Iterator[tuple[str, str, object]]:
    """Yield the queues that the steps of a workflow, and the functions that undo them, name."""
    for name, vertex in plan.vertices.items():
        of = f"{name} of {workflow.__name__}"
        if queue := vertex.step.policy.queue:
            yield f"The step {of}", queue, workflow
        if queue := vertex.undo_policy.queue:
            yield f"What undoes {of}", queue, workflow
