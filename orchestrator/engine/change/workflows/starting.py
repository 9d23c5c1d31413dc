"""Starting workflows at once, in the caller's own transaction if there is one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

from django.db import IntegrityError, connection, transaction
from uuid6 import uuid7

from orchestrator.definition import Workflow
from orchestrator.definition.codec import digest
from orchestrator.definition.workflow import advance
from orchestrator.definition.workflow.workflow import Nothing
from orchestrator.engine.change import secret_values
from orchestrator.engine.change.change import ProcessChange, announce_written
from orchestrator.engine.change.workflows.following import Following
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.sql.group_commit import merge_alike
from orchestrator.engine.sql.row_statements import Insert
from orchestrator.engine.sql.tables import instances, outside_ids
from orchestrator.engine.storage import definitions, inbox
from orchestrator.engine.storage.definitions import Pin
from orchestrator.engine.storage.receipts import StartReceipt
from orchestrator.exceptions import ConflictingEvent, InvalidMessage
from orchestrator.models import Cause, CauseKind, ProcessInstance, Verdict
from orchestrator.text import Text


@dataclass(frozen=True)
class NewWorkflow:
    """A process that is to start.

    Args:
        pin: its workflow, input and plan.
        process_id: its id.
        key: its correlation key; "" for none.
        expected: whether senders may have known its id before, and sent events to it.
        summary: its summary; None where it is made only when the process is stored.
    """

    pin: Pin
    process_id: UUID
    key: str
    expected: bool
    summary: str | None = None

    def with_summary(self) -> NewWorkflow:
        """Return the same with its summary, which later changes of the input object leave as it is."""
        return replace(self, summary=_summary_of(self.pin))

    @property
    def receipt(self) -> StartReceipt:
        """The receipt of its first start."""
        return StartReceipt(0, self.process_id, Verdict.STARTED, repeated=False)


def new_workflow(
    definition: type[Workflow],
    input: Any,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> NewWorkflow:
    """Check the start of a process, which is not stored yet.

    Raises:
        InvalidMessage: the input is not of the declared form, or cannot be stored; or id or source cannot be names.
        InvalidDefinition: the graph made from the input contradicts itself.
    """
    if id:
        inbox.check_name("id", id, 200)
        inbox.check_name("source", source, 100)
    if input is None and definition.Input is Nothing:
        input = Nothing()
    if type(input) is not definition.Input:  # a subclass has more fields
        names = definition.name, definition.Input.__qualname__, _class_of(input)
        raise InvalidMessage(
            Text("%(name)s starts with %(type)s, not with %(other)s", *names)
        )
    named = f"{definition.name}\n{source}\n{id}"
    chosen = process_id or (uuid5(NAMESPACE_URL, named) if id else uuid7())
    key = correlation_key or inbox.correlation_of(definition, input)
    inbox.check_key(key)
    pin = definitions.make_pin(definition, input)
    return NewWorkflow(pin, chosen, key, expected=bool(process_id or id))


def start_workflow(new: NewWorkflow) -> StartReceipt:
    """Start a process. The same source and id again gives the first receipt and changes nothing.

    Raises:
        KeyTaken: another live process of the definition has the correlation key.
        ConflictingEvent: the id was used before for another input.
    """
    try:
        with transaction.atomic() if connection.in_atomic_block else nullcontext():
            _begin(new, None)
    except IntegrityError:
        known = ProcessInstance.objects.filter(pk=new.process_id).first()
        if known is None:
            instances.check_free(new.pin.definition.name, new.key)
            raise
        return _repeat(new, known)
    return new.receipt


class StartedTogether:
    """Processes that start by few statements: what that reads is read now, and `write` stores them.

    Args:
        starts: the processes, with their summaries.

    Raises:
        ConflictingEvent: an id was used before for another input.
    """

    def __init__(self, starts: Sequence[NewWorkflow]) -> None:
        ids = [one.process_id for one in starts if one.expected]
        known = ProcessInstance.objects.in_bulk(ids) if ids else {}
        now = database_now()
        rows = {pin.definition: pin.row() for pin in _pins_of_classes(starts)}
        self.receipts: list[StartReceipt] = []
        self._changes: list[ProcessChange] = []
        for one in starts:
            if one.process_id in known:
                self.receipts.append(_repeat(one, known[one.process_id]))
                continue
            row = rows.get(one.pin.definition) or one.pin.row()
            change = _first_change(one, row, None, now)
            change.alone = True  # it is not stored yet
            self._changes.append(change)
            self.receipts.append(one.receipt)

    def write(self) -> None:
        """Store the processes in the running transaction.

        Raises:
            IntegrityError: a key is taken, or an id of these starts is given twice; roll back.
        """
        writes = [write for change in self._changes for write in change.prepare()]
        new = [write for write in writes if isinstance(write, Insert)]
        others = (one for one in writes if not isinstance(one, Insert))
        send([*merge_alike(new), *others])
        announce_written(self._changes)


def _class_of(input: object) -> str:
    """The name of the class of a wrong input, without its fields: one may be a secret."""
    return "None" if input is None else type(input).__qualname__


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
    key = key or pin.definition.correlation_key(pin.input)
    return _begin(NewWorkflow(pin, process_id or uuid7(), key, expected), parent)


def _begin(new: NewWorkflow, parent: ProcessInstance | None) -> ProcessInstance:
    change = _first_change(new, new.pin.row(), parent, database_now())
    change.alone = not connection.in_atomic_block
    change.write()
    return change.instance


def _summary_of(pin: Pin) -> str:
    return secret_values.summarize(pin.definition, pin.input, pin.data)


def _pins_of_classes(starts: Sequence[NewWorkflow]) -> Iterable[Pin]:
    """One pin of each workflow whose graph its class has; all its processes share the row."""
    pins = (one.pin for one in starts if one.pin.columns is None)
    return {pin.definition: pin for pin in pins}.values()


def _first_change(
    new: NewWorkflow, row: int, parent: ProcessInstance | None, now: datetime
) -> WorkflowChange:
    """The change that makes a process, with its first steps; `row` is the key of its definition's row."""
    pin = new.pin
    definition = pin.definition
    instance = ProcessInstance(
        id=new.process_id,
        definition_id=row,
        name=definition.name,
        correlation_key=new.key,
        data=pin.data,
        summary=_summary_of(pin) if new.summary is None else new.summary,
        parent=parent,
        started_at=now,
    )
    cause = Cause.of(CauseKind.START)
    change = WorkflowChange(instance, cause, now, pin.plan, definition.queue)
    change.writes += outside_ids.changes(definition, instance, {}, pin.data)
    Following(change).carry_out(advance.initial_advance(pin.plan))
    _mark_early_events(change, new.expected)
    return change


def _mark_early_events(change: WorkflowChange, expected: bool) -> None:
    """Let the process take the events that came before it."""
    instance, now = change.instance, change.now

    def release_later(early: list[Any]) -> None:
        """Let later events, which workers have claimed before there was a process, wait for the early ones."""
        send(inbox.release_claimed(instance, now) if early else ())

    change.mark(
        *inbox.early_events(instance, now, id_known=expected, receive=release_later)
    )
    if expected and instance.correlation_key:
        # Until now, events by its id and events by its key were not one line.
        change.mark(*inbox.release_claimed(instance, now))


def _repeat(new: NewWorkflow, known: ProcessInstance) -> StartReceipt:
    """The receipt of the first such start.

    Raises:
        ConflictingEvent: the process was started before with another input.
    """
    same = known.name == new.pin.definition.name
    if not same or digest(known.data) != digest(new.pin.data):
        raise ConflictingEvent(
            "the process %(process)s was started before with another input; use a new id for a new process",
            known.pk,
        )
    return StartReceipt(0, known.pk, Verdict.STARTED, repeated=True)
