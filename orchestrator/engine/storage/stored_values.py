"""Reading stored values of the application: events, commands, data, input and results.

Another release may have stored them: with one field more or less, or of another type. Then the error is an
`UnreadableValue`. Work that needs the value is set aside until the running code reads it.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import lru_cache
from typing import Any, TypeVar

from orchestrator import registry
from orchestrator.definition import Command, Event, ProcessManager
from orchestrator.definition.codec.own_code import runs_code
from orchestrator.definition.declarations.message_forms import decode_stored
from orchestrator.engine.storage.application_code.calling import ReadingCall
from orchestrator.engine.storage.application_code.errors import from_engine
from orchestrator.exceptions import (
    ExitRefused,
    HandlerMissing,
    InvalidMessage,
    Permanent,
    TransactionAborted,
    UnreadableValue,
)
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.text import Text

T = TypeVar("T")
M = TypeVar("M", bound=Command | Event)

SPOILT = Permanent | TransactionAborted
"""The engine's errors about code that has spoilt its transaction."""


def read_stored(form: type[T], body: object, name: str) -> T:
    """Return a stored value as its type.

    Args:
        form: the type.
        body: the value as JSON values.
        name: the name of the value, for people.

    Raises:
        UnreadableValue: the running code cannot read it.
        ExitRefused, Permanent, TransactionAborted: as other code of the application.
    """
    try:
        with ReadingCall(name) if _runs_code(form) else NOTHING:
            return decode_stored(form, body)
    except InvalidMessage as error:
        raise UnreadableValue(name, error) from None
    except Exception as error:  # the class's own checks may raise anything
        if isinstance(error, ExitRefused) or from_engine(error, SPOILT):
            raise  # another release would not help
        told = InvalidMessage(Text("it raised %(error)s", type(error).__name__))
        raise UnreadableValue(name, told) from error


NOTHING = nullcontext()


def _runs_code(form: Any) -> bool:
    try:
        return _known_to_run_code(form)
    except TypeError:  # it has no hash
        return True


_known_to_run_code = lru_cache(1000)(runs_code)


def read_message(kind: type[M], body: object) -> M:
    """Return a stored event or command.

    Raises:
        UnreadableValue: the running code cannot read it.
    """
    return read_stored(kind, body, kind.__name__)


def read_event(event: InboxEvent) -> Event:
    """Return a stored event.

    Raises:
        UnknownEventType: the running code has no such type.
        UnreadableValue: the running code cannot read it.
    """
    return read_message(registry.event_class(event.type), event.body)


def read_manager(
    definition: type[ProcessManager], instance: ProcessInstance, step: str
) -> ProcessManager:
    """Return a process as its process manager.

    Args:
        definition: its class.
        instance: the process.
        step: its step.

    Raises:
        HandlerMissing: the running code has no such step.
        UnreadableValue: the running code cannot read the process's data.
    """
    data = read_stored(definition.Data, instance.data, f"{definition.name}.Data")
    try:
        return definition(instance.pk, step, data)
    except ValueError:
        name = definition.name
        raise HandlerMissing("%(name)s has no step %(step)s now", name, step) from None
