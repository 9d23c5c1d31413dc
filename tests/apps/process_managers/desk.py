"""Orders parcels, sends their events and lets time pass; the engine runs in this process."""

from datetime import timedelta
from itertools import count
from time import monotonic, sleep
from typing import Any

from django.db.models import F
from django.utils import timezone
from uuid6 import uuid7

from orchestrator import send_event, start_process
from orchestrator.definition import Event
from orchestrator.engine.drain import drain
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
    Verdict,
)
from tests.apps.process_managers.messages import Courier, ParcelOrdered, ParcelPacked
from tests.apps.process_managers.processes import Shipping
from tests.services.patience import SHARED

numbers = count(1)


def place(
    parcel_id: str = "P-1", courier: Courier = Courier.OWN, note: str = ""
) -> ProcessInstance:
    """Order a parcel; its process is waiting in Packing."""
    event = ParcelOrdered(parcel_id, courier, note)
    receipt = start_process(Shipping, event, id=f"order {parcel_id}", source="shop")
    drain()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def underway(
    parcel_id: str = "P-1", courier: Courier = Courier.OWN, note: str = ""
) -> ProcessInstance:
    """Order a parcel and have it packed; its process is waiting in OnTheWay."""
    parcel = place(parcel_id, courier, note)
    tell(parcel, ParcelPacked(3))
    parcel.refresh_from_db()
    return parcel


def accept(parcel: ProcessInstance, event: Event, id: str = "") -> int:
    """Send an event to a process without having it handled; return its number."""
    name = id or f"event {next(numbers)}"
    receipt = send_event(event, id=name, source="depot", process_id=parcel.pk)
    return int(receipt.number)


def tell(parcel: ProcessInstance, event: Event, id: str = "") -> InboxEvent:
    """Send an event to a process and run what is ready."""
    untried = InboxEvent.objects.filter(
        pk=accept(parcel, event, id), verdict=Verdict.RECEIVED, error=""
    )
    [number] = untried.values_list("pk", flat=True)
    deadline = monotonic() + 5 * SHARED
    drain()
    while untried.exists():  # an older event that is tried again just now goes first
        assert monotonic() < deadline, "the event is not looked at"
        sleep(0.02)
        drain()
    parcel.refresh_from_db()
    return InboxEvent.objects.get(pk=number)


def early(parcel_id: str, event: Event) -> InboxEvent:
    """Send an event for a parcel by its key and run what is ready."""
    number = send_event(
        event, id=f"event {next(numbers)}", source="depot", correlation_key=parcel_id
    ).number
    drain()
    return InboxEvent.objects.get(pk=number)


def let_pass(time: timedelta) -> None:
    """Let everything that is stored be older, and run what has become due."""
    age(time)
    drain()


def age(time: timedelta) -> None:
    """Let everything that is stored be older."""
    times: dict[Any, tuple[str, ...]] = {
        InboxEvent: ("received_at", "wake_at", "patience_until"),
        IssuedCommand: ("wake_at",),
        StepRun: ("started_at", "wake_at"),
        Checkpoint: ("at",),
        ProcessInstance: ("paused_at",),
    }
    for table, columns in times.items():
        table.objects.update(**{column: F(column) - time for column in columns})


def finish() -> None:
    """Run what is ready until nothing more is about to be, as after a race."""
    deadline = monotonic() + 10 * SHARED
    soon = timedelta(seconds=2.5)
    while InboxEvent.objects.filter(wake_at__lt=timezone.now() + soon).exists():
        assert monotonic() < deadline, "the events are not settled"
        drain()
        sleep(0.02)


def unknown() -> ProcessInstance:
    """Return a process that is not there, to send events to."""
    return ProcessInstance(id=uuid7())
