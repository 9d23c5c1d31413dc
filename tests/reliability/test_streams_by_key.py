"""Two senders tell of many parcels by their keys, each parcel's events in order, while workers are killed.

No event overtakes another of its parcel, none is set aside, and nobody is told of anything.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import partial

import pytest
from django.contrib.auth.models import Group

from orchestrator import send_event
from orchestrator.definition import Event
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Status
from tests.apps.process_managers.messages import (
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.reliability.senders import Sending, send_all
from tests.reliability.storm import Storm
from tests.services.sizes import first_of, size
from tests.services.workers import Workers

pytestmark = pytest.mark.usefixtures("parcels")

PARCELS, SCANS = size(8, full=1_000), 7
EVENTS = PARCELS * (SCANS + 3)
SECONDS_BETWEEN_KILLS = size(1, full=10) / 2


def story_of(parcel: str) -> list[Event]:
    """Return all that happens to a parcel, in its order."""
    scans = [ParcelScanned(parcel, f"place {number}") for number in range(SCANS)]
    return [ParcelOrdered(parcel), ParcelPacked(3), *scans, ParcelDelivered(parcel)]


def stream(sender: str, dice: random.Random) -> Iterator[Sending]:
    """Yield one sender's half of the parcels, mixed with each other: of each parcel one event after the other."""
    parcels = [f"{sender}-{number}" for number in range(PARCELS // 2)]
    left = {parcel: iter(story_of(parcel)) for parcel in parcels}
    turns = [parcel for parcel in parcels for _ in range(SCANS + 3)]
    dice.shuffle(turns)
    for number, parcel in enumerate(turns):
        event = next(left[parcel])
        yield partial(
            send_event, event, id=f"{number}", source=sender, correlation_key=parcel
        )


def out_of_order() -> dict[str, list[int]]:
    """Return the parcels whose events did not lead to one revision after the other."""
    rows = InboxEvent.objects.order_by("correlation_key", "id")
    found = defaultdict[str, list[int]](list)
    for parcel, revision in rows.values_list("correlation_key", "revision"):
        found[parcel].append(revision)
    whole = list(range(1, SCANS + 4))
    return {parcel: seen for parcel, seen in found.items() if seen != whole}


@pytest.mark.full_size("10,000 events", seconds=600)
@pytest.mark.parametrize("when", first_of(["sent meanwhile", "sent before"]))
def test_all_events_are_taken_in_their_order(hands: Workers, when: str) -> None:
    dice, before = random.Random(8), when == "sent before"
    streams = [stream(sender, dice) for sender in ("north", "south")]
    if before:
        send_all(*streams)
    due = InboxEvent.objects.filter(wake_at__isnull=False)

    with Storm(hands, SECONDS_BETWEEN_KILLS, steps=8, seed=8).raging() as until:
        if not before:
            send_all(*streams)
        until(lambda: not due.exists(), 240)

    verdicts = Counter(InboxEvent.objects.values_list("verdict", flat=True))
    assert verdicts == {"started": PARCELS, "moved": EVENTS - PARCELS}
    assert out_of_order() == {}
    ends = set(ProcessInstance.objects.values_list("status", "data__place"))
    assert ends == {(Status.COMPLETED, f"place {SCANS - 1}")}
    assert not Incident.objects.exists()
    # Each command was carried out once, though its worker may have been killed over it.
    assert Group.objects.count() == PARCELS * (SCANS + 1)
