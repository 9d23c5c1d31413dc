"""Random graphs while workers are killed: all complete, and no step is run again once it is done."""

from collections import defaultdict
from functools import partial
from pathlib import Path
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from orchestrator import start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.models import (
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from tests.apps.random_graphs import steps
from tests.apps.random_graphs.processes import RandomGraph
from tests.apps.random_graphs.steps import Call, Dice
from tests.reliability.storm import Storm, all_have
from tests.services.crews import VISITS, knowing, set_out, unfinished
from tests.services.patience import wait_for
from tests.services.sizes import size
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

GRAPHS = size(8, full=200)
SIZE = 12

Visit = tuple[str, str, int, int | None]
"""Process, step, visit and element."""


graphs = knowing(RandomGraph)


@pytest.fixture(autouse=True)
def ledger(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file in which the steps note their calls."""
    set_out(monkeypatch)
    VISITS.unlink(missing_ok=True)
    return VISITS


def plant(number: int) -> None:
    """Start so many graphs."""
    for seed in range(number):
        start_process(RandomGraph, Dice(seed, SIZE))


def completed() -> int:
    return ProcessInstance.objects.filter(status=Status.COMPLETED).count()


def by_visit(calls: list[Call]) -> dict[Visit, list[Call]]:
    found: dict[Visit, list[Call]] = defaultdict(list)
    for call in calls:
        found[call.process, call.step, call.visit, call.item].append(call)
    return found


def settled() -> dict[Visit, StepRun]:
    """Return the visits of functions whose end is stored."""
    runs = StepRun.objects.filter(kind__in=[StepKind.STEP, StepKind.ITEM])
    return {
        (str(run.instance_id), run.node, run.visit, run.item): run
        for run in runs.exclude(finished_at=None)
    }


def assert_nothing_was_run_again(ledger: Path) -> None:
    """Every finished visit was called, always with one key, and never after its result was stored."""
    calls, runs = by_visit(steps.calls(ledger)), settled()
    done = {key for key, run in runs.items() if run.status == StepStatus.DONE}

    assert done <= calls.keys()
    assert calls.keys() <= runs.keys()
    for key, made in calls.items():
        assert {(c.key, c.late) for c in made} == {(made[0].key, False)}, key
    assert all(steps.is_done(UUID(key[0]), *key[1:]) for key in list(done)[:20])


@pytest.mark.full_size("60 graphs", seconds=240)
def test_one_worker_leads_every_graph_to_its_end(ledger: Path) -> None:
    number = size(4, full=60)
    plant(number)
    wait_for(lambda: drain() == 0 and completed() == number, 60, completed)

    assert_nothing_was_run_again(ledger)
    assert not Incident.objects.open().exists()


@pytest.mark.full_size("200 graphs", seconds=800)
def test_all_graphs_complete_while_workers_are_killed(
    valkey: ValkeyServer, hands: Workers, ledger: Path, administrator: User
) -> None:
    storm = Storm(hands, 0.4, steps=8, seed=7)
    storm.every(0.8, "flushes", valkey.forget_everything, steps=8)
    plant(GRAPHS)

    with storm.raging(kills=size(2, full=10)) as until:
        until(partial(all_have, administrator, Status.COMPLETED, GRAPHS), 70)

    assert storm.counts["flushes"] >= size(1, full=3)
    assert_nothing_was_run_again(ledger)
    assert not Incident.objects.open().exists()


@pytest.mark.full_size("40 graphs", seconds=240)
def test_graphs_complete_without_valkey(
    valkey: ValkeyServer, hands: Workers, ledger: Path
) -> None:
    valkey.stop()
    hands.start()
    number = size(3, full=40)
    plant(number)
    wait_for(lambda: completed() == number, 90, lambda: unfinished(hands))

    assert not valkey.running
    assert_nothing_was_run_again(ledger)
    assert not Incident.objects.open().exists()
