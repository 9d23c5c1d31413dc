"""Running claimed visits of steps, and what only waits for its deadline."""

from __future__ import annotations

from orchestrator.conf import conf
from orchestrator.engine import deadlines, leases, waits
from orchestrator.engine.announcements import announce
from orchestrator.engine.job import Job
from orchestrator.engine.shift import Shift
from orchestrator.engine.tables import Raw
from orchestrator.engine.transition import step_runs
from orchestrator.models import StepKind, StepRun, StepStatus

CLAIMED = {
    "status": Raw(
        "CASE WHEN status IN ('ready', 'retrying') THEN 'running' ELSE status END"
    ),
    "error": Raw(
        "CASE WHEN status = 'running' THEN 'WorkerDied: nothing was heard of the worker' ELSE error END"
    ),
}
"""What a claim makes of a visit: one that only waits for its deadline goes on waiting; one that was running is lost."""


def run(run: StepRun, shift: Shift) -> None:
    """Runs a claimed visit, and those that follow it here. Nothing is raised for a failing step."""
    if run.kind == "":
        with shift.watch(conf().EVENT_TIMEOUT, leases.name_of(step_runs, run.pk)):
            deadlines.fire(run)
        return
    if run.status == StepStatus.WAITING and run.kind in (StepKind.WAIT, StepKind.ASK):
        waits.run_late(run)
        return
    if not shift.harvest.goes_with(run):
        finish(shift)
        shift.harvest.job = Job.of(run, shift)
    if shift.harvest.job is None:
        return
    if run.kind != StepKind.ITEM:  # live pages are told that it runs
        announce(shift.harvest.job.instance, {run.node: StepStatus.RUNNING}, "")
    shift.harvest.job.go_through(run)


def finish(shift: Shift) -> None:
    """Stores what is still held of a map's elements, and goes on with what follows."""
    while shift.harvest.holds:  # what follows may be a map again
        following = shift.harvest.store()
        if following is not None and shift.harvest.job is not None:
            shift.harvest.job.go_through(following)
