"""Values of secret fields are kept out of what is told of errors: before it is stored, so that nothing has to mask it.

Code that has the data of failing work notes its secret values with the error; all texts of the error are then written
without them. A secret that a function has fetched itself, and put into its message, cannot be known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from orchestrator import secret_names
from orchestrator.definition.secrets import hidden, values
from orchestrator.engine.change.application_code import applications
from orchestrator.models import (
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    Work,
)
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text

NOTED = "_procession_secret_values"


def note(error: BaseException, names: Iterable[str], *bodies: Any) -> None:
    """Notes with an error what its texts are to be written without.

    Args:
        error: what was raised.
        names: of the secret fields.
        bodies: where they may stand: JSON values, or dataclasses.
    """
    wanted = frozenset(names)
    if not wanted:
        return
    found = set[str]().union(*(values(body, wanted) for body in bodies))
    if found:
        vars(error)[NOTED] = vars(error).get(NOTED, set[str]()) | found


def note_of_work(error: BaseException, work: Work) -> None:
    """Notes the secret values of a piece of work and of its process, where the running code has any.

    Args:
        error: what was raised.
        work: what it was raised by: an event, a command or a visit.
    """
    if not secret_names.has_secret_fields():
        return
    names, bodies = set[str](), list[Any]()
    process_id: UUID | None = None
    if isinstance(work, InboxEvent):
        process_id = work.process_id
        names |= secret_names.message_secrets(work.type)
        names |= secret_names.code_secrets(work.target).names
        bodies.append(work.body)
    elif isinstance(work, IssuedCommand):
        process_id = work.instance_id
        names |= secret_names.message_secrets(work.type)
        bodies.append(work.body)
    elif isinstance(work, StepRun):
        process_id = work.instance_id
        bodies += [work.element, work.result, work.saved]
    process = _process(process_id)
    if process is not None:
        names |= secret_names.code_secrets(process[0]).names
        bodies.append(process[1])
    note(error, names, *bodies)


def note_of_process(
    error: BaseException, process: ProcessInstance, *bodies: Any
) -> None:
    """Notes the secret values of a process, and of what else was in hand."""
    names = secret_names.code_secrets(process.name).names
    note(error, names, process.data, *bodies)


def note_of_message(error: BaseException, kind: str, body: Any) -> None:
    """Notes the secret values of an event that is no process's yet."""
    note(error, secret_names.message_secrets(kind), body)


def _process(pk: UUID | None) -> tuple[str, Any] | None:
    """The name of a process's definition, and its data."""
    rows = ProcessInstance.objects.filter(pk=pk) if pk else None
    return rows.values_list("name", "data").first() if rows is not None else None


def without(error: BaseException, text: str) -> str:
    """A text of an error without the secret values that were noted with it, or with what it came of."""
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
        return text.changed(lambda value: hidden(value, found))
    return hidden(text, found) if found else text


def line_without(text: str, name: str, body: Any) -> str:
    """A line that the application says, without the secret values that it may have been made of.

    Args:
        text: what it says.
        name: of the definition or the command whose values they are.
        body: those.
    """
    if not text:
        return text
    names = secret_names.code_secrets(name).names | secret_names.message_secrets(name)
    return hidden(text, values(body, names)) if names else text


def summary_of(definition: DefinitionClass, value: Any, body: Any) -> str:
    """What a definition says of a process in a line, without its secret values.

    Args:
        definition: the class.
        value: the process's data or input, as its type.
        body: the same as JSON values.

    Raises:
        Exception: whatever the application's code raises.
    """
    with applications():
        said = definition.summary(value)[:2_000]
    return line_without(said, definition.name, body)[:200]
