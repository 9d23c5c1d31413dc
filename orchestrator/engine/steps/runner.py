"""Running the visits that one worker claims, each in the session of its process, and ending sleeps together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from orchestrator.engine.change.announcements import announce
from orchestrator.engine.sql.batch import Clock, Raw
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.sql.tables import instances
from orchestrator.engine.steps import waiting_steps
from orchestrator.engine.steps.known_process import HeldResult
from orchestrator.engine.steps.quick_results import (
    ROOM,
    QuickResults,
    commit_results,
    store_results,
)
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage import definitions
from orchestrator.engine.storage.results import result_columns
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import Lost, ProcessInstance, StepKind, StepRun, StepStatus

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

    def end_sleeps(self, claimed: Sequence[Claimed[StepRun]]) -> set[int]:
        """End sleeps together where nothing else of their processes is open. Return the keys of the ended ones.

        The others are run, each by itself.
        """
        runs = [one.work for one in claimed if waiting_steps.sleeps_plainly(one.work)]
        if len(runs) < 2:
            return set()
        self.since = time.monotonic()
        known, now = instances.read_many({run.instance_id for run in runs})
        over, clock = result_columns(runs[0], Any, None), Clock(now)
        sessions = dict[int, Session]()
        for run in runs:
            session = self._of_sleep(run, known.get(run.instance_id), clock)
            if session is not None:
                sessions[run.pk] = session
        held = [
            HeldResult(sessions[run.pk], run, None, over)
            for run in runs
            if run.pk in sessions
        ]
        done = commit_results(held, 1, self.following).done
        self._taken_up |= {run.pk for run in self.following}
        for one, _ in done:
            self._sessions[one.run.instance_id] = sessions[one.run.pk]
        return {one.run.pk for one, _ in done}

    def _of_sleep(
        self, run: StepRun, instance: ProcessInstance | None, clock: Clock
    ) -> Session | None:
        """The session of a process in which only this sleep is open; None for a sleep that ends by itself."""
        try:
            if instance is None or not definitions.has_plan(instance):
                return None
            plan = definitions.plan_of(instance)
            found = Session(instance, plan, self.worker_slice, clock, self.quick)
            plain = found.is_alone(run) and found.follows_plainly(plan[run.node])
            return found if plain else None
        except BaseException:  # noqa: BLE001  # by itself it is stored with the error
            return None

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
