"""Steps that are cut off before their outcome is stored: one that must not be called twice is for people."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import InterfaceError, OperationalError, connection

from orchestrator import start_process
from orchestrator.definition import Workflow, step, then
from orchestrator.engine.claims.leases import name_of
from orchestrator.engine.drain import drain
from orchestrator.engine.steps.running import CLAIMED
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import (
    Incident,
    Lost,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
)
from orchestrator.testing import pass_time, registered
from orchestrator.workers.current import Current
from orchestrator.workers.report import WorkerReport
from orchestrator.workers.supervisor import WorkerProcess
from tests.apps.patterns import lost
from tests.apps.patterns.desk import go_on, launch, visit
from tests.apps.patterns.fixtures import Start, flows, said, start
from tests.apps.patterns.ledger import noted
from tests.services.patience import wait_for

__all__ = ["flows", "start"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("known"),
]

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


def started(definition: type[Workflow]) -> ProcessInstance:
    return ProcessInstance.objects.get(pk=start_process(definition).process_id)


def complaints() -> list[str]:
    """Return what people are told."""
    return list(Incident.objects.open().values_list("message", flat=True))


# Workers that do not end in time when they are to stop


def stopped_at_a_step() -> None:
    """Let a worker begin a step, and be killed at it because its supervisor stops."""
    child = WorkerProcess(os.getpid(), Current())
    [claimed] = step_runs.claim("default", child.worker.owner, 1, 10, **CLAIMED)
    with child.worker.slot.watch(300, name_of(step_runs, claimed.work.pk)):
        WorkerReport("supervisor", "default", [], [child.ended]).store()


def test_a_step_that_must_not_be_called_twice_is_for_people_after_a_stop() -> None:
    process = started(PaysOnce)
    stopped_at_a_step()
    drain()

    process.refresh_from_db()
    assert (process.status, CALLED) == (Status.FAILED, [])
    assert complaints() == [CUT_OFF]


def test_a_step_that_may_be_called_twice_goes_on_uncharged_after_a_stop() -> None:
    process = started(Pays)
    stopped_at_a_step()
    run = StepRun.objects.get()
    assert (run.status, run.attempt, run.owner) == (StepStatus.READY, 0, "")
    drain()

    process.refresh_from_db()
    assert (process.status, CALLED) == (Status.COMPLETED, ["pay"])
    assert visit(process, "pay").attempt == 1


def test_what_a_stopped_worker_had_claimed_and_not_begun_is_called_elsewhere() -> None:
    process = started(PaysOnce)
    child = WorkerProcess(os.getpid(), Current())
    step_runs.claim("default", child.worker.owner, 1, 10, **CLAIMED)
    WorkerReport("supervisor", "default", [], [child.ended]).store()
    drain()

    process.refresh_from_db()
    assert (process.status, CALLED) == (Status.COMPLETED, ["pay"])


def test_a_supervisor_that_stops_leaves_no_step_to_be_called_twice(
    start: Start,
) -> None:
    process = launch(lost.Paying, "hang")
    workers = start(1)
    wait_for(lambda: noted()["paid"] == 1, 15, lambda: said(workers))
    assert workers.stop() == 0
    run = visit(process, "pay")
    assert (run.status, run.attempt, run.lost) == ("ready", 0, Lost.CUT_OFF)
    go_on(process)

    assert (process.status, noted()) == (Status.FAILED, {"paid": 1})
    assert complaints() == [CUT_OFF]


# A database that is away for a moment, when a step has returned or failed


def drained_while_away(worker: Current, statements: int) -> None:
    """Let a worker run what is ready, with a database that goes away for so many statements once a step was called."""
    DATABASE.goes_away_for = statements
    with connection.execute_wrapper(DATABASE):
        for _ in range(9):
            worker.drain("default")


STATEMENTS = pytest.mark.parametrize("statements", [1, 2, 3, 8])
FAILS = pytest.mark.parametrize("fails", [False, True])


@STATEMENTS
@FAILS
def test_a_step_whose_outcome_the_database_did_not_take_is_called_once(
    statements: int, fails: bool
) -> None:
    DATABASE.step_fails = fails
    process = started(PaysOnce)
    drained_while_away(Current(), statements)

    process.refresh_from_db()
    assert CALLED == ["pay"]
    assert process.status == Status.FAILED
    assert visit(process, "pay").attempt == 1
    [told] = complaints()
    assert told.startswith("Interrupted: ")


@STATEMENTS
def test_a_step_that_may_be_called_twice_is_called_again_uncharged(
    statements: int,
) -> None:
    process = started(Pays)
    drained_while_away(Current(), statements)
    assert CALLED
    pass_time(seconds=2)

    process.refresh_from_db()
    assert (process.status, visit(process, "pay").attempt) == (Status.COMPLETED, 1)
    assert complaints() == []


def test_a_worker_that_stops_while_the_database_is_away_leaves_its_step_to_people() -> (
    None
):
    process = started(PaysOnce)
    child = WorkerProcess(os.getpid(), Current())
    DATABASE.goes_away_for = 99
    with connection.execute_wrapper(DATABASE):
        child.worker.drain("default")
    assert not child.living.holds  # its lease is over by itself
    WorkerReport("supervisor", "default", [], [child.ended]).store()
    drain()

    process.refresh_from_db()
    assert (process.status, CALLED) == (Status.FAILED, ["pay"])
    assert complaints() == [CUT_OFF]


def test_a_step_that_was_not_called_yet_is_called_when_the_database_is_back() -> None:
    process = started(PaysOnce)
    DATABASE.refuses = 3
    with connection.execute_wrapper(DATABASE):
        for _ in range(9):
            Current().drain("default")

    process.refresh_from_db()
    assert (process.status, CALLED) == (Status.COMPLETED, ["pay"])


def test_a_worker_tries_again_when_its_connection_is_no_longer_usable() -> None:
    """Drivers say so by an InterfaceError, too."""
    said = [InterfaceError("connection already closed")]

    def refused(execute: Callable[..., Any], *given: Any) -> Any:
        if said:
            raise said.pop()
        return execute(*given)

    with connection.execute_wrapper(refused):
        assert Current().drain("default") == 0
