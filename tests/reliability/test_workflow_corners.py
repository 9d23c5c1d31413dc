"""Joins and maps are counted right where one change does several things, or where a branch comes too late."""

from collections.abc import Iterator

import pytest

from orchestrator.engine import operations
from orchestrator.engine.invariants import violations
from orchestrator.models import ProcessInstance, StepRun
from tests.apps.patterns.desk import finished, go_on, launch
from tests.apps.random_graphs import journeys
from tests.apps.random_graphs.steps import LEDGER
from tests.services.crews import knowing
from tests.services.declared import declared
from tests.services.operated import decided, operated

pytestmark = pytest.mark.django_db
known = knowing(*declared(vars(journeys)))


@pytest.fixture(autouse=True)
def all_is_well(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(LEDGER, raising=False)
    yield
    journeys.FAILING.clear()


def run(process: ProcessInstance, node: str) -> StepRun:
    return process.step_runs.filter(node=node, item=None).order_by("pk").last()  # type: ignore[return-value]


def test_a_map_without_elements_beside_another_is_counted_once() -> None:
    process = finished(journeys.EmptyBeside)

    assert process.status == "completed"
    both = run(process, "both")
    assert (both.result, both.arrived, both.taken) == (2, 3, 2)


def test_maps_of_several_processes_are_not_mixed() -> None:
    processes = [launch(journeys.Journey) for _ in range(12)]

    ends = {(go_on(process).step, process.status) for process in processes}
    assert ends == {("stay", "waiting")}


def test_a_branch_that_comes_while_others_are_given_up_counts_after_a_retry() -> None:
    journeys.FAILING.add("may_fail")
    process = finished(journeys.FailFast)
    assert process.status == "failed"

    decided(process, "wait_here", "longer")
    assert violations() == []
    journeys.FAILING.clear()
    operated(operations.retry, process)

    assert process.status == "completed"
    assert run(process, "inner").status == "done"


def test_a_branch_that_arrives_at_a_join_that_was_given_up_does_not_start_it() -> None:
    process = finished(journeys.GivenUp)
    assert run(process, "home").status == "done"

    decided(process, "wait_here", "longer")

    assert process.status == "completed"
    assert run(process, "inner").status == "not_taken"


def test_what_people_do_is_not_taken_for_a_fault() -> None:
    process = finished(journeys.Journey)
    operated(operations.redo, process, "ride")
    assert violations() == []

    operated(operations.resume, process, run(process, "ride").left)
    assert process.status == "waiting"
    assert violations() == []

    operated(operations.skip, process, run(process, "stay").pk, "longer")
    assert process.status == "completed"
