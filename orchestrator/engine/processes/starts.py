"""The functions with which applications start processes, also inside the caller's transaction."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, overload
from uuid import UUID

from asgiref.sync import sync_to_async
from django.db import transaction
from uuid6 import uuid7

from orchestrator import registry
from orchestrator.definition import Event, ProcessManager, Workflow
from orchestrator.definition.codec import canonical_json
from orchestrator.engine.change.workflows import starting
from orchestrator.engine.change.workflows.starting import NewWorkflow
from orchestrator.engine.storage import inbox, receipts
from orchestrator.engine.storage.inbox import Address
from orchestrator.engine.storage.receipts import Arrival, Receipt, StartReceipt
from orchestrator.exceptions import (
    ConflictingEvent,
    InvalidMessage,
    StartRefused,
)
from orchestrator.registry import DefinitionClass
from orchestrator.text import Text

log = logging.getLogger(__name__)

NewProcess = NewWorkflow | Arrival
"""A checked start: a workflow, or the event that starts a process manager."""

MANY = 100
"""The most processes of one commit."""
MUCH = 1024 * 1024
"""The most characters of their inputs and events together; one alone may have more."""


@overload
def start_process(
    definition: type[ProcessManager],
    event: Event,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt: ...


# Python's types cannot say that the second argument is an `Input` of the first one's class: a checker would settle on
# the common base of both. The type of the input is checked at run time.
@overload
def start_process(
    definition: type[Workflow] | str,
    event: object = None,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt: ...


def start_process(
    definition: DefinitionClass | str,
    event: Any = None,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt:
    """Start a process and make its process id.

    Args:
        definition: the process manager or workflow, or its name.
        event: one of a process manager's starting events, or a workflow's input; None for a workflow without `Input`.
        id: the event's or start's id, by which a repeat is recognised; the process id when empty.
        source: the sender.
        process_id: the process id, if the caller has made one.
        correlation_key: the business key; read from the event when empty.

    Returns:
        The receipt, with the process id. A process manager starts when a worker takes the event, a workflow at once.
        Two starts of a process manager with one key are both accepted while neither has started; the second then
        becomes an incident.

    Raises:
        KeyTaken: a live process of the definition has the correlation key, and this is no repeat of its start.
        UnknownDefinition, InvalidMessage, ConflictingEvent, InvalidDefinition: nothing is stored.
    """
    start = ProcessStart(
        definition,
        event,
        id=id,
        source=source,
        process_id=process_id,
        correlation_key=correlation_key,
    )
    return _started_singly(_checked(start))


@dataclass(frozen=True)
class ProcessStart:
    """The start of a process: the parameters of `start_process`."""

    definition: DefinitionClass | str
    event: Any = None
    _: KW_ONLY
    id: str = ""
    source: str = "application"
    process_id: UUID | None = None
    correlation_key: str = ""


def start_processes(starts: Iterable[ProcessStart]) -> list[StartReceipt]:
    """Start many processes in their order, up to a hundred of them by one commit.

    Each start has the same outcome as with `start_process`. Those of one commit are stored together or not at all;
    inside the caller's transaction, all of them are part of it. After another error, such as a lost connection, start
    all processes again: those with an `id` or `process_id` that were stored are repeats, which change nothing.

    Args:
        starts: the starts; a generator may make them one by one.

    Raises:
        StartRefused: `start_process` would have refused one of them; the error says why. Those before it are stored.
    """
    done: list[StartReceipt] = []
    waiting: list[NewProcess] = []
    size = 0
    for start in starts:
        try:
            new = _checked(start)
            if not isinstance(new, Arrival):
                new = new.with_summary()  # the caller may use the input again
        except Exception as error:  # some of the code is the application's
            if receipts.concerns_all(error):
                raise
            done += _started(waiting, done)
            raise StartRefused(done, error) from error
        size += _size(new)
        if waiting and (len(waiting) == MANY or size > MUCH):
            done += _started(waiting, done)
            waiting, size = [], _size(new)
        waiting.append(new)
    return done + _started(waiting, done)


async def astart_process(
    definition: DefinitionClass | str,
    event: Any = None,
    *,
    id: str = "",
    source: str = "application",
    process_id: UUID | None = None,
    correlation_key: str = "",
) -> StartReceipt:
    """Start a process, for asynchronous code: as `start_process`, in Django's thread for the database.

    Django's transactions do not reach over it: start the process in a synchronous function that has the transaction.
    """
    about = {"id": id, "source": source, "process_id": process_id}
    start: Any = start_process  # of which an overload fits
    receipt: StartReceipt = await sync_to_async(start)(
        definition, event, correlation_key=correlation_key, **about
    )
    return receipt


async def astart_processes(starts: Iterable[ProcessStart]) -> list[StartReceipt]:
    """Start many processes in their order, for asynchronous code: as `start_processes`."""
    return await sync_to_async(start_processes)(starts)


def _checked(start: ProcessStart) -> NewProcess:
    """Check the start of a process, which is not stored yet."""
    if not isinstance(start, ProcessStart):
        raise InvalidMessage(
            Text(
                "%(type)s is no ProcessStart: put the definition and the event or input of each process into a "
                "ProcessStart",
                type(start).__name__,
            )
        )
    given, event = start.definition, start.event
    name = given if isinstance(given, str) else given.name
    known = registry.find_definition(name)
    if issubclass(known, Workflow):
        return starting.new_workflow(
            known,
            event,
            id=start.id,
            source=start.source,
            process_id=start.process_id,
            correlation_key=start.correlation_key,
        )
    if type(event).__name__ not in known.starting_events():
        raise InvalidMessage(
            Text(
                "%(type)s does not start %(name)s; one of these does: %(choices)s",
                type(event).__name__,
                name,
                ", ".join(sorted(known.starting_events())),
            )
        )
    chosen = start.process_id or uuid7()
    key = start.correlation_key or inbox.correlation_of(known, event)
    address = Address(chosen, key, target=name, starts=True)
    return inbox.arrival(event, start.id or str(chosen), start.source, address)


def _size(new: NewProcess) -> int:
    """Return how many characters the input or event of a start has."""
    if isinstance(new, Arrival):
        return new.size
    return len(canonical_json(new.pin.data))


def _started(
    starts: Sequence[NewProcess], before: Sequence[StartReceipt]
) -> list[StartReceipt]:
    """Start processes in one commit; one by one where that shows which of them is a repeat, or is refused.

    Raises:
        StartRefused: one of them is refused.
    """
    if len(starts) > 1:
        try:
            return _started_together(starts)
        except Exception as error:  # one by one shows which start it is
            if receipts.concerns_all(error):
                raise
            log.info("processes are started singly: %s", type(error).__name__)
    found: list[StartReceipt] = []
    for start in starts:
        try:
            found.append(_started_singly(start))
        except Exception as error:
            if receipts.concerns_all(error):
                raise
            raise StartRefused([*before, *found], error) from error
    return found


def _started_together(starts: Sequence[NewProcess]) -> list[StartReceipt]:
    arrivals = [one for one in starts if isinstance(one, Arrival)]
    workflows = [one for one in starts if not isinstance(one, Arrival)]
    together = starting.StartedTogether(workflows)
    if arrivals:
        receipts.check_starts(arrivals)
    # Only now, since a transaction of SQLite may have to begin with a write.
    with transaction.atomic():
        together.write()
        stored = receipts.stored_together(arrivals) if arrivals else []
    begun, sent = iter(together.receipts), iter(stored)
    return [
        _start_receipt(one, next(sent)) if isinstance(one, Arrival) else next(begun)
        for one in starts
    ]


def _started_singly(start: NewProcess) -> StartReceipt:
    if isinstance(start, Arrival):
        return _start_receipt(start, receipts.store_event(start))
    return starting.start_workflow(start)


def _start_receipt(arrival: Arrival, receipt: Receipt) -> StartReceipt:
    """Return the receipt of an event that starts a process.

    Raises:
        ConflictingEvent: the event was sent before to another process.
    """
    if receipt.process_id is None:
        source, id = arrival.name
        raise ConflictingEvent(
            "%(source)s sent event id %(id)s before to whichever process has its key; use a new id for a new process",
            source,
            repr(id),
        )
    return StartReceipt(
        receipt.number, receipt.process_id, receipt.verdict, receipt.repeated
    )
