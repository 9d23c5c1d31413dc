"""The fate of an event in other definitions: an event that several definitions know has one row for each of them.

Each definition decides about it by itself. Incidents are opened if none has taken the event, not for each definition
that has not.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal

from django.db.models import QuerySet

from orchestrator import registry
from orchestrator.definition import ProcessManager
from orchestrator.engine.steps.waiting_steps import EventWaits
from orchestrator.engine.storage import definitions, stored_values
from orchestrator.models import InboxEvent, ProcessInstance, Verdict

FIRST_LOOK = timedelta(seconds=1)
LONGEST = timedelta(days=1)
"""The longest time between two looks."""

Fate = Literal["taken", "undecided", "kept", "told", "open", "none"]
"""The most that another definition has done with an event.

It has taken it, has not decided yet, keeps it in a live process, has told people of it, or may still take it. Where it
keeps the event or may still take it, it tells people itself.
"""

FATES: dict[str, Fate] = {
    Verdict.STARTED: "taken",
    Verdict.MOVED: "taken",
    Verdict.RECEIVED: "undecided",
    Verdict.PARKED: "kept",
    Verdict.UNEXPECTED: "told",
    Verdict.REJECTED: "told",
    Verdict.DISCARDED: "told",
    Verdict.UNROUTED: "open",
    Verdict.FAILED: "open",
}


def fate_of(event: InboxEvent, process: ProcessInstance) -> Fate:
    """Return the fate of an event in other definitions; "none" if it fits a wait of its process, or may do so."""
    others = list(same_event(event).select_related("process"))
    if not others or not _fits_no_wait(event, process):
        return "none"
    fates = {_fate_in(other, event) for other in others}
    found = (fate for fate in FATES.values() if fate in fates)
    return next(found, "none")


def _fate_in(other: InboxEvent, event: InboxEvent) -> Fate:
    """Return what another definition has done with an event, or is about to do where its process has ended.

    Of two that would each leave it to the other, the later one waits for the earlier one.
    """
    process = other.process
    if other.verdict == Verdict.IGNORED and process is not None:
        return "taken"  # its definition says so
    if other.verdict != Verdict.PARKED or process is None or not process.finished_at:
        return FATES.get(other.verdict, "none")
    if is_ignored(other.type, process):
        return "taken"
    if not _fits_no_wait(other, process):
        return "told"
    return "undecided" if other.pk < event.pk else "none"


def same_event(event: InboxEvent) -> QuerySet[InboxEvent]:
    """Return the rows of the same event for other definitions."""
    same = InboxEvent.objects.filter(source=event.source, event_id=event.event_id)
    return same.exclude(pk=event.pk)


def _fits_no_wait(event: InboxEvent, process: ProcessInstance) -> bool:
    """Whether an event fits no wait of a workflow's process. If the running code cannot tell, it may fit."""
    try:
        definition = definitions.definition_of(process)
        if issubclass(definition, ProcessManager):
            return False
        message = stored_values.read_event(event)
        waits = EventWaits(process, definitions.plan_of(process))
        return not waits.fits_any(message)
    except BaseException:  # noqa: BLE001  # predicates may raise anything
        return False


def is_ignored(kind: str, process: ProcessInstance) -> bool:
    """Whether the process's workflow has a row `ignore` for events of a type. Not if the running code cannot tell."""
    try:
        ignored = definitions.plan_of(process).ignored
    except BaseException:  # noqa: BLE001  # the application's function may fail to make the graph
        return False
    return registry.current_name(kind) in {one.__name__ for one in ignored}


def next_look(event: InboxEvent, now: datetime) -> timedelta:
    """Return the time until the next look at an event that is kept: twice as long as since the look before."""
    if event.verdict == Verdict.RECEIVED or event.handled_at is None:
        return FIRST_LOOK
    return min(max(2 * (now - event.handled_at), FIRST_LOOK), LONGEST)
