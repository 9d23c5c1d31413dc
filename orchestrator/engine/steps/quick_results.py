"""Results of quick steps, held for a moment and stored together.

The results of one process share a transaction; single results of many processes share a group commit. A result that
cannot be stored together with others is stored singly, which shows its own error.

A worker shows held results to its supervisor, which has them stored when the next function takes longer than a moment
or ends its worker. Without a supervisor they are stored before the next function is called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import Any

from orchestrator.containers import group_by_key
from orchestrator.engine.change.committing import CommitResult, commit_together
from orchestrator.engine.change.workflows import settling
from orchestrator.engine.change.workflows.settling import completes_map, count_elements
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.sql.batch import Statement
from orchestrator.engine.sql.connection import note_uncertain_commit, passes
from orchestrator.engine.steps.known_process import HeldResult
from orchestrator.engine.work.keeping import store_outcome
from orchestrator.engine.work.worker_slice import (
    TAKE_SECONDS,
    HeldWork,
    Holding,
    UnstoredResult,
    lateness,
)
from orchestrator.models import StepKind, StepRun, StepStatus

log = logging.getLogger(__name__)

HeldResults = Sequence[HeldResult]
"""Some results."""

NextVisits = list[StepRun]
"""The visits that this worker goes on with; storing a result adds to them."""

ROOM = 32
"""The most started steps that a worker goes on with: as many quick ones as it would claim."""


class QuickResults(Holding[HeldResult]):
    """The results that a worker holds.

    Args:
        shown: where the supervisor sees them.
    """

    def __init__(self, shown: HeldWork) -> None:
        super().__init__()
        self.shown = shown
        self._seen = True

    def hold(self, key: Hashable, one: HeldResult) -> None:
        super().hold(key, one)
        run = one.run
        result = UnstoredResult(run.pk, run.attempt, **one.given)
        self._seen &= self.shown.show_result(result)

    @property
    def are_due(self) -> bool:
        return super().are_due or (bool(self) and not self._seen)

    def take(self) -> list[HeldResult]:
        """Return the held results, to be stored; after a while without those that other workers have stored."""
        late, self._seen = self.waited > TAKE_SECONDS * lateness.factor, True
        held = super().take()
        return find_held_results(held) if late else held


def find_held_results(held: Sequence[HeldResult]) -> list[HeldResult]:
    """Return the results that other workers have not stored meanwhile."""
    runs = StepRun.objects.filter(pk__in=[one.run.pk for one in held])
    mine = set(runs.values_list("pk", "owner", "attempt"))
    return [one for one in held if (one.run.pk, one.run.owner, one.run.attempt) in mine]


def store_results(held: HeldResults, room: int = ROOM) -> list[StepRun]:
    """Store results.

    Args:
        held: the results.
        room: the most following steps that this worker goes on with, besides one for each process that has no other;
            with 0 it takes none.

    Returns:
        The visits that this worker goes on with.

    Raises:
        DatabaseError: the database refused for now, and the result is kept; the results before it may be stored.
    """
    single, following = list[HeldResult](), list[StepRun]()
    for group in _split(held, lambda one: one.run.instance_id):
        if len(group) == 1 and group[0].session.is_alone(group[0].run):
            single += group
        else:
            following += _stored(group, _of_one_process, room - len(following))
    if single:  # each is followed by one step at most
        following += _stored(single, _of_many_processes, min(room, 1))
    return following


def _stored(
    group: HeldResults,
    together: Callable[[HeldResults, int, NextVisits], None],
    room: int,
) -> NextVisits:
    """Store results together, or if that fails one by one; `room` is for the visits that this worker goes on with."""
    following = list[StepRun]()  # also after results stored before a refusal
    try:
        together(group, max(room, 0), following)
    except BaseException as error:  # noqa: BLE001  # storing them singly shows which one has failed
        _one_by_one(group, error, following)
    return following


def _one_by_one(
    group: HeldResults, refusal: BaseException, following: NextVisits
) -> None:
    """Store results one by one after they were refused together."""
    log.info("%s results could not be stored together: %s", len(group), refusal)
    for one in group:  # also for results that other workers have stored
        one.session.forget()
    if passes(refusal):
        note_uncertain_commit()  # they may have been committed, with claims of the visits that follow
    first, look = group[0], partial(find_held_results, group)
    here = None if first.kept else first.session.worker_slice
    _singly(store_outcome(first.run, here, look), following)


def _singly(group: HeldResults, following: NextVisits) -> None:
    for one in group:
        one.session.forget()  # it counts changes that were left out
        # A predicate of the application may run.
        with one.session.worker_slice.watched(one.run):
            run = one.session.settle_singly(one.run, one.result, kept=one.kept)
        if run is not None:
            following.append(run)


def _of_one_process(group: HeldResults, room: int, following: NextVisits) -> None:
    """Store the results of one process in one transaction: one change for a map's elements, and one for its steps.

    This worker goes on with all that follows, as far as there is room: two workers at the quick steps of one process
    would wait for each other. Other workers take over the visits that it does not begin in a moment.

    The last element of a map has a transaction of its own where the application decides what follows the map.
    """
    session, taken_up = group[0].session, list[StepRun]()
    left_out = list[HeldResult]()
    with session.committing():
        now = session.lock(group[0].run).now
        for same in _split(group, _change_of):
            change = session.change(same[0].run, now)
            change.room = room - len(taken_up)
            if _is_decided_on(change, same):
                left_out.append(same.pop())
            if not same:
                continue
            _settle(change, same)
            change.write()
            session.ended |= change.closed
            for one in same:
                session.learn(one.run, one.given)
            taken_up += change.mine
    # A later change may have cancelled a visit that an earlier one has started.
    following += [run for run in taken_up if run.pk not in session.ended]
    _singly(left_out, following)


def commit_results(
    group: HeldResults, room: int, following: NextVisits
) -> CommitResult[HeldResult, WorkflowChange]:
    """Store one result of each of many processes in a group commit.

    Args:
        group: the results; each of a visit that is the only open one of its process.
        room: the most visits of one process that this worker goes on with.
        following: the list that gets these visits.
    """

    def prepare(one: HeldResult) -> tuple[WorkflowChange, list[Statement]]:
        change = one.session.change_alone(one.run)
        change.room = room
        _settle(change, [one])
        return change, change.prepare()

    found = commit_together(group, prepare)
    for one, change in found.done:
        one.session.sure = True
        one.session.learn(one.run, one.given)
        following += change.mine
    return found


def _of_many_processes(group: HeldResults, room: int, following: NextVisits) -> None:
    """Store one result of each process in a group commit, and singly those that it leaves out."""
    found = commit_results(group, room, following)
    if found.refusal is not None:
        _one_by_one(found.left_out, found.refusal, following)
    else:
        _singly(found.left_out, following)


def _is_decided_on(change: WorkflowChange, same: HeldResults) -> bool:
    """Whether these are the last elements of a map about whose results the application decides."""
    run = same[0].run
    asks = run.kind == StepKind.ITEM and change.plan[run.node].decides
    return asks and completes_map(change, run, len(same))


def _settle(change: WorkflowChange, same: HeldResults) -> None:
    """Settle the visits of steps, or those of one map's elements."""
    first = same[0].run
    if first.kind != StepKind.ITEM:
        visits = [(one.run, one.result, one.given) for one in same]
        settling.follow_visits(change, visits)
        return
    for one in same:
        change.close(one.run, StepStatus.DONE, **one.given)
    count_elements(change, first, {one.run.item or 0: one.result for one in same})


def _change_of(one: HeldResult) -> object:
    """Return the same value for results that one change settles.

    If a join cancels the branches that it no longer needs, the order of the steps matters: each has its own change.
    """
    run = one.run
    if run.kind == StepKind.ITEM:
        return run.node, run.visit, run.round
    return run.pk if one.session.plan.cancelling else run.kind


def _split(
    group: Iterable[HeldResult], by: Callable[[HeldResult], Any]
) -> Iterable[list[HeldResult]]:
    """Split results into parts with the same value of `by`, in their order."""
    return group_by_key((by(one), one) for one in group).values()
