"""Deliver to: an event that nothing took is given to a process that a person chooses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import EventOperation, Given, Press
from orchestrator.engine.operations.circumstances import ENDED
from orchestrator.engine.operations.event import settle
from orchestrator.engine.operations.registry import register
from orchestrator.engine.operations.stale import what_changed
from orchestrator.engine.storage import definitions
from orchestrator.exceptions import OperationRefused, StaleRevision, UnknownDefinition
from orchestrator.models import InboxEvent, ProcessInstance, Verdict
from orchestrator.queue import ring_after_commit


class DeliverEvent(EventOperation):
    """Addresses an event to a process, and offers it to that one with fresh patience."""

    name = "deliver"
    label = _("Deliver")
    done = _("Offered to that process.")
    may = _("Can deliver an event to a chosen process")
    text = _(
        "Addresses the event to this process and offers it to it, as if it had just arrived. "
        "Where the process stands in another step by then, the event is kept for it."
    )
    tone = "primary"
    given = (Given("process", "text"),)

    def concerned(self, *given: Any) -> list[UUID]:
        return [_process_id(given[0])]

    def effect(self, press: Press, event: InboxEvent, *given: Any) -> None:
        process = ProcessInstance.objects.filter(pk=_process_id(given[0])).first()
        if process is None:
            raise OperationRefused(f"there is no process {given[0]}")
        _check(process, event, press.request.expected_revision)
        values = {
            "process_id": process.pk,
            "starts": False,
            "verdict": Verdict.RECEIVED,
            "wake_at": press.now,
            "attempt": 0,
            "owner": "",
            "error": "",
            "handled_at": None,
            "patience_until": None,
            "remaining": None,
        }
        settle(press, event, values, "delivered to a process by an operator")
        ring_after_commit(event.queue)


def _process_id(text: Any) -> UUID:
    try:
        return UUID(str(text))
    except ValueError:
        raise OperationRefused(f"there is no process {text}") from None


def _check(process: ProcessInstance, event: InboxEvent, seen: int | None) -> None:
    """Refuses what the locked process can never take.

    Raises:
        StaleRevision: the page showed another revision of it.
        OperationRefused: it has ended, or knows no such event.
    """
    if seen not in (None, process.revision):
        raise StaleRevision(what_changed(process, seen))
    if process.finished_at is not None:
        raise OperationRefused(ENDED)
    try:
        known = definitions.definition_of(process).events
    except UnknownDefinition as error:
        raise OperationRefused(str(error)) from None
    if event.type not in known:
        raise OperationRefused(f"{process.name} takes no {event.type} in any step")


deliver = register(DeliverEvent())
