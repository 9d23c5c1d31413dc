"""Orders parcels, sends their events and lets time pass; the engine runs in this process."""

from itertools import count

from django.utils import timezone
from uuid6 import uuid7

from orchestrator import send_event, start_process
from orchestrator.definition import Event
from orchestrator.models import InboxEvent, ProcessInstance
from orchestrator.testing import pass_time, run
from tests.apps.process_managers.messages import Courier, ParcelOrdered, ParcelPacked
from tests.apps.process_managers.processes import Shipping

numbers = count(1)


def place(
    parcel_id: str = "P-1", courier: Courier = Courier.OWN, note: str = ""
) -> ProcessInstance:
    """Order a parcel; its process is waiting in Packing."""
    event = ParcelOrdered(parcel_id, courier, note)
    receipt = start_process(Shipping, event, id=f"order {parcel_id}", source="shop")
    run()
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
    number = accept(parcel, event, id)
    run()
    parcel.refresh_from_db()
    return InboxEvent.objects.get(pk=number)


def early(parcel_id: str, event: Event) -> InboxEvent:
    """Send an event for a parcel by its key and run what is ready."""
    number = send_event(
        event, id=f"event {next(numbers)}", source="depot", correlation_key=parcel_id
    ).number
    run()
    return InboxEvent.objects.get(pk=number)


def overdue(parcel: ProcessInstance) -> None:
    """Have the deadline of a process's step pass, and nothing else."""
    parcel.step_runs.filter(finished_at=None).update(wake_at=timezone.now())
    run()
    parcel.refresh_from_db()


def finish() -> None:
    """Run what is ready until nothing more is about to be, as after a race."""
    pass_time(seconds=2.5)


def unknown() -> ProcessInstance:
    """Return a process that is not there, to send events to."""
    return ProcessInstance(id=uuid7())
