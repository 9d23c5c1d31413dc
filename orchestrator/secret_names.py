"""The secret fields that the running code declares, and the stored ones of definitions without code."""

from __future__ import annotations

import time
from typing import Any

from orchestrator import registry
from orchestrator.definition.declarations.message_forms import current_form
from orchestrator.definition.secrets import NONE, Secrets, secret_fields
from orchestrator.exceptions import UnknownEventType
from orchestrator.models import Definition, ProcessInstance

KEPT_SECONDS = 10.0
"""How long the stored secret fields are kept before the next query."""


def code_secrets(name: str) -> Secrets:
    """Return the secret fields that the running code declares for a definition, in all its versions."""
    found = NONE
    for (known, _version), definition in registry.definitions.items():
        if known == name:
            found |= definition.secrets()
    return found


def definition_secrets(definition: Definition) -> Secrets:
    """Return the secret fields of a stored definition's processes."""
    return Secrets.from_json(definition.secrets) | code_secrets(definition.name)


def process_secrets(instance: ProcessInstance) -> Secrets:
    """Return the secret fields of a process; without its definition at hand that is one query more."""
    return definition_secrets(instance.definition)


def message_secrets(type_name: str) -> frozenset[str]:
    """Return the secret fields of an event or command, whichever process it belongs to.

    For a type that the running code does not know, return all secret names.

    Args:
        type_name: its type, or the name of the event handler that it is for.
    """
    reaction = registry.find_reaction(type_name)
    kind = reaction.message.__name__ if reaction is not None else type_name
    kind = registry.current_name(kind)
    handlers = (
        *registry.reactions.get(kind, ()),
        *registry.command_handlers.get(kind, ()),
    )
    found = secret_fields(*(handler.message for handler in handlers))
    known = bool(handlers)
    for definition in registry.definitions.values():
        messages = definition.secrets().messages
        known = known or kind in definition.events or kind in messages
        found |= messages.get(kind, frozenset())
    return found if known else found | all_secrets()


def current_message(kind: str, body: Any, *, of_command: bool) -> Any:
    """Return the body of a stored message in today's form; None where the running code cannot read it.

    Args:
        kind: its type, or the name of the event handler that it is for.
        body: its body.
        of_command: whether the row is a command.
    """
    if of_command:
        handler = registry.find_reaction(kind) or registry.command_handler(kind)
        form: Any = handler.message if handler is not None else None
    else:
        try:
            form = registry.event_class(kind)
        except UnknownEventType:
            form = None
    return None if form is None else current_form(form, body)


def shown_message(
    kind: str, body: Any, *, of_command: bool
) -> tuple[Any, frozenset[str]]:
    """Return the body of a stored message in today's form, and its secret fields.

    If the running code cannot read it: the body as it is stored, with all secret names.
    """
    read = current_message(kind, body, of_command=of_command)
    if read is None:
        return body, message_secrets(kind) | all_secrets()
    return read, message_secrets(kind)


def all_secrets() -> frozenset[str]:
    """Return all secret names, for the remains of deleted processes."""
    found = _stored_secrets()
    for definition in registry.definitions.values():
        found |= definition.secrets()
    return found.names


def has_secret_fields() -> bool:
    """Return whether the running code has any secret field."""
    return any(one.secrets() for one in registry.definitions.values()) or any(
        secret_fields(handler.message)
        for handlers in (
            *registry.reactions.values(),
            *registry.command_handlers.values(),
        )
        for handler in handlers
    )


_kept: list[tuple[float, Secrets]] = []


def _stored_secrets() -> Secrets:
    """Return all stored secret fields, for types that the running code does not know."""
    now = time.monotonic()
    if _kept and now - _kept[0][0] < KEPT_SECONDS:
        return _kept[0][1]
    rows = Definition.objects.exclude(secrets={}).order_by()
    found = NONE
    for body in rows.values_list("secrets", flat=True).distinct():
        found |= Secrets.from_json(body)
    _kept[:] = [(now, found)]
    return found


def clear_stored_secrets() -> None:
    """Forget the stored secret fields, after a change of the database from outside."""
    _kept.clear()
