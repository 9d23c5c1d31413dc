"""Voyages sink while a worker is killed twice a second: each finished step is undone once, the last one first."""

from collections import defaultdict

import pytest
from django.contrib.auth.models import User

from orchestrator import start_process
from orchestrator.models import (
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from tests.apps.interrupted_undo.fixtures import harbour
from tests.apps.interrupted_undo.processes import Voyage
from tests.apps.interrupted_undo.traced_steps import Cargo, traces
from tests.reliability.storm import Storm, press_retry
from tests.services.crews import unfinished
from tests.services.patience import wait_for
from tests.services.sizes import size
from tests.services.workers import Workers

__all__ = ["harbour"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("harbour"),
    pytest.mark.timeout(400),
]

VOYAGES = size(5, full=40)
CRATES = 3


def all_are_taken_back(person: User) -> bool:
    press_retry(person)
    return ProcessInstance.objects.filter(status=Status.CANCELLED).count() == VOYAGES


def finished(process: ProcessInstance) -> list[str]:
    """Return what was done and can be undone, in the order in which it was settled."""
    runs = process.step_runs.filter(status=StepStatus.DONE)
    runs = runs.filter(kind__in=[StepKind.STEP, StepKind.ITEM])
    return [
        run.node if run.item is None else f"{run.node} {run.item}"
        for run in runs.order_by("left", "pk")
    ]


@pytest.mark.full_size("40 voyages", seconds=300)
def test_every_finished_step_is_undone_once_and_in_reverse_order(
    hands: Workers, administrator: User
) -> None:
    storm = Storm()
    storm.kills(hands, 0.3, steps=6, seed=5)
    for number in range(VOYAGES):
        start_process(Voyage, Cargo(f"ship {number}", CRATES))
    hands.start()

    with storm.raging():
        wait_for(
            lambda: all_are_taken_back(administrator), 75, lambda: unfinished(hands)
        )

    interrupted = StepRun.objects.filter(kind=StepKind.UNDO, attempt__gt=1)
    assert interrupted.exists()
    done: dict[str, list[str]] = defaultdict(list)
    for ship, entry in traces():
        done[ship].append(entry)
    for process in ProcessInstance.objects.all():
        settled, traced = finished(process), done[process.data["ship"]]
        assert sorted(traced[: len(settled)]) == sorted(settled)
        assert traced[len(settled) :] == [f"undo {one}" for one in reversed(settled)]
        assert len(settled) == 5 + CRATES
    assert not Incident.objects.open().exists()
