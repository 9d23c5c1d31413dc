"""Quick steps of one process that a worker has claimed together share a commit; each still stands for itself."""

import time
from collections.abc import Iterator

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from orchestrator import start_process
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel
from orchestrator.engine.steps.quick_results import ROOM
from orchestrator.engine.steps.runner import StepRunner
from orchestrator.engine.work.worker_slice import TAKE_SECONDS, HeldWork
from orchestrator.models import ProcessInstance, Status, StepRun, StepStatus
from orchestrator.signals import Change, committed
from tests.apps.patterns.desk import insist, launch
from tests.apps.wide_graphs.processes import (
    ACTIONS,
    WORKFLOWS,
    Beside,
    Breadth,
    Dense,
    Mesh,
    Names,
    Narrow,
    Short,
    Tree,
    done,
)
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.noting import noting
from tests.services.supervised import Supervised, unhurried

__all__ = ["unhurried"]

pytestmark = pytest.mark.django_db(transaction=True)

NAMES = ("a", "b", "c", "d")


known = knowing(*WORKFLOWS)


@pytest.fixture(autouse=True)
def noted(unhurried: None) -> Iterator[None]:
    """Begin with nothing done, on a worker that is not in a hurry."""
    done.clear()
    yield
    ACTIONS.clear()


@pytest.fixture
def worker() -> Supervised:
    return Supervised()


def beside(*names: str) -> ProcessInstance:
    return launch(Beside, names)


def visits(process: ProcessInstance) -> dict[str, StepRun]:
    process.refresh_from_db()
    return {run.node: run for run in process.step_runs.all()}


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite is at hand")
def test_a_start_outside_of_a_transaction_writes_by_one_statement_that_is_its_own_transaction() -> (
    None
):
    beside("a", "b")
    with CaptureQueriesContext(connection) as queries:
        start_process(Beside, Names(("a", "b")))

    said = [query["sql"] or "" for query in queries]
    assert ("BEGIN" in said, sum("INSERT" in sql for sql in said)) == (False, 1)
    with transaction.atomic():
        start_process(Beside, Names(("a", "b")))
        transaction.set_rollback(True)
    assert ProcessInstance.objects.count() == 2


def test_steps_that_were_claimed_together_share_a_commit(worker: Supervised) -> None:
    process = beside(*NAMES)
    worker.drain("default")

    found = visits(process)
    assert {found[name].left for name in NAMES} == {2}
    assert {found[name].result for name in NAMES} == set(NAMES)
    assert (found["last"].arrived, found["last"].entered) == (4, 2)
    assert (process.status, process.revision) == (Status.COMPLETED, 3)
    causes = process.checkpoints.values_list("revision", "edge")
    assert dict(causes)[2].count(",") == 3


def test_without_a_supervisor_each_is_stored_before_the_next_begins() -> None:
    process = beside(*NAMES)
    seen: list[list[str]] = []
    ACTIONS["d"] = lambda: seen.append([visits(process)[name].status for name in NAMES])
    drain(held=HeldWork())

    assert seen == [["done", "done", "done", "running"]]
    assert visits(process)["last"].status == StepStatus.DONE


@pytest.mark.parametrize("layers", [5, 20])
def test_a_step_of_a_dense_graph_asks_little(worker: Supervised, layers: int) -> None:
    start_process(Dense, Mesh(16, layers))
    with CaptureQueriesContext(connection) as queries:
        worker.drain("default")

    process = ProcessInstance.objects.get()
    assert process.status == Status.COMPLETED
    assert process.revision < 16 * layers / 4
    if connection.vendor == "postgresql":
        assert len(queries) < 1.5 * 16 * layers


def claims(worker: Supervised) -> int:
    """Let it run what is ready, and tell how often it claimed."""
    with noting() as found:
        worker.drain("default")
    return sum("attempt + 1" in sql for sql, _ in found)


def test_a_worker_goes_on_with_what_follows_quick_steps(worker: Supervised) -> None:
    start_process(Dense, Mesh(6, 10))
    # The first layer is more than is claimed at first.
    assert claims(worker) <= 3
    assert ProcessInstance.objects.get().status == Status.COMPLETED


def test_it_knows_the_visits_it_goes_on_with_though_new(worker: Supervised) -> None:
    start_process(Tree, Breadth(6))
    assert claims(worker) <= 5
    process = ProcessInstance.objects.get()
    assert process.status == Status.COMPLETED
    found = visits(process)
    assert len(found) == 6 + 36
    assert {(run.attempt, run.status) for run in found.values()} == {(1, "done")}
    entered = {name: run.entered for name, run in found.items()}
    assert all(
        entered[f"t{n}_{m}"] == found[f"t{n}"].left for n in range(6) for m in range(6)
    )


