"""Joins and maps are counted right where one change does several things, or where a branch comes too late."""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.engine import operations
from orchestrator.engine.drain import drain
from orchestrator.engine.invariants import violations
from orchestrator.models import ProcessInstance, StepRun
from tests.apps.random_graphs import journeys
from tests.apps.random_graphs.steps import LEDGER
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db(transaction=True)

CORNERS: tuple[type[Workflow], ...] = (
    journeys.EmptyBeside,
    journeys.FailFast,
    journeys.GivenUp,
    journeys.Journey,
    journeys.Errand,
)


known = knowing(*CORNERS)


@pytest.fixture(autouse=True)
def all_is_well(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv(LEDGER, raising=False)
    yield
    journeys.FAILING.clear()


def far(definition: type[Workflow]) -> ProcessInstance:
    receipt = start_process(definition, definition.Input())
    drain()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def run(process: ProcessInstance, node: str) -> StepRun:
    return process.step_runs.filter(node=node, item=None).order_by("pk").last()  # type: ignore[return-value]


def act(administrator: User, action: str, process: ProcessInstance, *more: Any) -> None:
    """Do what an operator does, and run what follows."""
    request = operations.ActionRequest(
        key=uuid4(), actor=administrator, reason="a test"
    )
    getattr(operations, action)(process.pk, *more, request=request)
    drain()
    process.refresh_from_db()


def test_a_map_without_elements_beside_another_is_counted_once() -> None:
    process = far(journeys.EmptyBeside)

    assert process.status == "completed"
    assert run(process, "both").result == 2
    assert (run(process, "both").arrived, run(process, "both").taken) == (3, 2)


def test_maps_of_several_processes_are_not_mixed() -> None:
    processes = [
        start_process(journeys.Journey, journeys.Journey.Input()) for _ in range(12)
    ]
    drain()

    waiting = ProcessInstance.objects.filter(step="stay", status="waiting")
    assert waiting.count() == len(processes)


def test_a_branch_that_arrives_while_others_are_given_up_counts_after_the_retry(
    administrator: User,
) -> None:
    journeys.FAILING.add("may_fail")
    process = far(journeys.FailFast)
    assert process.status == "failed"

    act(administrator, "decide", process, run(process, "wait_here").pk, "longer")
    assert violations() == []
    journeys.FAILING.clear()
    act(administrator, "retry", process)

    assert process.status == "completed"
    assert run(process, "inner").status == "done"


def test_a_branch_that_arrives_at_a_join_that_was_given_up_does_not_start_it(
    administrator: User,
) -> None:
    process = far(journeys.GivenUp)
    assert run(process, "home").status == "done"

    act(administrator, "decide", process, run(process, "wait_here").pk, "longer")

    assert process.status == "completed"
    assert run(process, "inner").status == "not_taken"


def test_what_people_do_is_not_taken_for_a_fault(administrator: User) -> None:
    process = far(journeys.Journey)
    act(administrator, "redo", process, "ride")
    assert violations() == []

    act(administrator, "resume", process, run(process, "ride").left)
    assert process.status == "waiting"
    assert violations() == []

    act(administrator, "skip", process, run(process, "stay").pk, "longer")
    assert process.status == "completed"
