"""Workers, supervisors and whole hosts that stand still: others do their work, and who only is slow is left alone."""

import os
import signal
from contextlib import suppress
from functools import partial

import psutil
import pytest
from django.db import transaction

from orchestrator import start_process
from orchestrator.models import StepRun, Worker
from tests.apps.watched.fixtures import Begin, all_done, begin, has_begun, said, watched
from tests.apps.watched.processes import Watched, WatchedInside
from tests.apps.watched.steps import Work, begun, open_gate
from tests.services.burners import burners
from tests.services.patience import bar, quickest, wait_for
from tests.services.sizes import first_of, size
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

__all__ = ["begin", "watched"]


LEASE = 3.0  # seconds
QUICK = {"LEASE_SECONDS": LEASE, "HEARTBEAT_SECONDS": 0.5, "SWEEP_SECONDS": 0.2}
RECOVERY = LEASE + 3


def stop(*pids: int) -> None:
    """Let processes stand still."""
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)


def go_on(*pids: int) -> None:
    """Let them go on, but for those that a supervisor which goes on before them has replaced."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


# Workers


class Freeze:
    """Lets a worker stand still in the middle of a step, and waits until the step has been done after all."""

    def __init__(self, workflow: type[Watched | WatchedInside], workers: Workers):
        self.workflow, self.workers = workflow, workers
        self.pids: list[int] = []

    def __call__(self) -> None:
        name = f"frozen {len(self.pids)}"
        start_process(self.workflow, Work(name, "sleep", 600))
        wait_for(partial(has_begun, name), 10, self.said)
        [pid] = begun(name)
        stop(pid)
        self.pids.append(pid)
        wait_for(all_done, RECOVERY, self.said)

    def said(self) -> str:
        return said(self.workers)


@pytest.mark.parametrize("workflow", first_of([WatchedInside, Watched]))
def test_a_worker_that_stands_still_is_killed_and_its_work_taken_over(
    begin: Begin, workflow: type[Watched | WatchedInside]
) -> None:
    freeze = Freeze(workflow, begin(2, **QUICK))

    most = bar(RECOVERY)
    assert quickest(freeze, most) < most
    wait_for(lambda: not any(map(psutil.pid_exists, freeze.pids)), LEASE)
    assert set(StepRun.objects.values_list("attempt", flat=True)) == {2}


@pytest.mark.once
@pytest.mark.crowds
@pytest.mark.full_size("beside 40 that burn", seconds=90)
def test_a_worker_that_sleeps_computes_or_waits_for_a_processor_is_left_alone(
    begin: Begin,
) -> None:
    """One sleeps, and one holds the interpreter in a call of C, both for longer than a lease, among many that burn."""
    workers = begin(2, **QUICK)
    before, log = set(workers.pids), workers.supervisor.log
    logged = len(log.read_text())
    with burners(size(3, full=40), seconds=30):
        for how in ("sleep", "hold"):
            start_process(Watched, Work(how, how, LEASE + 0.5))
            wait_for(partial(has_begun, how), 20, lambda: said(workers))
        wait_for(all_done, 30, lambda: said(workers))

    assert "is killed" not in log.read_text()[logged:]
    assert set(workers.pids) == before


# Hosts and supervisors


def in_redis(valkey: ValkeyServer) -> set[str]:
    """Return the workers that Redis counts among those who answer the doorbell."""
    with valkey.client() as client:
        keys = client.smembers("rq:workers:procession")
    return {key.decode().removeprefix("rq:worker:") for key in keys}


def in_table() -> set[str]:
    return set(Worker.objects.values_list("id", flat=True))


def test_another_host_takes_over_from_one_that_stands_still(
    begin: Begin, valkey: ValkeyServer
) -> None:
    """When it goes on it changes nothing of what was taken from it, and takes part again."""
    first = begin(1, **QUICK)
    mine = in_table()
    start_process(Watched, Work("taken over", "wait 1"))
    wait_for(partial(has_begun, "taken over"), 10, lambda: said(first))
    second = begin(1, **QUICK)
    theirs = in_table() - mine
    supervisor = psutil.Process(first.supervisor.pid)
    host = [process.pid for process in (supervisor, *supervisor.children())]
    with transaction.atomic():  # on SQLite who stands still as it writes lets no other
        stop(*host)
    open_gate(1)
    wait_for(all_done, RECOVERY, lambda: said(second))
    wait_for(lambda: in_table() == in_redis(valkey) == theirs, RECOVERY)
    go_on(*host)
    wait_for(lambda: in_table() == in_redis(valkey) == mine | theirs, RECOVERY)

    assert StepRun.objects.get().attempt == 2
    second.stop()
    start_process(Watched, Work("afterwards", "sleep"))
    wait_for(all_done, 5, lambda: said(first))
    assert StepRun.objects.get(instance__data__name="afterwards").attempt == 1


def test_what_a_killed_supervisor_leaves_behind_is_cleared_by_another(
    begin: Begin, valkey: ValkeyServer
) -> None:
    first = begin(2, **QUICK)
    before = in_table()
    second = begin(1, **QUICK)
    with valkey.client() as client:  # of one that died before the database knew of it
        client.sadd("rq:workers:procession", "rq:worker:nobody")
    os.kill(first.supervisor.pid, signal.SIGKILL)
    wait_for(lambda: not in_table() & before, RECOVERY, lambda: said(second))

    wait_for(lambda: in_redis(valkey) == in_table(), RECOVERY)
    assert len(in_table()) == 1


@pytest.mark.once
@pytest.mark.parametrize("number", first_of([signal.SIGSTOP, signal.SIGKILL]))
def test_the_process_asking_the_database_is_replaced(begin: Begin, number: int) -> None:
    workers = begin(1, **QUICK)
    before = workers.database_process
    assert before is not None
    os.kill(before, number)

    wait_for(
        lambda: workers.database_process not in (None, before), 7, lambda: said(workers)
    )
    start_process(Watched, Work("afterwards", "sleep"))
    wait_for(all_done, 5, lambda: said(workers))
