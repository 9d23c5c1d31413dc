"""Starting workflows at once, in the caller's own transaction if there is one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from django.db import IntegrityError, connection, transaction
from uuid6 import uuid7

from orchestrator.definition import Workflow
from orchestrator.definition.codec import digest, encode
from orchestrator.definition.workflow import advance
from orchestrator.definition.workflow.workflow import Nothing
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.application_code import call_application
from orchestrator.engine.change.workflows.following import Following
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.sql.tables import instances, outside_ids
from orchestrator.engine.storage import definitions, inbox
from orchestrator.engine.storage.definitions import Pin
from orchestrator.engine.storage.receipts import StartReceipt
from orchestrator.exceptions import ConflictingEvent, InvalidDefinition, InvalidMessage
from orchestrator.models import Cause, CauseKind, ProcessInstance, Verdict


def start_workflow(
    definition: type[Workflow],
    input: Any,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt:
    """Start a process with its input. The same source and id again gives the first receipt and changes nothing.

    Raises:
        InvalidMessage: the input is not of the declared form, or cannot be stored.
        InvalidDefinition: the graph made from the input contradicts itself.
        KeyTaken: another live process of the definition has the correlation key.
        ConflictingEvent: the id was used before for another input.
    """
    if input is None and definition.Input is Nothing:
        input = Nothing()
    if type(input) is not definition.Input:  # a subclass has more fields
        raise InvalidMessage(
            f"{definition.name} starts with {definition.Input.__qualname__}, not with {input!r:.200}"
        )
    named = f"{definition.name}\n{source}\n{id}"
    chosen = process_id or (uuid5(NAMESPACE_URL, named) if id else uuid7())
    key = correlation_key or inbox.correlation_of(definition, input)
    inbox.check_key(key)
    pin = pin_input(definition, input)
    try:
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            expected = bool(process_id or id)
            begin_process(pin, process_id=chosen, key=key, expected=expected)
    except IntegrityError:
        if (receipt := _repeat(definition, input, chosen, key)) is None:
            raise
        return receipt
    return StartReceipt(0, chosen, Verdict.STARTED, repeated=False)


def pin_input(definition: type[Workflow], input: Any) -> Pin:
    """Return the pin of a new process with this input, with the application's errors marked as such.

    Raises:
        InvalidMessage: the input is not of the declared form, or cannot be stored.
        InvalidDefinition: the graph made from the input contradicts itself.
        Exception: any error of the application's function that makes the graph.
    """
    ours = (InvalidDefinition, InvalidMessage)
    make = definitions.make_pin
    return call_application(definition.name, make, definition, input, ours=ours)


def begin_process(
    pin: Pin,
    *,
    process_id: UUID | None = None,
    key: str = "",
    parent: ProcessInstance | None = None,
    expected: bool = False,
) -> ProcessInstance:
    """Store a new process with its first steps, in the running transaction or in one of its own.

    Args:
        pin: its workflow, input and plan.
        process_id: its id; made anew when None.
        key: its correlation key; read from the input when empty.
        parent: its parent.
        expected: whether senders may have known its id before, and sent events to it.
    """
    definition, input = pin.definition, pin.input
    summary = secret_values.summarize(definition, input, pin.data)
    row, now = pin.row(), database_now()
    instance = ProcessInstance(
        id=process_id or uuid7(),
        definition_id=row,
        name=definition.name,
        correlation_key=key or definition.correlation_key(input),
        data=pin.data,
        summary=summary,
        parent=parent,
        started_at=now,
    )
    cause = Cause.of(CauseKind.START)
    change = WorkflowChange(instance, cause, now, pin.plan, definition.queue)
    change.alone = not connection.in_atomic_block
    change.writes += outside_ids.changes(definition, instance.pk, {}, pin.data)
    Following(change).carry_out(advance.initial_advance(pin.plan))

    def release_later(early: list[Any]) -> None:
        """Let later events, which workers have claimed before there was a process, wait for the early ones."""
        send(inbox.release_claimed(instance, now) if early else ())

    change.mark(
        *inbox.early_events(instance, now, id_known=expected, receive=release_later)
    )
    if expected and instance.correlation_key:
        # Until now, events by its id and events by its key were not one line.
        change.mark(*inbox.release_claimed(instance, now))
    change.write()
    return instance


def _repeat(
    definition: type[Workflow], input: Any, process_id: UUID, key: str
) -> StartReceipt | None:
    """The receipt of the first such start; None if this start is no repeat.

    Raises:
        ConflictingEvent: the process was started before with another input.
        KeyTaken: another live process has the key.
    """
    known = ProcessInstance.objects.filter(pk=process_id).first()
    if known is not None:
        if known.name != definition.name or digest(known.data) != digest(encode(input)):
            raise ConflictingEvent(
                f"the process {process_id} was started before with another input; use a new id for a new process"
            )
        return StartReceipt(0, known.pk, Verdict.STARTED, repeated=True)
    instances.check_free(definition.name, key)
    return None
