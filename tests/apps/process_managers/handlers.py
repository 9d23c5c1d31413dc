"""What the commands do. A parcel's note may tell a handler to misbehave: the tests of real workers need that.

Rows in another app's table, groups of users, stand for what real handlers write.
"""

import os
import signal
import time

from django.contrib.auth.models import Group

from orchestrator import Answer, CommandContext, handles, reacts_to
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    CourierBooked,
    DepotOpened,
    PackParcel,
    RemindPacker,
    TraceParcel,
)

PATIENCE = 600  # seconds that a handler hangs


@handles(PackParcel)
def pack_parcel(command: PackParcel) -> None:
    """Leaves a trace in the transition's transaction."""
    Group.objects.create(name=f"packed {command.parcel_id}")
    obey(command.note)


@handles(BookCourier, after_commit=True, attempts=2, timeout=3)
def book_courier(command: BookCourier, context: CommandContext) -> Answer:
    """Stands for a call to somebody else."""
    obey(command.note.removeprefix("when booked: "))
    return Answer("HTTP 202", CourierBooked(f"B-{command.parcel_id}"))


@handles(RemindPacker)
def remind_packer(command: RemindPacker) -> None:
    """Leaves a trace for each reminder."""
    Group.objects.get_or_create(name=f"reminded {command.parcel_id}")


@handles(CountScan)
def count_scan(command: CountScan, context: CommandContext) -> None:
    """Leaves a trace for each scan, of a name that can be there once."""
    Group.objects.create(name=f"scan {command.parcel_id} {context.command_id}")


@handles(TraceParcel)
def trace_parcel(command: TraceParcel) -> None:
    """Does nothing."""


@reacts_to(DepotOpened)
def greet_depot(event: DepotOpened, context: CommandContext) -> None:
    """Leaves a trace once an event."""
    Group.objects.create(name=f"depot {event.depot}")


def obey(note: str) -> None:
    """Do what the note says, if it says something."""
    if note == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    elif note == "hang":
        time.sleep(PATIENCE)