def test_it_goes_on_with_no_more_than_it_can_show(
    worker: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is taken up while others of the same claim still run counts too."""
    taken: list[int] = []

    def take(runner: StepRunner) -> list[StepRun]:
        taken.append(len(runner.following))
        return original(runner)

    original = StepRunner.take
    monkeypatch.setattr(StepRunner, "take", take)
    monkeypatch.setattr("orchestrator.engine.work.worker_slice.MOST", 2)
    start_process(Tree, Breadth(12))
    worker.drain("default")

    assert ProcessInstance.objects.get().status == Status.COMPLETED
    assert 8 < max(taken) <= ROOM + 4


def test_after_a_while_it_looks_for_what_else_is_due(
    worker: Supervised, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "GO_ON_SECONDS", 0)
    start_process(Dense, Mesh(4, 10))
    assert claims(worker) >= 10
    assert ProcessInstance.objects.get().status == Status.COMPLETED


def test_a_step_that_fails_holds_nobody_back(worker: Supervised) -> None:
    def fail() -> None:
        if done.count("b") == 1:
            raise ConnectionError("once")

    process = beside(*NAMES)
    ACTIONS["b"] = fail
    worker.drain("default")
    insist(process, 1)

    found = visits(process)
    assert process.status == Status.COMPLETED
    assert found["b"].attempt == 2
    assert len({found[name].left for name in NAMES}) == 2
    assert sorted(done) == sorted([*NAMES, "b"])


def test_one_that_its_worker_has_lost_leaves_others_alone(worker: Supervised) -> None:
    process = beside(*NAMES)
    another = {"owner": "another worker", "attempt": 2}
    ACTIONS["d"] = lambda: process.step_runs.filter(node="a").update(**another)
    worker.drain("default")

    found = visits(process)
    assert (found["a"].status, found["a"].owner) == ("running", "another worker")
    assert [found[name].status for name in NAMES[1:]] == ["done"] * 3
    assert (found["last"].kind, found["last"].arrived) == ("join", 3)
    process.step_runs.filter(node="a").update(owner=worker.owner)
    drain(owner="another")


def test_one_after_which_the_application_decides_goes_alone(worker: Supervised) -> None:
    process = beside("a", "choose_b", "choose_c", "d")
    worker.drain("default")

    found = visits(process)
    assert process.status == Status.COMPLETED
    assert found["a"].left == found["d"].left
    assert len({found[name].left for name in ("a", "choose_b", "choose_c")}) == 3


def test_results_that_are_held_while_another_step_runs_are_stored_by_others(
    worker: Supervised, unhurried: None
) -> None:
    process = beside(*NAMES)
    seen: list[list[tuple[str, object]]] = []

    def look() -> None:
        time.sleep(TAKE_SECONDS)
        worker.others.look()
        found = visits(process)
        seen.append([(found[name].status, found[name].result) for name in NAMES])

    ACTIONS["d"] = look
    worker.drain("default")

    stored = [("ready", "a"), ("ready", "b"), ("ready", "c")]
    assert seen == [[*stored, ("running", None)]]
    found = visits(process)
    assert (process.status, found["last"].status) == (Status.COMPLETED, "done")
    assert (done, {run.attempt for run in found.values()}) == (list(NAMES), {1})


def test_a_process_that_was_cancelled_meanwhile_takes_none(worker: Supervised) -> None:
    process = beside(*NAMES)
    ACTIONS["d"] = lambda: cancel(process.pk, request=asked())
    worker.drain("default")

    assert {visits(process)[name].result for name in NAMES} == {None}
    assert process.status == Status.CANCELLED


@pytest.fixture
def refusing() -> Iterator[None]:
    """Have the database refuse that the process with the key "refused" completes."""
    rule = "CHECK (correlation_key <> 'refused' OR status <> 'completed')"
    with connection.cursor() as cursor:
        table = f"ALTER TABLE {ProcessInstance._meta.db_table}"
        cursor.execute(f"{table} ADD CONSTRAINT refusing {rule}")
        yield
        cursor.execute(f"{table} DROP CONSTRAINT refusing")


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite adds no rules")
@pytest.mark.usefixtures("refusing")
def test_what_is_refused_of_one_holds_up_no_other_process(worker: Supervised) -> None:
    """Those that have steps to go were written before, and what follows is in the worker's hands."""
    narrow = [start_process(Narrow).process_id for _ in range(2)]
    refused = start_process(Short, correlation_key="refused").process_id
    short = start_process(Short).process_id
    worker.drain("default")

    processes = ProcessInstance.objects.in_bulk([*narrow, refused, short])
    assert {processes[pk].status for pk in (*narrow, short)} == {Status.COMPLETED}
    visits = StepRun.objects.filter(instance__in=[*narrow, short])
    assert set(visits.values_list("attempt", "error")) <= {(0, ""), (1, "")}
    assert processes[refused].status != Status.COMPLETED
    cancel(refused, request=asked())


def test_a_receiver_that_exits_is_still_told_of_the_other_processes_of_a_commit(
    worker: Supervised,
) -> None:
    started = [start_process(Narrow).process_id for _ in range(4)]
    told: list[object] = []

    def leave(change: Change, **_: object) -> None:
        if change.status == Status.COMPLETED:
            told.append(change.process_id)
            raise SystemExit(2)

    committed.connect(leave)
    try:
        worker.drain("default")
    finally:
        committed.disconnect(leave)

    assert sorted(map(str, told)) == sorted(map(str, started))
