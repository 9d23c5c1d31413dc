"""Cars whose events come in any order, most of them long before their step, while workers are killed.

What waits for longer than its patience is told to people; they do nothing, and it is taken all the same.
"""

import random
from collections import Counter
from functools import partial

import pytest

from orchestrator import send_event
from orchestrator.definition import Event
from orchestrator.models import (
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
    Status,
)
from tests.apps.out_of_order.processes import (
    CarBuilding,
    CarCollected,
    CarInspected,
    CarOrdered,
    CarPainted,
    PartFitted,
)
from tests.reliability.senders import Sending, send_all
from tests.reliability.storm import Storm
from tests.services.crews import crew, knowing
from tests.services.sizes import size
from tests.services.workers import Workers

CARS, PARTS, SENDERS = size(10, full=2_000), 3, 4
EVENTS = CARS * (PARTS + 4)
SECONDS_BETWEEN_KILLS = size(1, full=6) / 2
TOLD = {Incident.Kind.UNEXPECTED_EVENT, Incident.Kind.UNROUTED_EVENT}


cars = knowing(CarBuilding)
hands = crew(PATIENCE_SECONDS=size(1, full=4) / 2)


def story_of(car: str) -> list[Event]:
    """Return all that happens to a car."""
    fitted = [
        PartFitted(car, number, last=number == PARTS) for number in range(1, PARTS + 1)
    ]
    after = [CarPainted(car), CarInspected(car), CarCollected(car)]
    return [CarOrdered(car), *fitted, *after]


def shuffled(dice: random.Random) -> list[Sending]:
    """Return what is to be sent: the events of all cars in any order."""
    stories = [(f"C-{number}", story_of(f"C-{number}")) for number in range(CARS)]
    sendings: list[Sending] = [
        partial(
            send_event, event, id=f"{car} {place}", source="plant", correlation_key=car
        )
        for car, story in stories
        for place, event in enumerate(story)
    ]
    dice.shuffle(sendings)
    return sendings


def send(sendings: list[Sending]) -> None:
    send_all(*(sendings[turn::SENDERS] for turn in range(SENDERS)))


def people_were_told() -> bool:
    """Whether some events have waited for longer than their patience, for their process and for its step."""
    kinds = Incident.objects.open().values_list("kind", flat=True).distinct()
    return set(kinds) == TOLD


@pytest.mark.full_size("2,000 processes", seconds=900)
def test_all_end_as_they_must_without_a_hand(hands: Workers) -> None:
    sendings = shuffled(random.Random(21))
    half = len(sendings) // 2
    ended = ProcessInstance.objects.ended()
    due = InboxEvent.objects.filter(wake_at__isnull=False)

    with Storm(hands, SECONDS_BETWEEN_KILLS, steps=8, seed=21).raging() as until:
        send(sendings[:half])
        until(people_were_told, 100)
        send(sendings[half:])
        until(lambda: ended.count() == CARS and not due.exists(), 240)

    assert set(ProcessInstance.objects.values_list("status", "step", "parked")) == {
        (Status.COMPLETED, "Collected", 0)
    }
    verdicts = Counter(InboxEvent.objects.values_list("verdict", flat=True))
    assert verdicts == {"started": CARS, "moved": EVENTS - CARS}
    # People were told of what came too early by far, and of nothing else; it settled itself.
    assert set(Incident.objects.values_list("kind", flat=True)) == TOLD
    assert not Incident.objects.open().exists()
    assert not OperatorAction.objects.exists()
