"""Planted defects of a workflow's deadline: each is found, and what may be is not reported."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from orchestrator import start_process
from orchestrator.engine.invariants import violations
from orchestrator.models import StepRun
from orchestrator.testing import run
from tests.apps.patterns import patterns, ways
from tests.services.invariants import undone
from tests.services.operated import knowing

pytestmark = pytest.mark.django_db

crossings = knowing(ways.Crossing)

Plant = Callable[[Any], object]

PLANTED: dict[str, Plant] = {
    "has no deadline any more": lambda asked: asked.update(wake_at=None),
    "is too late, but no person has extended it": lambda asked: asked.update(
        wake_at=timezone.now() + timedelta(days=2)
    ),
}


def test_a_deadline_that_is_removed_or_put_off_is_found() -> None:
    start_process(ways.Crossing, patterns.Number(1))
    run()
    asked = StepRun.objects.filter(node="crossing", finished_at=None)
    assert violations() == []

    missed = []
    for said, plant in PLANTED.items():
        with undone():
            plant(asked)
            found = violations()
            if not any(line.startswith("deadlines") and said in line for line in found):
                missed.append((said, found))
    assert missed == []
