"""Running claimed visits of steps, and what only waits for its deadline."""

from __future__ import annotations

from orchestrator.conf import conf
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.claims import leases
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.events import deadlines
from orchestrator.engine.steps import waits
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage.table import Raw
from orchestrator.engine.storage.tables import step_runs
from orchestrator.models import Lost, StepKind, StepRun, StepStatus

CLAIMED = {
    "status": Raw(
        "CASE WHEN status IN ('ready', 'retrying') THEN 'running' ELSE status END"
    ),
    "error": Raw(
        "CASE WHEN status = 'running' THEN 'WorkerDied: nothing was heard of the worker' ELSE error END"
    ),
    "lost": Raw(f"CASE WHEN status = 'running' THEN '{Lost.DIED}' ELSE lost END"),
    "given_back": Raw("CASE WHEN status = 'running' THEN 0 ELSE given_back END"),
}
"""What a claim makes of a visit: one that only waits for its deadline goes on waiting; one that was running is lost."""


def run(run: StepRun, worker_slice: WorkerSlice) -> None:
    """Runs a claimed visit, and those that follow it here. Nothing is raised for a failing step."""
    if run.kind == "":
        with worker_slice.watch(
            conf().EVENT_TIMEOUT, leases.name_of(step_runs, run.pk)
        ):
            deadlines.fire(run)
        return
    if run.status == StepStatus.WAITING and run.kind in (StepKind.WAIT, StepKind.ASK):
        waits.run_late(run)
        return
    if not worker_slice.quick_results.goes_with(run):
        finish(worker_slice)
        worker_slice.quick_results.session = Session.of(run, worker_slice)
    if worker_slice.quick_results.session is None:
        return
    if run.kind != StepKind.ITEM:  # live pages are told that it runs
        announce(
            worker_slice.quick_results.session.instance,
            {run.node: StepStatus.RUNNING},
            "",
        )
    worker_slice.quick_results.session.go_through(run)


def finish(worker_slice: WorkerSlice) -> None:
    """Stores what is still held of a map's elements, and goes on with what follows."""
    while worker_slice.quick_results.holds:  # what follows may be a map again
        following = worker_slice.quick_results.store()
        if following is not None and worker_slice.quick_results.session is not None:
            worker_slice.quick_results.session.go_through(following)
