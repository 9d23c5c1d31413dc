"""Cars whose events come in any order, most of them long before their step, while workers are killed.

What waits for longer than its patience is told to people; they do nothing, and it is taken all the same.
"""

import random
from collections import Counter
from collections.abc import Iterator
from functools import partial

import pytest

from orchestrator import send_event
from orchestrator.definition import Event
from orchestrator.engine.invariants import violations
from orchestrator.models import (
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
    Status,
)
from orchestrator.testing import registered
from tests.apps.out_of_order.processes import (
    CarBuilding,
    CarCollected,
    CarInspected,
    CarOrdered,
    CarPainted,
    PartFitted,
)
from tests.reliability.senders import Senders, Sending
from tests.reliability.storm import Storm, kill_one
from tests.services.patience import wait_for
from tests.services.sizes import size
from tests.services.workers import Workers

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("cars"),
    pytest.mark.timeout(600),
]

CARS, PARTS, SENDERS = size(20, full=2_000), 3, 4
EVENTS = CARS * (PARTS + 4)
SECONDS_BETWEEN_KILLS = size(1, full=6) / 2
PATIENT = {
    "PROCESSION_APPS": "tests.apps.out_of_order",
    "PROCESSION_PATIENCE_SECONDS": str(size(1, full=4) / 2),
}
TOLD = {Incident.Kind.UNEXPECTED_EVENT, Incident.Kind.UNROUTED_EVENT}


@pytest.fixture(scope="module")
def cars() -> Iterator[None]:
    """Let the running code build cars; for a whole module, as the invariants need it after each test."""
    with registered(CarBuilding):
        yield


@pytest.fixture
def builders(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> Iterator[Workers]:
    """Run two workers who know the cars and lose their patience quickly."""
    for name, value in PATIENT.items():
        monkeypatch.setenv(name, value)
    workers = Workers(processes=2)
    workers.start()
    yield workers
    workers.stop()


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
    Senders(*(sendings[turn::SENDERS] for turn in range(SENDERS))).send_all()


def people_were_told() -> bool:
    """Whether some events have waited for longer than their patience, for their process and for its step."""
    kinds = Incident.objects.open().values_list("kind", flat=True).distinct()
    return set(kinds) == TOLD


def unfinished(workers: Workers) -> str:
    statuses = Counter(ProcessInstance.objects.values_list("step", "status"))
    verdicts = Counter(InboxEvent.objects.values_list("verdict", flat=True))
    said = workers.supervisor.log.read_text()[-1500:]
    return f"{dict(statuses)} {dict(verdicts)}; workers: {said}"


@pytest.mark.full_size("2,000 processes", seconds=900)
def test_all_end_as_they_must_without_a_hand(builders: Workers) -> None:
    dice, storm = random.Random(21), Storm()
    storm.every(
        SECONDS_BETWEEN_KILLS, "kills", lambda: kill_one(builders, dice), steps=8
    )
    sendings = shuffled(dice)
    half = len(sendings) // 2
    ended = ProcessInstance.objects.ended()
    due = InboxEvent.objects.filter(wake_at__isnull=False)

    with storm.raging():
        send(sendings[:half])
        wait_for(people_were_told, 100, lambda: unfinished(builders))
        send(sendings[half:])
        wait_for(
            lambda: ended.count() == CARS and not due.exists(),
            240,
            lambda: unfinished(builders),
        )

    assert storm.failures == []
    assert storm.counts["kills"] >= 1
    assert set(ProcessInstance.objects.values_list("status", "step", "parked")) == {
        (Status.COMPLETED, "Collected", 0)
    }
    verdicts = Counter(InboxEvent.objects.values_list("verdict", flat=True))
    assert verdicts == {"started": CARS, "moved": EVENTS - CARS}
    # People were told of what came too early by far, and of nothing else; it settled itself.
    assert set(Incident.objects.values_list("kind", flat=True)) == TOLD
    assert not Incident.objects.open().exists()
    assert not OperatorAction.objects.exists()
    assert violations() == []
