"""Adding events to a process: as if they had arrived with the commit of its repair."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.definition import Event
from orchestrator.definition.codec import digest, encode
from orchestrator.engine import inbox
from orchestrator.engine.change.change import ProcessChange
from orchestrator.engine.operations.base import Press

SOURCE = "repair"


def add_events(change: ProcessChange, added: Sequence[Event], press: Press) -> None:
    """Puts events into the inbox, for this process and in their order, with a change of it."""
    address = inbox.Address(process_id=change.instance.pk)
    for number, event in enumerate(added):
        body, id = encode(event), f"{press.request.key}:{number}"
        rows = inbox.inbox_rows(
            event, body, id, SOURCE, address, digest(body), change.now
        )
        change.writes += inbox.stored(rows)
        change.rings |= {row.queue for row in rows}
