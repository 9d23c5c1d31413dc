"""Fleets of 10 ships sail while workers are killed: each ship has one passage, and all arrive."""

import random
from collections import Counter
from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User
from django.db.models import Count

from orchestrator import start_process
from orchestrator.engine.invariants import violations
from orchestrator.models import Incident, ProcessInstance, Status, StepKind, StepRun
from orchestrator.testing import registered
from tests.apps.subprocess_maps.processes import Fleet, Order, Passage
from tests.reliability.storm import Storm, kill_one, press_retry
from tests.services.patience import wait_for
from tests.services.sizes import size
from tests.services.workers import Workers

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("fleets"),
    pytest.mark.timeout(400),
]

FLEETS = size(5, full=12)
SHIPS = 10
QUICK = {
    "PROCESSION_APPS": "tests.apps.subprocess_maps",
    "PROCESSION_BACKOFF_SECONDS": "0.1",
    "PROCESSION_SWEEP_SECONDS": "0.2",
}


@pytest.fixture(scope="module")
def fleets() -> Iterator[None]:
    """Let the running code have these workflows; for a whole module, as the invariants need them after each test."""
    with registered(Fleet, Passage):
        yield


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[Workers]:
    """Return two workers who know the fleets; the test starts them."""
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    workers = Workers(processes=2)
    yield workers
    workers.stop()


def all_have_arrived(person: User) -> bool:
    press_retry(person)  # a step whose workers were killed too often is for people
    done = ProcessInstance.objects.filter(name="fleet", status=Status.COMPLETED)
    return done.count() == FLEETS


def unfinished(workers: Workers) -> str:
    statuses = Counter(ProcessInstance.objects.values_list("name", "status"))
    incidents = Incident.objects.open().values_list("message", flat=True)[:5]
    said = workers.supervisor.log.read_text()[-1500:]
    return f"{dict(statuses)}; {list(incidents)}; workers: {said}"


@pytest.mark.full_size("12 fleets of 10 ships", seconds=240)
def test_each_element_has_one_sub_process_though_workers_are_killed(
    hands: Workers, administrator: User
) -> None:
    dice = random.Random(7)
    storm = Storm()
    storm.every(0.4, "kills", lambda: kill_one(hands, dice), steps=8)
    for _ in range(FLEETS):
        start_process(Fleet, Order(SHIPS))
    hands.start()

    with storm.raging():
        wait_for(lambda: all_have_arrived(administrator), 75, lambda: unfinished(hands))

    assert storm.failures == []
    assert storm.counts["kills"] >= 2
    passages = ProcessInstance.objects.filter(name="passage", status=Status.COMPLETED)
    assert ProcessInstance.objects.filter(name="passage").count() == FLEETS * SHIPS
    each = passages.values("parent", "data__number").annotate(n=Count("pk"))
    assert [row["n"] for row in each] == [1] * FLEETS * SHIPS
    items = StepRun.objects.filter(kind=StepKind.ITEM, child__in=passages)
    assert items.values("child").distinct().count() == FLEETS * SHIPS
    for report in StepRun.objects.filter(node="report"):
        assert report.result == [number * 10 + 1 for number in range(SHIPS)]
    assert not Incident.objects.open().exists()
    assert violations() == []
