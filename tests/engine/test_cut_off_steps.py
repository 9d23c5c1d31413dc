"""Steps that are cut off before their outcome is stored: one that must not be called twice is for people."""

import os
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection

from orchestrator import start_process
from orchestrator.definition import Workflow, step, then
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.steps.runner import CLAIMED
from orchestrator.engine.work.leases import work_name
from orchestrator.models import Incident, Lost, ProcessInstance, StepRun
from orchestrator.testing import registered
from orchestrator.workers.current_worker import CurrentWorker
from orchestrator.workers.database_process import WorkerReport
from orchestrator.workers.supervisor import WorkerProcess
from tests.apps.patterns import lost
from tests.apps.patterns.desk import go_on, launch, visit
from tests.apps.patterns.fixtures import Start, flows, said, start
from tests.apps.patterns.ledger import noted
from tests.services.doing import fresh
from tests.services.patience import wait_for

__all__ = ["flows", "start"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("known")]

CUT_OFF = (
    "Interrupted: attempt 1 was cut off before its outcome was stored: whether pay had its effect is not known. "
    "Retry it, or skip it with its result"
)

CALLED: list[str] = []


@dataclass
class Database:
    """What the database does to whoever asks it: it refuses so many statements once the step was called."""

    goes_away_for: int = 0
    refuses: int = 0
    step_fails: bool = False

    def __call__(self, execute: Callable[..., Any], *given: Any) -> Any:
        if self.refuses:
            self.refuses -= 1
            raise OperationalError("server closed the connection unexpectedly")
        return execute(*given)


DATABASE = Database()


def pay() -> int:
    """Takes effect outside; the database may go away meanwhile."""
    CALLED.append("pay")
    DATABASE.refuses, DATABASE.goes_away_for = DATABASE.goes_away_for, 0
    if DATABASE.step_fails:
        raise ConnectionError("whether it was paid is not known")
    return 1


def after(pay: int) -> int:
    return pay


class PaysOnce(Workflow):
    """Its first step must not be called twice by itself."""

    flow = (then(step(pay, retries=0, idempotent=False), after),)


class Pays(Workflow):
    """The same, of a step that may be."""

    flow = (then(step(pay, retries=0), after),)


@pytest.fixture(scope="module")
def known(flows: None) -> Iterator[None]:
    with registered(PaysOnce, Pays):
        yield


@pytest.fixture(autouse=True)
def _forgotten() -> None:
    CALLED.clear()
    vars(DATABASE).update(vars(Database()))


def begun(definition: type[Workflow]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=start_process(definition).process_id)


def stands(process: ProcessInstance) -> tuple[str, list[str], list[str]]:
    """Return its status, what was called, and what people are told."""
    told = Incident.objects.open().values_list("message", flat=True)
    return fresh(process).status, CALLED, list(told)


FOR_PEOPLE = ("failed", ["pay"], [CUT_OFF])
CARRIED_OUT: tuple[str, list[str], list[str]] = ("completed", ["pay"], [])


# Workers that do not end in time when they are to stop


def stopped(child: WorkerProcess) -> None:
    """Have a supervisor stop a worker, which does not end in time."""
    WorkerReport("supervisor", "default", [], [child.as_lost(Lost.CUT_OFF)]).store()


def stopped_at_a_step(*, begins: bool = True) -> None:
    """Let a worker claim a step and perhaps begin it, and be killed then because its supervisor stops."""
    child = WorkerProcess(os.getpid(), CurrentWorker())
    [claimed] = step_runs.claim("default", child.worker.owner, 1, 10, **CLAIMED)
    name = work_name(claimed.work)
    with child.worker.slot.watch(300, name) if begins else nullcontext():
        stopped(child)


def test_a_step_that_must_not_be_called_twice_is_for_people_after_a_stop() -> None:
    process = begun(PaysOnce)
    stopped_at_a_step()
    drain()

    assert stands(process) == ("failed", [], [CUT_OFF])


def test_a_step_that_may_be_called_twice_goes_on_uncharged_after_a_stop() -> None:
    process = begun(Pays)
    stopped_at_a_step()
    run = StepRun.objects.get()
    assert (run.status, run.attempt, run.owner) == ("ready", 0, "")
    drain()

    assert stands(process) == CARRIED_OUT
    assert visit(process, "pay").attempt == 1


def test_what_a_stopped_worker_had_claimed_and_not_begun_is_called_elsewhere() -> None:
    process = begun(PaysOnce)
    stopped_at_a_step(begins=False)
    drain()

    assert stands(process) == CARRIED_OUT


def test_a_supervisor_that_stops_has_no_step_called_twice(start: Start) -> None:
    process = launch(lost.Paying, "hang")
    workers = start(1)
    wait_for(lambda: noted()["paid"] == 1, 15, lambda: said(workers))
    assert workers.stop() == 0
    run = visit(process, "pay")
    assert (run.status, run.attempt, run.lost) == ("ready", 0, Lost.CUT_OFF)
    go_on(process)

    assert stands(process) == ("failed", [], [CUT_OFF])
    assert noted() == {"paid": 1}


# A database that is away for a moment, when a step has returned or failed


def drained(worker: CurrentWorker | None = None, times: int = 9) -> None:
    """Let a worker run what is ready, with a database that may go away."""
    worker = worker or CurrentWorker()
    with connection.execute_wrapper(DATABASE):
        for _ in range(times):
            worker.drain("default")


STATEMENTS = pytest.mark.parametrize("statements", [1, 2, 3, 8])


@STATEMENTS
@pytest.mark.parametrize("definition", [PaysOnce, Pays])
def test_a_result_that_is_refused_for_a_moment_is_stored_later(
    statements: int, definition: type[Workflow]
) -> None:
    DATABASE.goes_away_for = statements
    process = begun(definition)
    drained()

    assert stands(process) == CARRIED_OUT
    assert visit(process, "pay").attempt == 1


@STATEMENTS
def test_what_has_failed_and_must_not_be_called_twice_is_for_people(
    statements: int,
) -> None:
    DATABASE.step_fails, DATABASE.goes_away_for = True, statements
    process = begun(PaysOnce)
    drained()

    status, called, [told] = stands(process)
    assert (status, called, visit(process, "pay").attempt) == ("failed", ["pay"], 1)
    assert told.startswith("Interrupted: ")


def test_who_stops_while_the_database_is_away_leaves_its_step_to_people(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("orchestrator.engine.work.keeping.KEEP_SECONDS", 0.0)
    process = begun(PaysOnce)
    child = WorkerProcess(os.getpid(), CurrentWorker())
    DATABASE.goes_away_for = 99
    drained(child.worker, times=1)
    assert not child.as_live.holds  # its lease is over by itself
    stopped(child)
    drain()

    assert stands(process) == FOR_PEOPLE


def test_a_step_that_was_not_called_yet_is_called_when_the_database_is_back() -> None:
    process = begun(PaysOnce)
    DATABASE.refuses = 3
    with connection.execute_wrapper(DATABASE):
        for _ in range(9):
            CurrentWorker().drain("default")

    assert stands(process) == CARRIED_OUT


def test_a_worker_tries_again_when_its_connection_is_no_longer_usable() -> None:
    """Drivers say so by an InterfaceError, too."""
    said = [InterfaceError("connection already closed")]

    def refused(execute: Callable[..., Any], *given: Any) -> Any:
        if said:
            raise said.pop()
        return execute(*given)

    with connection.execute_wrapper(refused):
        assert CurrentWorker().drain("default") == 0
