"""Running claimed visits of steps, and what only waits for its deadline."""

from __future__ import annotations

from orchestrator.engine.change.announcements import announce
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.steps import waits
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage.table import Raw
from orchestrator.models import Lost, StepKind, StepRun, StepStatus, Work

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


class StepRunner:
    """Runs the visits that one worker claims, each in the session of its process."""

    def __init__(self, worker_slice: WorkerSlice) -> None:
        self.worker_slice = worker_slice
        self.session: Session | None = None

    def run(self, run: StepRun) -> None:
        """Runs a claimed visit, and those that follow it here. Nothing is raised for a failing step."""
        asleep = run.status == StepStatus.WAITING
        if run.kind == StepKind.SLEEP or (asleep and run.kind in waits.OF_OTHERS):
            waits.run_late(run)
            return
        if self.session is None:
            self.session = Session.of(run, self.worker_slice)
        if self.session is None:
            return
        if run.kind != StepKind.ITEM:  # live pages are told that it runs
            announce(self.session.instance, {run.node: StepStatus.RUNNING}, "")
        self.session.go_through(run)

    def make_way(self, work: Work) -> None:
        """Comes to an end with what was run before, unless another piece of work is an element of the same map."""
        if self.session is not None and not self.session.goes_with(work):
            self.finish()

    def finish(self) -> None:
        """Stores what is still held of a map's elements, and goes on with what follows."""
        if self.session is not None:
            self.session.finish()
        self.session = None
