"""A condition that stands on the step of a map is decided on the list of its results."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from orchestrator.definition import Workflow, case, each, fork, route, step
from orchestrator.engine.claims.held import MOST
from orchestrator.engine.drain import drain
from orchestrator.engine.invariants import violations
from orchestrator.engine.operations import resume, skip
from orchestrator.exceptions import Skip
from orchestrator.models import ProcessInstance
from orchestrator.testing import registered
from orchestrator.workers.held import SharedHeld
from tests.apps.patterns.desk import finished, go_on, launch, statuses
from tests.services.asking import asked
from tests.services.supervised import unhurried

__all__ = ["unhurried"]

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Numbers:
    """Each is doubled; nothing comes of 13, and 14 fails."""

    numbers: list[int]


def given(numbers: list[int]) -> list[int]:
    return numbers


def double(item: int) -> int:
    if item == 13:
        raise Skip("bad luck")
    if item == 14:
        raise ConnectionError("no line")
    return 2 * item


def total(double: list[int]) -> int:
    return sum(double)


def all_small(numbers: list[int]) -> bool:
    return all(number < 10 for number in numbers)


def small() -> str:
    return "small"


def large() -> str:
    return "large"


def four() -> str:
    return "four"


doubled = step(double, retries=0)
mapped = each(given, over="", do=doubled, into=total, window=8)


class Routed(Workflow):
    """One of two ways, beside the step that gets the list."""

    Input = Numbers
    flow = (mapped, route(doubled, case(all_small, to=small), otherwise=large))


class Forked(Workflow):
    """A branch for each of these results that is there."""

    Input = Numbers
    flow = (mapped, fork(doubled, on="", into={4: four, 40: large}))


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(Routed, Forked):
        yield


def ways(process: ProcessInstance) -> set[str]:
    """Return which of the steps that stand under a condition were done."""
    assert statuses(process)["total"] == "done"
    found = statuses(process)
    return {name for name in ("small", "large", "four") if found.get(name) == "done"}


@pytest.mark.parametrize(
    ("numbers", "way"),
    [
        ([], "small"),
        ([1, 2, 3], "small"),
        ([9, 1, 1], "large"),
        ([1, 1, 9], "large"),
        ([1, 13, 1], "small"),
        ([9, 13], "large"),
        ([*[1] * MOST, 9, *[1] * MOST], "large"),
    ],
)
def test_a_route_is_taken_by_the_results(numbers: list[int], way: str) -> None:
    process = finished(Routed, numbers)

    assert process.status == "completed"
    assert ways(process) == {way}
    assert violations() == []


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("numbers", [[9, 1, 1, 1], [1, 1, 1, 9]])
def test_results_that_share_a_commit_are_among_them(numbers: list[int]) -> None:
    process = launch(Routed, numbers)
    while drain(held=SharedHeld()):
        pass

    settled = process.step_runs.filter(node="double", item__isnull=False)
    assert len(set(settled.values_list("left", flat=True))) < len(numbers)
    assert ways(process) == {"large"}


@pytest.mark.parametrize(
    ("numbers", "taken"),
    [([1], set()), ([2, 5], {"four"}), ([20, 2], {"four", "large"})],
)
def test_a_fork_takes_the_branches_of_the_results(
    numbers: list[int], taken: set[str]
) -> None:
    process = finished(Forked, numbers)

    assert process.status == "completed"
    assert ways(process) == taken
    assert violations() == []


def test_the_way_is_the_same_when_the_last_result_is_a_persons() -> None:
    process = finished(Routed, [1, 14])
    failed = process.step_runs.get(status="failed")
    skip(process.pk, failed.pk, 40, request=asked())
    process = go_on(process)

    assert ways(process) == {"large"}
    assert violations() == []


def test_it_is_the_same_when_the_history_is_told_again() -> None:
    process = finished(Routed, [9, 1, 14])
    begun = process.step_runs.filter(node="double").earliest("pk").entered
    resume(process.pk, begun, request=asked())
    failed = go_on(process).step_runs.get(status="failed")
    skip(process.pk, failed.pk, 1, request=asked())
    process = go_on(process)

    assert ways(process) == {"large"}
    assert violations() == []
