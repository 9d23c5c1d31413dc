"""What a worker decides by what it knows of a process: for that it asks the database nothing."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator.definition import Workflow, case, each, route, start, step, undo
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.sql import group_commit
from orchestrator.engine.sql.batch import Clock
from orchestrator.engine.steps.attempts import hold_back, policy_of
from orchestrator.engine.steps.known_process import HeldResult
from orchestrator.engine.steps.quick_results import QuickResults, commit_results
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage.results import result_columns
from orchestrator.engine.work.worker_slice import (
    UNSEEN,
    HeldWork,
    UnstoredResult,
    WorkerSlice,
)
from orchestrator.models import (
    Definition,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from tests.services.crews import knowing
from tests.services.supervised import quick

__all__ = ["quick"]

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def pick() -> int:
    return 1


def weigh() -> int:
    return 2


def put_back(pick: int) -> None:
    """Undoes the pick."""


def is_heavy(pick: int) -> bool:
    return pick > 1


def parcels() -> list[int]:
    return [1, 2]


def pack(item: int) -> int:
    return item


def count(pack: list[int]) -> int:
    return len(pack)


class Single(Workflow):
    """One step."""

    flow = (step(pick),)


class Beside(Workflow):
    """Two steps, one beside the other."""

    flow = (start(pick, weigh),)


class Judged(Workflow):
    """A condition decides what follows the step."""

    flow = (start(pick), route(pick, case(is_heavy, to=weigh), otherwise=parcels))


class Undone(Workflow):
    """A step and its undo are tried differently often."""

    flow = (step(pick, retries=7), undo(pick, by=step(put_back, retries=2)))


class Strict(Workflow):
    """A map in which no element may fail."""

    flow = (each(parcels, over="", do=pack, into=count),)


class Tolerant(Workflow):
    """A map in which one element may fail."""

    flow = (each(parcels, over="", do=pack, into=count, tolerate=1),)


declared = knowing(Single, Beside, Judged, Undone, Strict, Tolerant)


def known(
    definition: type[Workflow], shown: HeldWork = UNSEEN, **columns: Any
) -> Session:
    """Return what a worker knows of a process that has just begun."""
    assert definition.static is not None
    kind = Definition.Kind.WORKFLOW
    row = Definition(name=definition.name, version=definition.version, kind=kind)
    live: dict[str, Any] = {"status": Status.RUNNING, "revision": 1, "open_steps": 1}
    process = ProcessInstance(
        name=definition.name, definition=row, **{**live, **columns}
    )
    here = WorkerSlice("default", "A", held=shown)
    return Session(process, definition.static, here, Clock(NOW), QuickResults(shown))


def claimed(node: str, kind: StepKind = StepKind.STEP, **columns: Any) -> StepRun:
    """Return a visit at its first attempt."""
    begun: dict[str, Any] = {"pk": 1, "attempt": 1, "status": StepStatus.RUNNING}
    return StepRun(node=node, kind=kind, queue="default", **{**begun, **columns})


# Going on


def test_a_worker_goes_on_with_a_process_that_it_knows() -> None:
    assert known(Single).goes_on


def test_a_worker_reads_a_process_anew_that_it_has_forgotten() -> None:
    session = known(Single)
    session.forget()

    assert not session.goes_on


@pytest.mark.parametrize("column", ["finished_at", "paused_at"])
def test_a_worker_goes_on_with_no_process_that_has_ended_or_paused(column: str) -> None:
    over: dict[str, Any] = {column: NOW}
    assert not known(Single, **over).goes_on


def test_a_change_without_a_lock_needs_the_process_as_it_was_known() -> None:
    session, run = known(Single, revision=5, parked=2), claimed("pick")
    fence = {"id": session.instance.pk, "revision": 5}

    assert session.change_alone(run).fence_columns() == {**fence, "parked": 2}
    assert session.change(run, NOW).fence_columns() == fence


# Policies


def test_a_visit_runs_by_the_policy_of_its_step_and_an_undo_by_its_own() -> None:
    assert Undone.static is not None
    vertex = Undone.static["pick"]

    assert policy_of(claimed("pick"), vertex).retries == 7
    assert policy_of(claimed("pick", StepKind.UNDO), vertex).retries == 2


def test_a_visit_whose_step_is_gone_runs_by_the_usual_policy() -> None:
    assert policy_of(claimed("gone"), None) == Policy()


# Held maps


@pytest.mark.parametrize(
    ("definition", "status", "run"),
    [
        (Strict, Status.FAILED, claimed("pack", StepKind.ITEM)),
        (Tolerant, Status.FAILED, claimed("pack", StepKind.UNDO)),
        (Tolerant, Status.FAILED, claimed("pack", StepKind.ITEM, attempt=2)),
        (Tolerant, Status.RUNNING, claimed("pack", StepKind.ITEM)),
    ],
)
def test_nothing_but_the_unbegun_elements_of_a_tolerant_map_asks_whether_it_is_held(
    definition: type[Workflow], status: Status, run: StepRun
) -> None:
    assert definition.static is not None
    process = ProcessInstance(status=status)

    assert not hold_back(process, run, definition.static["pack"])


# Held results


@pytest.mark.parametrize(
    ("definition", "held"), [(Single, True), (Beside, True), (Judged, False)]
)
def test_a_result_is_held_where_no_condition_decides_what_follows(
    definition: type[Workflow], held: bool
) -> None:
    session = known(definition)
    vertex = session.plan["pick"]

    assert session.may_be_held(claimed("pick"), vertex, Policy()) is held


class Shown(HeldWork):
    """What a supervisor sees, in its order."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def show_calling(self) -> None:
        self.seen.append("calling")

    def show_result(self, result: UnstoredResult) -> bool:
        self.seen.append(f"result of {result.key}")
        return True


def test_a_supervisor_sees_a_call_that_begins_while_a_result_is_held(
    quick: None,
) -> None:
    shown = Shown()
    session = known(Beside, shown, open_steps=2)
    for pk, node in enumerate(("pick", "weigh"), 1):
        session.run(claimed(node, pk=pk))

    assert shown.seen == ["result of 1", "calling", "result of 2"]


@pytest.mark.django_db
def test_results_of_several_processes_are_written_together(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    together = list[int]()

    def commit(changes: Sequence[object]) -> group_commit.GroupCommit:
        together.append(len(changes))
        return group_commit.GroupCommit([False] * len(changes))

    monkeypatch.setattr(group_commit, "commit_changes", commit)
    run = claimed("pick")
    given = result_columns(run, int, 1)
    commit_results([HeldResult(known(Single), run, 1, given) for _ in range(3)], 1, [])

    assert together == [3]
