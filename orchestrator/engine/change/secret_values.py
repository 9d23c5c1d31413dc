"""Keeping the values of secret fields out of the texts of errors, before these are stored.

Code that has the data of failing work notes its secret values with the error; the texts of the error are then written
without them. The engine cannot know a secret that a function itself has fetched and put into its message.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from orchestrator import secret_names
from orchestrator.definition.declarations.process_definition import ProcessDefinition
from orchestrator.definition.secrets import mask_values, secret_texts
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.models import (
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    Work,
)
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text, storable_text

NOTED = "_procession_secret_values"


def attach(error: BaseException, names: Iterable[str], *bodies: Any) -> None:
    """Note secret values with an error, so that its texts are written without them.

    Args:
        error: the exception.
        names: the names of the secret fields.
        bodies: the JSON values or dataclasses that may have them.
    """
    wanted = frozenset(names)
    if not wanted:
        return
    found = set[str]().union(*(secret_texts(body, wanted) for body in bodies))
    if found:
        vars(error)[NOTED] = vars(error).get(NOTED, set[str]()) | found


def attach_work(error: BaseException, work: Work) -> None:
    """Note the secret values of a piece of work and of its process, if the running code has secret fields.

    Args:
        error: the exception.
        work: the event, command or visit that raised it.
    """
    if not secret_names.has_secret_fields():
        return
    process_id, names, bodies = _parts(work)
    process = _process(process_id)
    if process is not None:
        names |= secret_names.code_secrets(process[0]).names
        bodies.append(process[1])
    attach(error, names, *bodies)


def _parts(work: Work) -> tuple[UUID | None, set[str], list[Any]]:
    """A piece of work's process id, the names of its own secret fields, and its bodies."""
    bodies = bodies_of(work)
    if isinstance(work, InboxEvent):
        names = _names_of(work.type, bodies)
        names |= secret_names.code_secrets(work.target).names
        return work.process_id, {*names}, bodies
    if isinstance(work, IssuedCommand):
        return work.instance_id, {*_names_of(work.type, bodies)}, bodies
    if isinstance(work, StepRun):
        return work.instance_id, set(), bodies
    return None, set(), []


def _names_of(kind: str, bodies: list[Any]) -> frozenset[str]:
    """The secret fields of a message: all secret names if the running code cannot read it."""
    found = secret_names.message_secrets(kind)
    return found if len(bodies) > 1 else found | secret_names.all_secrets()


def bodies_of(work: Work) -> list[Any]:
    """Return the JSON values of a piece of work; of a message as it is stored, and in today's form."""
    if isinstance(work, InboxEvent | IssuedCommand):
        of_command = isinstance(work, IssuedCommand)
        read = _read_message(work.type, work.body, of_command=of_command)
        return [work.body, read] if read is not None else [work.body]
    if isinstance(work, StepRun):
        return [work.element, work.result, work.saved]
    return []


def _read_message(kind: str, body: Any, *, of_command: bool) -> Any:
    """The body of a message in today's form; None where the running code cannot read it."""
    read = partial(secret_names.current_message, of_command=of_command)
    try:
        return call_application(kind, read, kind, body)
    except Exception:  # noqa: BLE001  # its class may raise anything
        return None


def attach_process(
    error: BaseException, process: ProcessInstance, *bodies: Any
) -> None:
    """Note the secret values of a process, and of further bodies."""
    names = secret_names.code_secrets(process.name).names
    attach(error, names, process.data, *bodies)


def attach_message(error: BaseException, kind: str, body: Any) -> None:
    """Note the secret values of an event without a process."""
    attach(error, secret_names.message_secrets(kind), body)


def _process(pk: UUID | None) -> tuple[str, Any] | None:
    """The name of a process's definition, and its data."""
    rows = ProcessInstance.objects.filter(pk=pk) if pk else None
    return rows.values_list("name", "data").first() if rows is not None else None


def mask_error_text(error: BaseException, text: str) -> str:
    """Return a text of an error without the secret values that were noted with it, or with its causes."""
    found = set[str]()
    chain, seen = [error], set[int]()
    while chain:
        one = chain.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        found |= vars(one).get(NOTED, set())
        chain += [other for other in (one.__cause__, one.__context__) if other]
    if found and isinstance(text, Text):
        return text.changed(lambda value: mask_values(value, found))
    return mask_values(text, found) if found else text


def mask_line(text: str, name: str, body: Any) -> str:
    """Return a line of the application without the secret values that it may contain.

    Args:
        text: the line.
        name: the name of the definition or the command with the secret fields.
        body: its values.
    """
    if not text:
        return text
    names = secret_names.code_secrets(name).names | secret_names.message_secrets(name)
    if not names:
        return text
    read = _read_message(name, body, of_command=True)
    bodies = (body, read) if read is not None else (body,)
    return mask_values(
        text, set[str]().union(*(secret_texts(one, names) for one in bodies))
    )


def summarize(definition: DefinitionClass, value: Any, body: Any) -> str:
    """Return a definition's summary of a process in one line, without secret values.

    Args:
        definition: the class.
        value: the process's data or input, as its type.
        body: the same as JSON values.

    Raises:
        Exception: any error of the application's code.
    """
    if definition.summary is ProcessDefinition.summary:
        return ""
    said = call_application(definition.name, _summary, definition, value)
    return mask_line(said, definition.name, body)[:200]


def _summary(definition: DefinitionClass, value: Any) -> str:
    return storable_text(definition.summary(value)[:2_000])
