"""The four ways to go on after a failure, each shown by what the steps have left in a ledger.

Transient error: tried again. Timeout: resumed from what the step saved. Corrupted data: that step alone is redone.
Everything killed: the workflow goes on from its last checkpoint.
"""

import os
import signal
from collections import Counter

import psutil
import pytest
from django.db import OperationalError
from django.utils import timezone

from orchestrator.engine.work import releasing
from orchestrator.models import (
    Checkpoint,
    Incident,
    ProcessInstance,
    Status,
    StepKind,
    StepRun,
    StepStatus,
)
from tests.apps.patterns import failing, lost
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import (
    complaint,
    finished,
    go_on,
    insist,
    launch,
    results,
    statuses,
    visit,
    visits,
)
from tests.apps.patterns.fixtures import Start, flows, press, said, start
from tests.apps.patterns.ledger import note, noted
from tests.services.operated import outcome
from tests.services.patience import wait_for

__all__ = ["flows", "press", "start"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows")]


def ended() -> bool:
    return not ProcessInstance.objects.live().exists()


# Transient error


@pytest.mark.django_db(transaction=True)
def test_a_pause_between_attempts_is_stored_and_keeps_nobody_busy(start: Start) -> None:
    waiting = [launch(failing.Unhurried, 1) for _ in range(4)]
    workers = start(1, BACKOFF_CAP_SECONDS=failing.DAY)
    # One may have a pause so short that it is over already.
    wait_for(lambda: retrying() >= 3, 10, lambda: said(workers))
    neighbour = launch(p.Chain, 1)
    wait_for(lambda: done(neighbour), 10, lambda: said(workers))

    assert retrying() >= 1  # the pauses go on while the worker did something else
    StepRun.objects.filter(status=StepStatus.RETRYING).update(wake_at=timezone.now())
    wait_for(ended, 10, lambda: said(workers))
    assert {visit(process, "unhurried").result for process in waiting} == {2}


def retrying() -> int:
    return StepRun.objects.filter(status=StepStatus.RETRYING, owner="").count()


def done(process: ProcessInstance) -> bool:
    process.refresh_from_db()
    return process.status == Status.COMPLETED


# Timeout


@pytest.mark.django_db(transaction=True)
def test_what_timed_out_goes_on_from_what_it_saved_or_is_told(start: Start) -> None:
    scanning, silent = launch(lost.Scanning), launch(lost.Silent)
    paying = launch(lost.Paying, "die")
    workers = start(1)
    wait_for(lambda: done(scanning), 25, lambda: said(workers))
    wait_for(lambda: Incident.objects.open().count() == 2, 25, lambda: said(workers))

    pages = [f"page {page}" for page in range(lost.PAGES)]
    once = (*pages, "attempt 1", "falls silent", "attempt 2", "paid")
    assert noted() == dict.fromkeys(once, 1)  # what was paid is not idempotent
    assert visit(scanning, "scan").attempt == 2
    assert "overran its time and is killed" in said(workers)
    assert complaint(silent).step == "fall_silent"
    late = "TimedOut: it ran longer than it may, or did not report in time, 2 times"
    assert complaint(silent).message == late
    assert not done(paying)
    assert paying.status == Status.FAILED
    message = complaint(paying).message
    assert message.startswith("Interrupted: the worker died in attempt 1")
    assert "Retry it, or skip it" in message


@pytest.mark.django_db(transaction=True)
def test_a_worker_whose_files_a_function_has_closed_ends_and_charges_nothing_else(
    start: Start,
) -> None:
    closing = launch(lost.Paying, "close")
    others = [launch(p.Chain, number) for number in range(20)]
    workers = start(1)
    wait_for(lambda: all(map(done, others)), 25, lambda: said(workers))
    wait_for(lambda: Incident.objects.open().exists(), 25, lambda: said(workers))

    assert "has closed the files of its worker, which ends" in said(workers)
    assert noted() == {"paid": 1}
    assert complaint(closing).message.startswith("Interrupted: the worker died")
    runs = StepRun.objects.exclude(instance=closing)
    assert {run.attempt for run in runs} == {1}


# Corrupted data


def corrupt(run: StepRun) -> None:
    """Change a stored result as no engine would."""
    StepRun.objects.filter(pk=run.pk).update(result=999)


def test_a_result_that_was_corrupted_is_redone_alone(press: str) -> None:
    process = finished(lost.Reading, 5)
    assert statuses(process) == {"weigh": "done", "hold": "ready"}
    go_on(process, press)
    corrupt(visit(process, "weigh"))

    assert outcome(process, "close") == ("completed", 10)
    assert noted() == {"weigh": 2, "pause": 1, "report": 1, "again": 1}
    rounds = [(run.round, run.result, run.redo) for run in visits(process, "weigh")]
    assert rounds == [(1, 999, False), (2, 5, True)]
    assert visit(process, "hold").round == 1
    assert not Incident.objects.exists()


def test_of_a_map_only_the_corrupted_elements_are_redone(press: str) -> None:
    process = finished(lost.Summing, [1, 2, 3])
    corrupt(process.step_runs.get(node="notice", item=1, kind=StepKind.ITEM))

    assert outcome(go_on(process, press), "sum_noticed") == ("completed", 6)
    assert noted() == {"notice 1": 1, "notice 2": 2, "notice 3": 1}


def test_a_corrupted_result_of_a_sub_process_is_fetched_again(press: str) -> None:
    process = finished(lost.Delegating, [1, 2])
    corrupt(visit(process, "delegate"))

    assert outcome(go_on(process, press), "after_hold") == ("completed", 5)
    assert len(visits(process, "hold_delegate")) == 1


# Everything killed


@pytest.mark.django_db(transaction=True)
def test_after_all_was_killed_it_goes_on_from_its_checkpoint(start: Start) -> None:
    process = launch(lost.Journey, 1)
    workers = start(2)
    wait_for(lambda: noted().total() >= 6, 15, lambda: said(workers))
    children = [psutil.Process(pid) for pid in workers.pids]
    workers.kill()
    psutil.wait_procs(children, timeout=60)
    before = finished_steps(process)
    revision = Checkpoint.objects.filter(instance=process).count()
    assert not ended()
    assert before

    note("go on")
    workers = start(2)
    wait_for(ended, 20, lambda: said(workers))

    calls = noted() - Counter({"go on": 1})
    assert {name: calls[name] for name in before} == dict.fromkeys(before, 1)
    assert results(ProcessInstance.objects.get())["finish"] == 12
    assert Checkpoint.objects.filter(instance=process).count() > revision
    assert max(calls.values()) <= 2  # a result that its worker still held is lost, once


def finished_steps(process: ProcessInstance) -> set[str]:
    """Return how the finished steps call themselves in the ledger."""
    runs = process.step_runs.filter(status=StepStatus.DONE).exclude(node="spread")
    return {run.node if run.item is None else f"element {run.element}" for run in runs}


# Steps that must not run twice


def test_a_step_that_the_database_refused_is_tried_again_at_no_charge() -> None:
    assert results(finished(lost.Refused))["be_refused"] == "attempt 1"
    assert noted() == {"refused": 3}


@pytest.mark.parametrize("where", ["step", "predicate"])
def test_an_attempt_that_is_always_refused_counts_in_the_end(where: str) -> None:
    process = insist(launch(lost.Locked, where), 20)

    step_calls = 2 + releasing.FREE_OF_APPLICATION if where == "step" else 1
    assert noted() == {"locked": step_calls}
    run = visit(process, "be_locked")
    assert (process.status, run.status, run.attempt) == ("failed", "failed", 2)
    condition = "is_locked: " if where == "predicate" else ""
    said = f"OperationalError: {condition}database is locked"
    assert complaint(process).message == said


@pytest.fixture
def no_failure_stored(monkeypatch: pytest.MonkeyPatch) -> list[StepRun]:
    """Let the database refuse to store that a step has failed; return what it has refused."""
    refused: list[StepRun] = []

    def refuse(run: StepRun, *args: object) -> None:
        refused.append(run)
        raise OperationalError("database is locked")

    work = "orchestrator.engine.work"
    monkeypatch.setattr(f"{work}.keeping.KEEP_SECONDS", 0.0)
    monkeypatch.setattr(f"{work}.step_failures.settle_failure", refuse)
    return refused


def test_a_failure_nobody_can_store_is_told_in_the_end(
    no_failure_stored: list[StepRun],
) -> None:
    process = insist(launch(failing.Saying, "permanent by raising"))

    run = visit(process, "say")
    assert (process.status, run.status, run.attempt) == ("failed", "failed", 1)
    incident = complaint(process)
    assert incident.message == "OperationalError: database is locked"
    assert "Permanent: never" in incident.detail
    assert len(no_failure_stored) == 1 + releasing.FREE


@pytest.mark.parametrize("stored", [True, False])
def test_a_step_that_must_not_run_twice_is_not_when_the_database_refused(
    stored: bool, request: pytest.FixtureRequest
) -> None:
    if not stored:
        request.getfixturevalue("no_failure_stored")
    process = insist(launch(lost.RefusedOnce))

    assert (process.status, noted()) == ("failed", {"refused": 1})
    incident = complaint(process)
    said = "Interrupted: the database refused in attempt 1"
    assert said in incident.detail
    if stored:
        assert incident.message.startswith(f"{said} (database is locked)")


@pytest.mark.django_db(transaction=True)
def test_what_a_killed_worker_had_only_claimed_is_not_suspected(start: Start) -> None:
    hanging = launch(lost.Paying, "hang")
    claimed = [launch(lost.Paying) for _ in range(5)]
    workers = start(1)
    wait_for(lambda: noted().total() == 1, 10, lambda: said(workers))
    [pid] = workers.pids
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: all(map(done, claimed)), 15, lambda: said(workers))
    wait_for(lambda: Incident.objects.open().exists(), 10, lambda: said(workers))

    assert noted() == {"paid": 6}
    assert {visit(process, "pay").attempt for process in claimed} == {1}
    assert complaint(hanging).message.startswith("Interrupted: ")
