"""Steps that are cut off before their outcome is stored: one that must not be called twice is for people."""

import os
from collections.abc import Iterator

import pytest

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
from orchestrator.testing import registered
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


def pay() -> int:
    """Takes effect outside."""
    CALLED.append("pay")
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
    assert (run.status, run.attempt, run.lost) == ("ready", 0, Lost.UNSTORED)
    go_on(process)

    assert (process.status, noted()) == (Status.FAILED, {"paid": 1})
    assert complaints() == [CUT_OFF]
