"""Settling events, and the checks of their addressees."""

from __future__ import annotations

from typing import Any

from orchestrator.engine.change import incidents, offering
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.operations.base import Press
from orchestrator.engine.operations.circumstances import ENDED
from orchestrator.engine.operations.stale import what_changed
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.tables import events
from orchestrator.exceptions import OperationRefused, StaleRevision, UnknownDefinition
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.text import Text

UNTAKEN = Text("%(name)s takes no %(type)s in any step")


def settle(
    press: Press, event: InboxEvent, values: dict[str, Any], resolution: Text
) -> None:
    """Gives a locked event another verdict; a process that was in trouble over it shows how it stands now."""
    marks = [
        events.update(values, {"id": event.pk, "verdict": event.verdict}),
        incidents.resolved(resolution, press.now, event_id=event.pk),
        *offering.parked_no_more(event, press.instance, press.now),
    ]
    if press.instance is not None and press.instance.status in TROUBLED:
        change = ProcessChange(press.instance, press.cause, press.now)
        change.mark(*marks)
        change.write()
    else:
        send(marks)


def check_takes(process: ProcessInstance, kind: str, seen: int | None) -> None:
    """Refuses an event that a locked process can never take.

    Raises:
        StaleRevision: the page showed another revision of it.
        OperationRefused: it has ended, or knows no event of that type.
    """
    if seen not in (None, process.revision):
        raise StaleRevision(what_changed(process, seen))
    if process.finished_at is not None:
        raise OperationRefused(ENDED)
    try:
        known = definitions.definition_of(process).events
    except UnknownDefinition as error:
        raise OperationRefused(error.told) from None
    if kind not in known:
        raise OperationRefused(UNTAKEN.filled(process.name, kind))
