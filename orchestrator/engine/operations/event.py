"""What the actions on one event share."""

from __future__ import annotations

from typing import Any

from orchestrator.engine.change import incidents, offering
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.change.status import TROUBLED
from orchestrator.engine.operations.base import Press
from orchestrator.engine.storage.batch import send
from orchestrator.engine.storage.tables import events
from orchestrator.models import InboxEvent


def settle(
    press: Press, event: InboxEvent, values: dict[str, Any], resolution: str
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
