"""Deliver: gives an event that no process took to a process that a person chooses."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from orchestrator.engine.operations.base import Given, Press
from orchestrator.engine.operations.event import (
    EventOperation,
    check_takes,
    offer_again,
)
from orchestrator.engine.operations.registry import register
from orchestrator.exceptions import OperationRefused
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.text import Text


class DeliverEvent(EventOperation):
    """Addresses an event to a process, and offers it to the process with fresh patience."""

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
            raise OperationRefused("there is no process %(process)s", given[0])
        check_takes(process, event.type, press.request.expected_revision)
        address = {"process_id": process.pk, "starts": False}
        said = Text("delivered to a process by an operator")
        offer_again(press, event, said, process, **address, error="")


def _process_id(text: Any) -> UUID:
    try:
        return UUID(str(text))
    except ValueError:
        raise OperationRefused("there is no process %(process)s", text) from None


deliver = register(DeliverEvent())
