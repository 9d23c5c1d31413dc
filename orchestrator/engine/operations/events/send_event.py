"""Send event: a person sends an event, as a test or in the place of its sender."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator import registry
from orchestrator.definition import Event
from orchestrator.definition.codec import limited_digest
from orchestrator.engine.change import secret_values
from orchestrator.engine.events.delivery import find_by_key
from orchestrator.engine.operations.audit import ActionRequest
from orchestrator.engine.operations.base import Operation, refuse_errors
from orchestrator.engine.operations.event import NO_STEP_TAKES, check_takes
from orchestrator.engine.operations.process import lock_process
from orchestrator.engine.operations.registry import register
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.storage import inbox
from orchestrator.engine.storage.application_code.calling import ApplicationCall
from orchestrator.engine.storage.inbox import Address
from orchestrator.engine.storage.receipts import Receipt
from orchestrator.exceptions import OperationRefused, ProcessionError, StaleRevision
from orchestrator.models import InboxEvent, OperatorAction, ProcessInstance
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text

REPEATED = Text("it was sent before, and is not sent again")

SOURCE = "console"
"""The source of an event that a person sends."""


@dataclass(frozen=True)
class EventToSend:
    """An event, and its addressee.

    Args:
        type: the name of its class.
        body: its fields as JSON values.
        id: the same for each repetition of the event.
        process_id: the process to which it is addressed.
        definition: the definition to whose processes it is addressed, if it names no process; "" for all definitions
            that take its type.
        key: the correlation key; "" to read the key from the event.
        seen: the process that the page has shown as its addressee.
    """

    type: str
    body: Mapping[str, Any]
    id: str
    process_id: UUID | None = None
    definition: str = ""
    key: str = ""
    seen: UUID | None = None


class SendEvent(Operation):
    """Stores an event as if its sender had sent it; its source is the console."""

    name = "send"
    label = _("Send event")
    done = _("Sent.")
    may = _("Can send an event")
    model = InboxEvent
    by_definition = True
    text = _(
        "The event is stored and delivered like any other, with all that follows: nothing of it is a rehearsal. "
        "Its source is the console."
    )
    tone = "primary"

    def __call__(
        self, wanted: EventToSend, *, request: ActionRequest
    ) -> OperatorAction:
        """Store the event.

        Args:
            wanted: the event; an event with the same id is a repetition, which changes nothing.
            request: the actor, the reason, and the revision of the process that the page showed.

        Raises:
            OperationRefused: the event cannot be read, no process can take it, the page is stale, or the operator
                lacks the permission.
        """

        def note(error: Exception) -> None:
            secret_values.attach_message(error, wanted.type, wanted.body)

        def carry_out() -> dict[str, Any]:
            self._check_for_some(request)
            with refuse_errors(note):
                return self._send(wanted, request)

        about = wanted.process_id, wanted.definition, wanted.key
        given = wanted.type, dict(wanted.body), wanted.id, *about
        return self._carry_out_once(request, carry_out, given=given)

    def forbidden_to(
        self, user: Any, kind: str, definition: str = "", process: Any = None
    ) -> str:
        """Return why a user may not send an event; "" if they may.

        Args:
            user: the user.
            kind: the type of the event.
            definition: of the processes to which it is addressed; "" for all definitions that take the type, each of
                which needs the permission.
            process: the key of the process to which it is addressed, if it names one.
        """
        if self.definitions(user) is None:
            return ""
        if process is not None:
            rows = ProcessInstance.objects.filter(pk=process)
            names = list(rows.values_list("name", flat=True))
        else:
            names = [definition] if definition else _interested_names(kind)
        return self.forbidden(user, *names)

    def _send(self, wanted: EventToSend, request: ActionRequest) -> dict[str, Any]:
        """Stores the event; returns the columns of the audit row."""
        message = _read(wanted)
        process, now = _addressee(wanted, message)
        name = process.name if process is not None else wanted.definition
        self._check_permission(
            request, *([name] if name else _interested_names(wanted.type))
        )
        if wanted.seen not in (None, process.pk if process else None):
            raise StaleRevision(
                Text("It would find another process than the page showed")
            )
        if process is not None:
            check_takes(process, wanted.type, request.expected_revision)
        receipt = _store(wanted, message)
        event = InboxEvent.objects.get(pk=receipt.number)
        after = {"type": event.type, "verdict": str(event.verdict)}
        if process is not None:
            after["process"] = str(process.pk)
        said = REPEATED if receipt.repeated else ""
        about = {"event": event, "instance": process, "detail": said}
        return {**about, "at": now, "after": after}


def _interested_names(kind: str) -> list[str]:
    """The definitions whose processes may take an event of this type."""
    return sorted({one.name for one in registry.receivers(kind)})


def _read(wanted: EventToSend) -> Event:
    limited_digest(dict(wanted.body))  # the size limit of events from other senders
    with ApplicationCall(wanted.type, [ProcessionError]):
        return inbox.parse_event(wanted.type, dict(wanted.body))


def _store(wanted: EventToSend, message: Event) -> Receipt:
    target = "" if wanted.process_id is not None else wanted.definition
    address = Address(wanted.process_id, wanted.key, target)
    return inbox.receive(message, id=wanted.id, source=SOURCE, address=address)


def _addressee(
    wanted: EventToSend, message: Event
) -> tuple[ProcessInstance | None, datetime]:
    """The process to which the event is addressed, locked; None if it finds no process, or may find several."""
    pk = wanted.process_id
    if pk is None and wanted.definition:
        definition = _definition(wanted)
        key = wanted.key or inbox.correlation_of(definition, message)
        starts = registry.current_name(wanted.type) in definition.starting_events()
        pk = find_by_key(definition.name, key, starts=starts) if key else None
    if pk is None:
        return None, database_now()
    return lock_process(pk)


def _definition(wanted: EventToSend) -> DefinitionClass:
    """The definition to whose processes the event is addressed.

    Raises:
        OperationRefused: no row of the definition takes the event.
    """
    for definition in registry.receivers(wanted.type):
        if definition.name == wanted.definition:
            return definition
    raise OperationRefused(NO_STEP_TAKES.filled(wanted.definition, wanted.type))


send = register(SendEvent())
