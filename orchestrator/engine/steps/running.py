"""Running claimed visits of steps, and what only waits for its deadline."""

from __future__ import annotations

import time
from uuid import UUID

from orchestrator.engine.change.announcements import announce
from orchestrator.engine.claims.worker_slice import WorkerSlice
from orchestrator.engine.steps import waits
from orchestrator.engine.steps.group import ROOM, QuickResults, store
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage.batch import Raw
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


class StepRunner:
    """Runs the visits that one worker claims, each in the session of its process."""

    def __init__(self, worker_slice: WorkerSlice) -> None:
        self.worker_slice = worker_slice
        self.quick = QuickResults(worker_slice.held)
        self.following: list[StepRun] = []
        """Visits that were taken up with the results that were stored, and are not begun."""
        self.since = 0.0
        """The monotonic time before which the first of them was not taken up."""
        self._sessions: dict[UUID, Session] = {}
        self._taken_up = set[int]()
        """The visits that the change told of with which they began."""

    def run(self, run: StepRun) -> None:
        """Runs a claimed visit, and those that follow it here. Nothing is raised for a failing step."""
        held_at = time.monotonic()
        asleep = run.status == StepStatus.WAITING
        if run.kind == StepKind.SLEEP or (asleep and run.kind in waits.OF_OTHERS):
            with self.worker_slice.watched(run):
                waits.run_late(run)
            return
        session = self._session(run)
        if session is None:
            return
        if run.pk in self._taken_up:
            self._taken_up.remove(run.pk)
            if run.pk in session.ended:  # by what was stored since
                return
        elif run.kind != StepKind.ITEM:  # live pages are told that it runs
            announce(session.instance, {run.node: StepStatus.RUNNING}, "")
        session.go_through(run, held_at)

    def _session(self, run: StepRun) -> Session | None:
        """The session of its process; None where the visit cannot be run here."""
        known = self._sessions.get(run.instance_id)
        if known is not None and known.goes_on:
            return known
        found = Session.of(run, self.worker_slice, self.quick)
        if found is not None:
            self._sessions[run.instance_id] = found
        return found

    @property
    def are_due(self) -> bool:
        """Whether the results that are held are to be stored before another function is called."""
        return self.quick.are_due

    def store(self, *, goes_on: bool = True) -> bool:
        """Stores the results that are held; whether this worker has visits to go on with then, if it goes on."""
        if not self.following:
            self.since = time.monotonic()
        try:
            room = max(ROOM - len(self.following), 1) if goes_on else 0
            found = store(self.quick.take(), room) if self.quick else []
        finally:
            self.worker_slice.held.stored()
        self._taken_up |= {run.pk for run in found}
        self.following += found
        return bool(self.following)

    def take(self) -> list[StepRun]:
        """What follows, to be run or given back now."""
        found, self.following = self.following, []
        return found

    def forget(self) -> None:
        """Reads processes anew: nothing of them is in hand any more."""
        self._sessions.clear()
        self._taken_up.clear()
        self.following.clear()
