"""A condition that stands on the step of a map is decided on the list of its results."""

import pytest

from orchestrator.definition import Workflow, case, each, fork, route
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import resume, skip
from orchestrator.engine.work.worker_slice import MOST
from orchestrator.models import ProcessInstance
from orchestrator.workers.shared_memory.claims import SharedClaims
from tests.apps.patterns.desk import finished, launch, statuses
from tests.apps.watched.doubled import Numbers, doubled, given, total
from tests.services.cases import cases
from tests.services.operated import knowing, operated
from tests.services.supervised import unhurried

__all__ = ["unhurried"]

pytestmark = pytest.mark.django_db


def all_small(numbers: list[int]) -> bool:
    return all(number < 10 for number in numbers)


def small() -> str:
    return "small"


def large() -> str:
    return "large"


def four() -> str:
    return "four"


mapped = each(given, over="", do=doubled, into=total, window=8)


class Routed(Workflow):
    """One of two ways, beside the step that gets the list."""

    Input = Numbers
    flow = (mapped, route(doubled, case(all_small, to=small), otherwise=large))


class Forked(Workflow):
    """A branch for each of these results that is there."""

    Input = Numbers
    flow = (mapped, fork(doubled, on="", into={4: four, 40: large}))


known = knowing(Routed, Forked)


def ways(process: ProcessInstance) -> set[str]:
    """Return which of the steps that stand under a condition were done; all has come to its end."""
    found = statuses(process)
    assert (process.status, found["total"]) == ("completed", "done")
    return {name for name in ("small", "large", "four") if found.get(name) == "done"}


@cases(
    "numbers, way",
    ([], "small"),
    ([1, 2, 3], "small"),
    ([9, 1, 1], "large"),
    ([1, 1, 9], "large"),
    ([1, 13, 1], "small"),
    ([9, 13], "large"),
    ([*[1] * MOST, 9, *[1] * MOST], "large"),
)
def test_a_route_is_taken_by_the_results(numbers: list[int], way: str) -> None:
    assert ways(finished(Routed, numbers)) == {way}


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("numbers", [[9, 1, 1, 1], [1, 1, 1, 9]])
def test_results_that_share_a_commit_are_among_them(numbers: list[int]) -> None:
    process = launch(Routed, numbers)
    while drain(held=SharedClaims()):
        pass
    process.refresh_from_db()

    settled = process.step_runs.filter(node="double", item__isnull=False)
    assert len(set(settled.values_list("left", flat=True))) < len(numbers)
    assert ways(process) == {"large"}


@cases("numbers, taken", ([1], set()), ([2, 5], {"four"}), ([20, 2], {"four", "large"}))
def test_a_fork_takes_branches_by_results(numbers: list[int], taken: set[str]) -> None:
    assert ways(finished(Forked, numbers)) == taken


@cases("numbers, given, resumed", ([1, 14], 40, False), ([9, 1, 14], 1, True))
def test_the_way_is_the_same_when_a_person_gave_a_result_and_the_history_is_told_again(
    numbers: list[int], given: int, resumed: bool
) -> None:
    process = finished(Routed, numbers)
    if resumed:
        begun = process.step_runs.filter(node="double").earliest("pk").entered
        operated(resume, process, begun)
    operated(skip, process, process.step_runs.get(status="failed").pk, given)

    assert ways(process) == {"large"}
