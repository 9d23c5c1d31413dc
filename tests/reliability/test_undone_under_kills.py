"""Voyages sink while a worker is killed twice a second: each finished step is undone once, the last one first."""

from collections import defaultdict
from functools import partial

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
from tests.reliability.storm import Storm, all_have
from tests.services.sizes import size
from tests.services.workers import Workers

__all__ = ["harbour"]

pytestmark = pytest.mark.usefixtures("harbour")

VOYAGES = size(5, full=40)
CRATES = 3


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
    for number in range(VOYAGES):
        start_process(Voyage, Cargo(f"ship {number}", CRATES))
    with Storm(hands, 0.3, steps=6, seed=5).raging() as until:
        until(partial(all_have, administrator, Status.CANCELLED, VOYAGES), 75)

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
