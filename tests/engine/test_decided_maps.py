"""A map that tolerates some failures begins no element once one more has failed, until a person acts."""

from collections import Counter
from typing import Any

import pytest

from orchestrator import Permanent
from orchestrator.definition import Workflow, each
from orchestrator.engine.change.workflows.visits import tolerated_failures
from orchestrator.engine.operations import pause, skip, unpause
from orchestrator.models import StepKind, StepRun
from orchestrator.testing import Process, run, started
from tests.services.asking import asked
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

DEVICES = 60
bad: set[int] = set()
tried: list[int] = []
at_once: list[int] = []


@pytest.fixture(autouse=True)
def nothing_tried() -> None:
    bad.clear()
    tried.clear()
    at_once.clear()


def devices() -> list[int]:
    return [*range(DEVICES)]


def update(item: int) -> int:
    tried.append(item)
    begun = StepRun.objects.filter(kind=StepKind.ITEM, status__in=["ready", "running"])
    at_once.append(begun.count())
    if item in bad:
        raise Permanent(f"device {item} does not start")
    return item


def report(update: list[int]) -> int:
    return len(update)


def rollout(name: str, **more: Any) -> type[Workflow]:
    row = each(devices, over="", do=update, into=report, **more)
    return type(name, (Workflow,), {"__doc__": "A roll-out.", "flow": (row,)})


Windowed = rollout("Windowed", window=10, tolerate=3)
Whole = rollout("Whole", tolerate=3)
Share = rollout("Share", window=10, tolerate=0.05)
Strict = rollout("Strict", window=10)
known = knowing(Windowed, Whole, Share, Strict)

TOLERANT = pytest.mark.parametrize("kind", [Windowed, Whole, Share])


def elements(process: Process) -> Counter[str]:
    items = process.instance.step_runs.filter(kind=StepKind.ITEM)
    return Counter(items.values_list("status", flat=True))


def held(kind: type[Workflow]) -> Process:
    """Return a roll-out of which four devices have failed, the last one too many."""
    bad.update(range(4))
    process = started(kind)
    assert (process.status, tried) == ("failed", [0, 1, 2, 3])
    assert elements(process) == {"failed": 4, "waiting": DEVICES - 4}
    return process


@TOLERANT
def test_none_begins_once_more_have_failed_than_are_tolerated(
    kind: type[Workflow],
) -> None:
    process = held(kind)
    pause(process.id, request=asked())
    unpause(process.id, request=asked())
    run()

    assert len(tried) == 4


@TOLERANT
def test_the_others_begin_once_the_failed_one_was_retried(kind: type[Workflow]) -> None:
    process = held(kind)
    bad.clear()
    process.retry()

    assert process.status == "completed"
    assert elements(process) == {"failed": 3, "done": DEVICES - 3}
    assert sorted(tried) == sorted([3, *range(DEVICES)])


@TOLERANT
def test_the_others_begin_once_the_failed_one_was_skipped(kind: type[Workflow]) -> None:
    process = held(kind)
    failed = StepRun.objects.get(status="failed", finished_at=None)
    skip(process.id, failed.pk, 3, request=asked())
    run()

    assert process.status == "completed"
    assert len(tried) == DEVICES


def test_a_retry_that_fails_holds_the_others_again() -> None:
    process = held(Whole)
    process.retry()

    assert (process.status, tried) == ("failed", [0, 1, 2, 3, 3])


def test_the_window_narrows_with_what_is_left() -> None:
    bad.update(range(3))
    process = started(Windowed)

    assert process.status == "completed"
    assert at_once[:4] == [10, 9, 8, 7]
    assert set(at_once[10:-3]) == {3}


def test_a_map_that_tolerates_none_tries_all_others() -> None:
    """Each failure waits for a person by itself."""
    bad.add(0)
    process = started(Strict)

    assert process.status == "failed"
    assert elements(process) == {"failed": 1, "done": DEVICES - 1}


@pytest.mark.parametrize("hundredths", range(101))
def test_a_share_of_a_hundred_elements_is_what_is_written(hundredths: int) -> None:
    share = float(f"{hundredths / 100:.2f}")
    row = each(devices, over="", do=update, into=report, tolerate=share)
    assert tolerated_failures(row, StepRun(expected=100)) == hundredths


@pytest.mark.parametrize("elements", [0, None])
def test_without_elements_none_may_fail(elements: int | None) -> None:
    row = each(devices, over="", do=update, into=report, tolerate=1.0)
    assert tolerated_failures(row, StepRun(expected=elements)) == 0
