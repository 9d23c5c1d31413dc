"""Joins whose branches are stored together: made and started in one change."""

import pytest
from django.db import connection

from orchestrator.engine.change import change as changes
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import joins
from orchestrator.engine.steps.quick_results import ROOM
from orchestrator.models import ProcessInstance, Status, StepStatus
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import launch
from tests.apps.patterns.fixtures import flows
from tests.services.database import analyze
from tests.services.doing import fresh
from tests.services.explained import explained
from tests.services.supervised import Supervised, unhurried

__all__ = ["flows", "unhurried"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("flows")]


Told = list[tuple[str, StepStatus]]


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Told:
    """What live pages are told of steps."""
    found: Told = []

    def listen(
        process: ProcessInstance, steps: dict[str, StepStatus], edge: str
    ) -> None:
        found.extend(steps.items())
        announce(process, steps, edge)

    monkeypatch.setattr(changes, "announce", listen)
    return found


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The queues whose bells are rung for what a change has made due."""
    found: list[str] = []
    monkeypatch.setattr(
        changes, "wake_queue_after_commit", lambda queue, **_: found.append(queue)
    )
    return found


def run(process: ProcessInstance) -> ProcessInstance:
    """Run a process of quick steps, whose results share their commits."""
    drain(held=Supervised().shown)
    assert fresh(process).status == Status.COMPLETED
    return process


def test_what_is_told_of_a_join_that_is_made_and_started_at_once_is_that_it_runs(
    told: Told, unhurried: None
) -> None:
    run(launch(p.Layered, 3, draining.FEW))

    assert [how for node, how in told if node == "s1_0"] == [
        StepStatus.RUNNING,
        StepStatus.DONE,
    ]


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(("more", "bells"), [(0, []), (10, ["default"])])
def test_others_are_told_of_joins_that_their_worker_does_not_go_on_with(
    monkeypatch: pytest.MonkeyPatch, rung: list[str], more: int, bells: list[str]
) -> None:
    monkeypatch.setattr(draining, "FEW", ROOM + more)
    process = launch(p.Layered, 2, ROOM + more)
    rung.clear()
    run(process)

    assert rung == bells


def test_joins_are_looked_up_and_other_steps_of_their_process_are_not_read() -> None:
    processes = [run(launch(p.Layered, 20, 8)) for _ in range(3)]
    analyze()
    with explained() as plans:
        found = joins.of(processes[0].pk, ["s1_0", "s1_1", "s1_2"])

    assert sorted(found) == ["s1_0", "s1_1", "s1_2"]
    (plan,) = plans
    assert "one_run_per_visit" in plan
    named = "node)::text = ANY" if connection.vendor == "postgresql" else "node=?"
    lines = [line for line in plan.splitlines() if "Recheck" not in line]
    (condition,) = [line for line in lines if named in line]
    assert "instance_id" in condition
