"""Which names are secret: what the classes of the running code say, and what is stored of those that are gone."""

from __future__ import annotations

import time

from orchestrator import registry
from orchestrator.definition.secrets import NONE, Secrets, names_of
from orchestrator.models import Definition, ProcessInstance

KEPT_SECONDS = 10.0
"""So long what is stored of unknown types is not asked for again."""


def of_name(name: str) -> Secrets:
    """What the running code says of a definition, in all its versions."""
    found = NONE
    for (known, _version), definition in registry.definitions.items():
        if known == name:
            found |= definition.secrets()
    return found


def of_definition(definition: Definition) -> Secrets:
    """What is secret in the processes of a stored definition."""
    return Secrets.from_json(definition.secrets) | of_name(definition.name)


def of_process(instance: ProcessInstance) -> Secrets:
    """What is secret in a process; its definition is best read with it."""
    return of_definition(instance.definition)


def of_message(type_name: str) -> frozenset[str]:
    """The secret fields of an event or command, whichever process it belongs to.

    Of one that the running code does not know it is every name that is secret anywhere.

    Args:
        type_name: its type, or the name of the event handler that it is for.
    """
    reaction = registry.reaction(type_name)
    kind = reaction.message.__name__ if reaction is not None else type_name
    handlers = (
        *registry.reactions.get(kind, ()),
        *registry.command_handlers.get(kind, ()),
    )
    found = names_of(*(handler.message for handler in handlers))
    known = bool(handlers)
    for definition in registry.definitions.values():
        messages = definition.secrets().messages
        known = known or kind in definition.events or kind in messages
        found |= messages.get(kind, frozenset())
    return found if known else found | of_all()


def of_all() -> frozenset[str]:
    """All names that are secret anywhere: for what is left of processes that are gone."""
    found = _stored()
    for definition in registry.definitions.values():
        found |= definition.secrets()
    return found.names


def any_known() -> bool:
    """Whether the running code has secret fields at all."""
    return any(one.secrets() for one in registry.definitions.values()) or any(
        names_of(handler.message)
        for handlers in (
            *registry.reactions.values(),
            *registry.command_handlers.values(),
        )
        for handler in handlers
    )


_kept: list[tuple[float, Secrets]] = []


def _stored() -> Secrets:
    """All that is stored, for what the running code does not know."""
    now = time.monotonic()
    if _kept and now - _kept[0][0] < KEPT_SECONDS:
        return _kept[0][1]
    rows = Definition.objects.exclude(secrets={}).order_by()
    found = NONE
    for body in rows.values_list("secrets", flat=True).distinct():
        found |= Secrets.from_json(body)
    _kept[:] = [(now, found)]
    return found


def forget() -> None:
    """Asks again for what is stored; for a database that was changed from outside."""
    _kept.clear()
