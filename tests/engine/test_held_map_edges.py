"""A held map beside conditions, loops, redoing and undoing: what it has not begun stays so until people decide."""

from collections import Counter

import pytest

from orchestrator import Permanent
from orchestrator.definition import (
    Workflow,
    case,
    each,
    repeat,
    route,
    run,
    step,
    undo,
)
from orchestrator.engine.operations import redo
from orchestrator.exceptions import OperationRefused
from orchestrator.testing import Process, started
from tests.services.asking import asked
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

DEVICES = 6

bad: set[int] = set()
calls: Counter[int] = Counter()
undone: list[int] = []
seen: list[list[int]] = []
"""The results that conditions were asked about."""


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    for one in (bad, calls, undone, seen):
        one.clear()


def devices() -> list[int]:
    return [*range(DEVICES)]


def update(item: int) -> int:
    calls[item] += 1
    if item in bad:
        raise Permanent(f"device {item} does not start")
    return item


def install(item: int) -> int:
    """The same; here an error is for people, and undoes nothing."""
    calls[item] += 1
    if item in bad:
        raise ValueError(f"device {item} does not start")
    return item


def report(update: list[int]) -> int:
    return len(update)


def count(install: list[int]) -> int:
    return len(install)


def take_back(install: int) -> None:
    undone.append(install)


def are_enough(results: list[int]) -> bool:
    seen.append(results)
    return len(results) >= DEVICES - 1


def celebrate() -> str:
    return "enough"


def apologize() -> str:
    return "too few"


mapped = each(devices, over="", do=update, into=report, tolerate=1)


class Tolerant(Workflow):
    """A roll-out in which one device may fail."""

    flow = (mapped,)


class Decided(Workflow):
    """The same; its results decide the way."""

    flow = (
        mapped,
        route(update, case(are_enough, to=celebrate), otherwise=apologize),
    )


def is_complete(rollout: int) -> bool:
    return rollout == DEVICES


def close(rollout: int) -> int:
    return rollout


class Repeated(Workflow):
    """Roll-outs one after the other, until one has every device."""

    rollout = run(Tolerant, "rollout")
    flow = (repeat(rollout, until=is_complete, at_most=3, then=close),)


class Undoing(Workflow):
    """A roll-out whose devices can be taken back."""

    flow = (
        each(devices, over="", do=step(install, retries=0), into=count, tolerate=1),
        undo(install, by=take_back),
    )


known = knowing(Tolerant, Decided, Repeated, Undoing)


def test_a_condition_behind_a_held_map_is_asked_once_about_all_results() -> None:
    bad.update([0, 1])
    process = started(Decided)
    assert (process.status, seen) == ("failed", [])

    bad.discard(1)
    process.retry()
    assert seen == [[1, 2, 3, 4, 5]]
    assert "celebrate" in process.path
    assert calls == {0: 1, 1: 2, 2: 1, 3: 1, 4: 1, 5: 1}


def test_a_loop_goes_on_when_its_held_map_is_retried() -> None:
    bad.update([0, 1])
    process = started(Repeated)
    assert (process.status, set(calls)) == ("failed", {0, 1})

    bad.clear()
    process.retry()
    assert process.path == ["rollout", "rollout", "close"]
    assert (process.result, calls[0], calls[1]) == (DEVICES, 2, 3)


def test_a_held_map_is_not_redone_until_it_is_finished() -> None:
    bad.update([0, 1])
    process = started(Tolerant)
    with pytest.raises(OperationRefused, match="update is not finished: retry or skip"):
        redo(process.id, "update", request=asked())
    assert set(calls) == {0, 1}

    bad.clear()
    process.retry()
    assert process.result == DEVICES - 1


def test_what_a_held_map_has_done_is_undone_and_nothing_else_begins() -> None:
    bad.update([2, 3])
    process: Process = started(Undoing)
    assert (process.status, set(calls)) == ("failed", {0, 1, 2, 3})

    process.cancel()
    assert (process.status, sorted(undone)) == ("cancelled", [0, 1])
    assert set(calls) == {0, 1, 2, 3}
