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

from orchestrator.engine.claims import give_back
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
from tests.services.patience import wait_for

__all__ = ["flows", "press", "start"]

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("flows"),
]


def ended() -> bool:
    return not ProcessInstance.objects.live().exists()


# Transient error


@pytest.mark.django_db(transaction=True)
def test_a_pause_between_attempts_is_stored_and_keeps_no_worker_busy(
    start: Start,
) -> None:
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
def test_a_step_that_ran_out_of_time_goes_on_from_what_it_saved_or_people_are_told(
    start: Start,
) -> None:
    scanning, silent = launch(lost.Scanning), launch(lost.Silent)
    paying = launch(lost.Paying, "die")
    workers = start(1)
    wait_for(lambda: done(scanning), 25, lambda: said(workers))
    wait_for(lambda: Incident.objects.open().count() == 2, 25, lambda: said(workers))

    assert noted() == {
        **{f"page {page}": 1 for page in range(lost.PAGES)},
        "attempt 1": 1,
        "falls silent": 1,
        "attempt 2": 1,
        "paid": 1,  # it is not idempotent
    }
    assert visit(scanning, "scan").attempt == 2
    assert "overran its time and is killed" in said(workers)
    assert complaint(silent).step == "fall_silent"
    assert complaint(silent).message == (
        "TimedOut: it ran longer than it may, or did not report in time, 2 times"
    )
    paying.refresh_from_db()
    assert paying.status == Status.FAILED
    message = complaint(paying).message
    assert message.startswith("Interrupted: the worker died in attempt 1")
    assert "Retry it, or skip it" in message


# Corrupted data


def corrupt(run: StepRun) -> None:
    """Change a stored result as no engine would."""
    StepRun.objects.filter(pk=run.pk).update(result=999)


def test_a_result_that_was_corrupted_is_redone_alone(press: str) -> None:
    process = finished(lost.Reading, 5)
    assert statuses(process) == {"weigh": "done", "hold": "ready"}
    process = go_on(process, press)
    process.refresh_from_db()
    corrupt(visit(process, "weigh"))

    process = go_on(process)

    assert process.status == Status.COMPLETED
    assert noted() == {"weigh": 2, "pause": 1, "report": 1, "again": 1}
    assert results(process)["close"] == 10
    first, second = visits(process, "weigh")
    assert (first.round, first.result) == (1, 999)
    assert (second.round, second.result, second.redo) == (2, 5, True)
    assert visit(process, "hold").round == 1
    assert not Incident.objects.exists()


def test_of_a_map_only_the_corrupted_elements_are_redone(press: str) -> None:
    process = finished(lost.Summing, [1, 2, 3])
    item = process.step_runs.get(node="notice", item=1, kind=StepKind.ITEM)
    corrupt(item)

    process = go_on(go_on(process, press))

    assert process.status == Status.COMPLETED
    assert noted() == {"notice 1": 1, "notice 2": 2, "notice 3": 1}
    assert results(process)["sum_noticed"] == 6


def test_the_result_of_a_sub_process_that_was_corrupted_is_fetched_again(
    press: str,
) -> None:
    process = finished(lost.Delegating, [1, 2])
    corrupt(visit(process, "delegate"))

    process = go_on(go_on(process, press))

    assert process.status == Status.COMPLETED
    assert results(process)["after_hold"] == 5
    assert len(visits(process, "hold_delegate")) == 1


# Everything killed


@pytest.mark.django_db(transaction=True)
def test_after_everything_was_killed_the_workflow_goes_on_from_its_last_checkpoint(
    start: Start,
) -> None:
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
    assert calls.total() <= 3 + 12 + 1 + 2


def finished_steps(process: ProcessInstance) -> set[str]:
    """Return how the finished steps call themselves in the ledger."""
    runs = process.step_runs.filter(status=StepStatus.DONE).exclude(node="spread")
    return {run.node if run.item is None else f"element {run.element}" for run in runs}


# Steps that must not run twice


def test_a_step_that_the_database_refused_is_tried_again_at_no_charge() -> None:
    process = go_on(launch(lost.Refused))

    assert results(process)["be_refused"] == "attempt 1"
    assert noted() == {"refused": 3}


@pytest.mark.parametrize("where", ["step", "predicate"])
def test_an_attempt_that_is_always_refused_counts_in_the_end(where: str) -> None:
    process = insist(launch(lost.Locked, where), 20)

    assert noted() == {"locked": 2 * (give_back.FREE + 1)}
    run = visit(process, "be_locked")
    assert (process.status, run.status, run.attempt) == ("failed", "failed", 2)
    assert complaint(process).message == "OperationalError: database is locked"


def test_a_failure_that_cannot_be_stored_is_told_in_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("orchestrator.engine.failures.of_step._settle", refuse)
    process = insist(launch(failing.Saying, "permanent by raising"))

    run = visit(process, "say")
    assert (process.status, run.status, run.attempt) == ("failed", "failed", 1)
    incident = complaint(process)
    assert incident.message == "OperationalError: database is locked"
    assert "Permanent: never" in incident.detail


def test_a_failure_that_cannot_be_stored_runs_no_step_twice_that_must_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*args: object) -> None:
        raise OperationalError("database is locked")

    monkeypatch.setattr("orchestrator.engine.failures.of_step._settle", refuse)
    process = insist(launch(lost.RefusedOnce))

    assert noted() == {"refused": 1}
    assert process.status == Status.FAILED
    assert "Interrupted: the database refused in attempt 1" in complaint(process).detail


def test_a_step_that_must_not_run_twice_is_not_when_the_database_refused() -> None:
    process = go_on(launch(lost.RefusedOnce))

    assert noted() == {"refused": 1}
    assert complaint(process).message.startswith(
        "Interrupted: the database refused in attempt 1 (database is locked)"
    )


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
