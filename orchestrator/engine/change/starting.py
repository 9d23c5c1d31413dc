"""Starting workflows: at once, in the caller's own transaction if there is one."""

from __future__ import annotations

from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from django.db import IntegrityError, transaction
from uuid6 import uuid7

from orchestrator.definition import Workflow
from orchestrator.definition.codec import digest, encode, seal
from orchestrator.definition.workflow import advance
from orchestrator.engine import inbox
from orchestrator.engine.change.following import Following
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.inbox import StartReceipt
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.batch import database_now
from orchestrator.exceptions import ConflictingEvent, InvalidMessage, KeyTaken
from orchestrator.models import Cause, CauseKind, ProcessInstance, Verdict


def start(
    definition: type[Workflow],
    input: Any,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt:
    """Starts a process with its input. The same source and id again gives the first receipt and changes nothing.

    Raises:
        InvalidMessage: the input is not of the declared form, or cannot be stored.
        InvalidDefinition: the graph made from the input contradicts itself.
        KeyTaken: another live process of the definition has the correlation key.
        ConflictingEvent: the id was used before for another input.
    """
    if not isinstance(input, definition.Input):
        raise InvalidMessage(
            f"{definition.name} starts with {definition.Input.__qualname__}, not with {input!r:.200}"
        )
    named = f"{definition.name}\n{source}\n{id}"
    chosen = process_id or (uuid5(NAMESPACE_URL, named) if id else uuid7())
    key = correlation_key or definition.correlation_key(input)
    inbox.check_name("correlation key", key, 200, empty=True)
    try:
        with transaction.atomic():
            begin(definition, input, process_id=chosen, key=key)
    except IntegrityError:
        if (receipt := _repeat(definition, input, chosen, key)) is None:
            raise
        return receipt
    return StartReceipt(0, chosen, Verdict.STARTED, repeated=False)


def begin(
    definition: type[Workflow],
    input: Any,
    *,
    process_id: UUID | None = None,
    key: str = "",
    parent: ProcessInstance | None = None,
) -> ProcessInstance:
    """A new process with its first steps, in the running transaction."""
    data = encode(input)
    seal(data)
    row, plan = definitions.pin(definition, input)
    now = database_now()
    instance = ProcessInstance(
        id=process_id or uuid7(),
        definition_id=row,
        name=definition.name,
        correlation_key=key or definition.correlation_key(input),
        data=data,
        summary=definition.summary(input)[:200],
        parent=parent,
        started_at=now,
    )
    cause = Cause.of(CauseKind.START)
    change = WorkflowChange(instance, cause, now, plan, definition.queue)
    Following(change).carry_out(advance.begin(plan))
    change.mark(*inbox.early_events(instance, now))
    change.write()
    return instance


def _repeat(
    definition: type[Workflow], input: Any, process_id: UUID, key: str
) -> StartReceipt | None:
    """The receipt of the same start before; None when something else stood in the way."""
    known = ProcessInstance.objects.filter(pk=process_id).first()
    if known is not None:
        if known.name != definition.name or digest(known.data) != digest(encode(input)):
            raise ConflictingEvent(
                f"the process {process_id} was started before with another input; use a new id for a new process"
            )
        return StartReceipt(0, known.pk, Verdict.STARTED, repeated=True)
    same = ProcessInstance.objects.live().filter(name=definition.name)
    if not key or not same.filter(correlation_key=key).exists():
        return None
    raise KeyTaken(f"there is already a live {definition.name} with the key {key!r}")
