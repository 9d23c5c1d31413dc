"""Running claimed visits of steps, and firing the deadlines of waiting ones."""

from __future__ import annotations

import time
from uuid import UUID

from orchestrator.engine.change.announcements import announce
from orchestrator.engine.sql.batch import Raw
from orchestrator.engine.steps import waiting_steps
from orchestrator.engine.steps.quick_results import ROOM, QuickResults, store_results
from orchestrator.engine.steps.session import Session
from orchestrator.engine.work.worker_slice import WorkerSlice
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
"""The columns that a claim sets in a visit: a waiting visit goes on waiting; one that was running is lost."""


class StepRunner:
    """Runs the visits that one worker claims, each in the session of its process."""

    def __init__(self, worker_slice: WorkerSlice) -> None:
        self.worker_slice = worker_slice
        self.quick = QuickResults(worker_slice.held)
        self.following: list[StepRun] = []
        """Visits that this worker took up when it stored results, and that have not begun."""
        self.since = 0.0
        """A monotonic time before the first of them was taken up."""
        self._sessions: dict[UUID, Session] = {}
        self._taken_up = set[int]()
        """Visits that live pages know to be running, by the change that has started them."""

    def run(self, run: StepRun) -> None:
        """Run a claimed visit, and those that follow it here. This raises nothing: every error is stored."""
        held_at = time.monotonic()
        asleep = run.status == StepStatus.WAITING
        if run.kind == StepKind.SLEEP or (
            asleep and run.kind in waiting_steps.DONE_OUTSIDE
        ):
            with self.worker_slice.watched(run):
                waiting_steps.settle_deadline(run)
            return
        session = self._session(run)
        if session is None:
            return
        if run.pk in self._taken_up:
            self._taken_up.remove(run.pk)
            if run.pk in session.ended:  # by a change that was stored since
                return
        elif run.kind != StepKind.ITEM:  # live pages are told that it runs
            announce(session.instance, {run.node: StepStatus.RUNNING}, "")
        session.go_through(run, held_at)

    def _session(self, run: StepRun) -> Session | None:
        """The session of its process; None if the visit cannot run here."""
        known = self._sessions.get(run.instance_id)
        if known is not None and known.goes_on:
            return known
        found = Session.of(run, self.worker_slice, self.quick)
        if found is not None:
            self._sessions[run.instance_id] = found
        return found

    @property
    def are_due(self) -> bool:
        """Whether the held results are to be stored before the next function is called."""
        return self.quick.are_due

    def store(self, *, goes_on: bool = True) -> bool:
        """Store the held results. Return whether this worker has visits to go on with."""
        if not self.following:
            self.since = time.monotonic()
        try:
            room = max(ROOM - len(self.following), 1) if goes_on else 0
            found = store_results(self.quick.take(), room) if self.quick else []
        finally:
            self.worker_slice.held.show_stored()
        self._taken_up |= {run.pk for run in found}
        self.following += found
        return bool(self.following)

    def take(self) -> list[StepRun]:
        """Return the visits that follow, to be run or released now."""
        found, self.following = self.following, []
        return found

    def forget(self) -> None:
        """Forget all processes, so that they are read anew: no visit of theirs is held any more."""
        self._sessions.clear()
        self._taken_up.clear()
        self.following.clear()
