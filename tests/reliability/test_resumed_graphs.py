"""Random graphs are resumed from random checkpoints again and again, and still come to their ends."""

import random
from contextlib import nullcontext
from itertools import count
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import ActionRequest, resume
from orchestrator.engine.storage import definitions, settled_visits
from orchestrator.exceptions import OperationRefused
from orchestrator.models import OperatorAction, ProcessInstance, StepKind, StepStatus
from tests.apps.patterns.desk import insist, launch
from tests.apps.random_graphs.processes import RandomGraph
from tests.services.crews import knowing
from tests.services.sizes import size

pytestmark = pytest.mark.django_db

SEEDS = range(size(2, full=24))
known = knowing(RandomGraph)


def run_for(moments: int) -> None:
    """Run a part of what is ready."""
    passed = count()
    drain(stop=lambda: next(passed) > moments)


def standing(process: ProcessInstance, revision: int) -> set[tuple[str, int]]:
    """Return the visits that were open at a revision, as the stored rows tell it."""
    rows = process.step_runs.exclude(kind__in=[StepKind.JOIN, StepKind.ITEM])
    rows = rows.exclude(status=StepStatus.NOT_TAKEN).filter(entered__lte=revision)
    open_ones = (run for run in rows if run.left is None or run.left > revision)
    return {(run.node, run.visit) for run in open_ones}


@pytest.mark.parametrize("seed", SEEDS)
def test_every_checkpoint_is_told_as_it_was(seed: int) -> None:
    process = insist(launch(RandomGraph, seed, 25), 4)
    assert process.status == "completed"
    plan = definitions.plan_of(process)

    for revision in range(1, process.revision + 1):
        known = settled_visits.state_at(process, plan, revision)
        assert set(known.open) == standing(process, revision)
    assert known.waiting == {}


@pytest.mark.parametrize("seed", SEEDS)
def test_a_graph_often_resumed_completes(seed: int, administrator: User) -> None:
    dice = random.Random(seed)
    process = launch(RandomGraph, seed, 25)
    for _ in range(4):
        run_for(dice.randint(1, 40))
        process.refresh_from_db()
        if process.finished_at is None:
            back = dice.randint(1, process.revision)
            try_resume(process, back, administrator)
    process = insist(process, 4)

    assert process.status == "completed"
    assert not process.step_runs.filter(finished_at=None).exists()


def try_resume(process: ProcessInstance, revision: int, administrator: User) -> None:
    """Resume; from a checkpoint that was given up before, see that it is refused."""
    refusal = pytest.raises(OperationRefused, match="was given up")
    with refusal if given_up(process, revision) else nullcontext():
        request = ActionRequest(administrator, uuid4(), "why")
        resume(process.pk, revision, request=request)


def given_up(process: ProcessInstance, revision: int) -> bool:
    before = OperatorAction.objects.filter(instance=process, result="done")
    return any(
        one.after["resumed_from"] < revision < one.after["revision"] for one in before
    )
