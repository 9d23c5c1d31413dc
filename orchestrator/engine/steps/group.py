"""Results of quick steps, held for a moment and stored together.

Those of one process share a transaction, single ones of many processes a group commit. Whatever cannot be stored with
others is stored by itself, which tells whose mistake it is.

What is held is shown to the worker's supervisor, which has it stored when the next function takes longer than a moment,
or ends its worker. Where nobody sees it, it is stored before the next function is called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

from orchestrator.collecting import group_by_key
from orchestrator.engine.change import maps, settling
from orchestrator.engine.change.committing import commit_together
from orchestrator.engine.change.workflow import WorkflowChange
from orchestrator.engine.claims.held import (
    TAKE_SECONDS,
    Held,
    Holding,
    UnstoredResult,
)
from orchestrator.engine.steps.known_process import HeldResult
from orchestrator.engine.storage import uncertain
from orchestrator.engine.storage.batch import Statement
from orchestrator.engine.storage.passing_errors import passes
from orchestrator.models import StepKind, StepRun, StepStatus

log = logging.getLogger(__name__)

Group = Sequence[HeldResult]
"""Some results."""

Following = list[StepRun]
"""The visits that this worker goes on with; more are added as results are stored."""

ROOM = 32
"""With how many of the steps that start a worker goes on: as many quick ones as it would claim."""


class QuickResults(Holding[HeldResult]):
    """The results that a worker holds.

    Args:
        shown: where its supervisor sees them.
    """

    def __init__(self, shown: Held) -> None:
        super().__init__()
        self.shown = shown
        self._seen = True

    def hold(self, key: Hashable, one: HeldResult) -> None:
        super().hold(key, one)
        run = one.run
        result = UnstoredResult(run.pk, run.attempt, **one.given)
        self._seen &= self.shown.returned(result)

    @property
    def are_due(self) -> bool:
        return super().are_due or (bool(self) and not self._seen)

    def take(self) -> list[HeldResult]:
        """Return what is held, to be stored; after a while without what others have stored."""
        late, self._seen = self.waited > TAKE_SECONDS, True
        held = super().take()
        return still_mine(held) if late else held


def still_mine(held: Sequence[HeldResult]) -> list[HeldResult]:
    """Those of the results that the worker's supervisor has not stored meanwhile."""
    runs = StepRun.objects.filter(pk__in=[one.run.pk for one in held])
    mine = set(runs.values_list("pk", "owner", "attempt"))
    return [one for one in held if (one.run.pk, one.run.owner, one.run.attempt) in mine]


def store(held: Group, room: int = ROOM) -> list[StepRun]:
    """Stores results.

    Args:
        held: the results.
        room: with how many of the steps that follow this worker goes on at most, besides one for each process that
            has no other; if it is 0, all are claimed like whatever is ready.

    Returns:
        The visits that this worker goes on with.

    Raises:
        DatabaseError: it refused for now to store one that is kept; those before it may be stored.
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
    group: Group, together: Callable[[Group, int, Following], None], room: int
) -> Following:
    """Stores results together, or where that cannot be one by one; `room` is for what this worker goes on with."""
    following = list[StepRun]()  # also of those that are stored before one is refused
    try:
        together(group, max(room, 0), following)
    except Exception as error:  # noqa: BLE001  # each by itself tells whose it is
        _one_by_one(group, error, following)
    return following


def _one_by_one(group: Group, refusal: Exception, following: Following) -> None:
    """Stores results that were refused together."""
    log.info("%s results could not be stored together: %s", len(group), refusal)
    for one in group:  # also of what others have stored: nothing of this was
        one.session.forget()
    if passes(refusal):
        uncertain.note()  # they may have been, and what follows taken up
    _singly(still_mine(group), following)


def _singly(group: Group, following: Following) -> None:
    for one in group:
        one.session.forget()  # it counts what was left out
        # The application may decide on the way.
        with one.session.worker_slice.watched(one.run):
            run = one.session.settle_singly(one.run, one.result, kept=one.kept)
        if run is not None:
            following.append(run)


def _of_one_process(group: Group, room: int, following: Following) -> None:
    """Stores them in one transaction: elements of one map in one change, and steps that do not depend on their order.

    This worker goes on with all that follows, as far as there is room: two at the quick steps of one process would only
    wait for each other. What it does not come to in a moment others take over.

    A map's last element is left for a transaction of its own where the application decides on what follows the map.
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
    # One that starts may be given up by the next change.
    following += [run for run in taken_up if run.pk not in session.ended]
    _singly(left_out, following)


def _of_many_processes(group: Group, room: int, following: Following) -> None:
    """Stores one result of each process in a group commit, and those alone that it leaves out."""

    def prepare(one: HeldResult) -> tuple[WorkflowChange, list[Statement]]:
        change = one.session.change_alone(one.run)
        change.room = room
        _settle(change, [one])
        return change, change.prepared()

    found = commit_together(group, prepare)
    for one, change in found.done:
        one.session.sure = True
        one.session.learn(one.run, one.given)
        following += change.mine
    if found.refusal is not None:
        _one_by_one(found.left_out, found.refusal, following)
    else:
        _singly(found.left_out, following)


def _is_decided_on(change: WorkflowChange, same: Group) -> bool:
    """Whether these are the last elements of a map whose results the application is asked about."""
    run = same[0].run
    asks = run.kind == StepKind.ITEM and change.plan[run.node].decides
    return asks and maps.completes(change, run, len(same))


def _settle(change: WorkflowChange, same: Group) -> None:
    """Settles the visits of steps, or those of one map's elements."""
    first = same[0].run
    if first.kind != StepKind.ITEM:
        visits = [(one.run, one.result, one.given) for one in same]
        settling.follow_together(change, visits)
        return
    for one in same:
        change.close(one.run, StepStatus.DONE, **one.given)
    maps.count(change, first, {one.run.item or 0: one.result for one in same})


def _change_of(one: HeldResult) -> object:
    """What is settled in one change has this in common.

    Where a join gives up what it needs no more, it matters which step comes first: each has a change of its own.
    """
    run = one.run
    if run.kind == StepKind.ITEM:
        return run.node, run.visit, run.round
    return run.pk if one.session.plan.cancelling else run.kind


def _split(
    group: Iterable[HeldResult], by: Callable[[HeldResult], Any]
) -> Iterable[list[HeldResult]]:
    """The results in parts that have something in common, in their order."""
    return group_by_key((by(one), one) for one in group).values()
