"""Releasing claims: of work that has not begun, of work that must wait, of steps that poll, and after refusals.

The attempt is not charged. Most refusals of the database pass. A refusal that lasts would run a step's function without
end: the database may never take the row. So an attempt of a step counts as failed after some refusals. An error that
comes out of the application's own code is charged, whatever it looks like: that of a step from the third time on.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from orchestrator.containers import LruCache
from orchestrator.definition.refusals import LONGEST
from orchestrator.definition.workflow.steps import Policy
from orchestrator.engine.change import incidents
from orchestrator.engine.change.announcements import announce
from orchestrator.engine.change.status import paused_time, suspend_work
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.sql.batch import Raw, Statement, database_now, send
from orchestrator.engine.sql.connection import note_uncertain_commit
from orchestrator.engine.sql.tables import table_of
from orchestrator.engine.storage.application_code.errors import from_application
from orchestrator.engine.storage.results import has_returned, returned_columns
from orchestrator.engine.work import leases
from orchestrator.exceptions import Interrupted, Poll, TimedOut
from orchestrator.models import (
    CommandStatus,
    IssuedCommand,
    StepRun,
    StepStatus,
    Work,
)
from orchestrator.models.step_run import FIRST_CALLED
from orchestrator.queue import wake_queue
from orchestrator.text import Text, pack_text, storable_text

log = logging.getLogger(__name__)

FREE = 5
"""How often the database's errors release a step's attempt uncharged."""

FREE_OF_APPLICATION = 2
"""How often a step is called again uncharged after errors of its own that look like the database's."""

FREE_IN_A_ROW = 20
"""How often in a row one process releases an event, a command or a deadline uncharged: for some minutes."""

LONGEST_PAUSE = 30.0
"""The most seconds between two of these."""

REFUSALS = LruCache[tuple[type[Work], object], int](1_000)
"""How often in a row the database refused a piece of work in this process."""

LEAST_PAUSE = timedelta(seconds=1)
"""The shortest pause between two calls of a step that polls."""


def release(work: Work, due: datetime | Raw, **noted: Any) -> Statement:
    """Make claimed work due again at a time, uncharged; what has not begun is ready again."""
    values = {"owner": "", "wake_at": due, "attempt": work.attempt - 1, **noted}
    if isinstance(work, StepRun):
        if work.status == StepStatus.RUNNING:
            values["status"] = StepStatus.READY
        if has_returned(work):
            values = {**returned_columns(work), **values}
    elif isinstance(work, IssuedCommand):
        again = work.attempt > 1
        values["status"] = CommandStatus.RETRYING if again else CommandStatus.READY
    return table_of(work).update(values, work.fence, rows=None)


def suspend(run: StepRun) -> Statement:
    """Release a claimed visit of a paused process; it is due when the process is resumed."""
    nothing = {"wake_at": None, "remaining": timedelta(0)}
    return release(run, database_now(), **nothing)


def random_moment(least: float, most: float) -> datetime:
    """Return a random moment between two numbers of seconds from now, so that many rows are not due at once."""
    pause = random.uniform(least, most)  # noqa: S311  # spread, not secrecy
    return database_now() + timedelta(seconds=pause)


def release_for_room(work: Work) -> None:
    """Release work for a moment because other steps of its kind are running."""
    send([release(work, random_moment(0.05, 0.3))])


def release_at_once(work: Work) -> None:
    """Release work that stays due, in its place: its next worker knows when there is room for it."""
    send([release(work, leases.front(table_of(work)))])


def move_to_queue(work: Work, queue: str) -> None:
    """Release work to the queue that it belongs to in the running code."""
    send([release(work, database_now(), queue=queue)])
    wake_queue(queue)


def release_again(work: Work, refusal: Exception) -> bool:
    """Release work after the database refused, with a growing pause, unless this process did so too often.

    Returns:
        Whether the work was released.
    """
    key = type(work), work.pk
    times = (REFUSALS.get(key) or 0) + 1
    if times > FREE_IN_A_ROW:
        REFUSALS.drop(key)
        return False
    REFUSALS.keep(key, times)
    release_refused(work, refusal, min(0.5 * 1.5 ** (times - 1), LONGEST_PAUSE))
    return True


def release_refused(
    work: Work,
    refusal: Exception,
    most: float = 0.5,
    noted: Mapping[str, Any] | None = None,
) -> None:
    """Release work after the database refused (deadlock, lost connection, lock timeout).

    Args:
        work: the claimed row.
        refusal: the error of the database.
        most: the longest pause, in seconds; the shortest is a tenth of it.
        noted: further columns to set.

    The fence shows at the next claim whether the lost transaction was committed after all.
    """
    log.warning("the database refused, %s is tried again: %s", work, refusal)
    note_uncertain_commit()
    send([release(work, random_moment(most / 10, most), **(noted or {}))])


def release_refused_step(run: StepRun, refusal: Exception) -> bool:
    """Release a step after the database refused, unless its attempt was released too often.

    Returns:
        Whether the step was released.
    """
    times = run.given_back + 1
    if times > _most_times(run, refusal):
        return False
    said = Text("Refused %(number)s: %(why)s", times, incidents.error_text(refusal))
    told = {"error": storable_text(said), "text": pack_text(said)}
    release_refused(run, refusal, noted={**told, "lost": "", "given_back": times})
    return True


def release_or_charge(
    run: StepRun, refusal: Exception, policy: Policy, *, is_begun: bool = True
) -> Exception | None:
    """Release a step after the database refused, where another attempt does no harm.

    Args:
        run: the claimed visit.
        refusal: the error of the database.
        policy: of the step.
        is_begun: whether the function may have been called.

    Returns:
        The error of the attempt, which counts; None if the step was released.
    """
    if not is_begun:
        return None if release_again(run, refusal) else refusal
    again = policy.idempotent or has_returned(run)
    if again and release_refused_step(run, refusal):
        return None
    note_uncertain_commit()
    return refusal if again else unknown_effect(run, refusal)


def release_polling(
    change: WorkflowChange, run: StepRun, poll: Poll
) -> TimedOut | None:
    """Release a step that is not done, to be called again later; pauses of its process do not count.

    Returns:
        The error of a step that has polled for as long as it may; None if it was released.
    """
    progress = {"done": 0, "total": None, **(run.progress or {})}
    if not run.polled:
        first = change.now - timedelta(seconds=time.monotonic() - run.called)
        progress[FIRST_CALLED] = max((first - run.started_at).total_seconds(), 0.0)
    since = run.started_at + timedelta(seconds=progress[FIRST_CALLED])
    within = max(min(poll.within, LONGEST), timedelta(0))
    left = within - (change.now - since)
    if left <= timedelta(0) and not change.paused:
        left += paused_time(run.instance_id, since)
        if left <= timedelta(0):
            return TimedOut(
                "not done after %(number)s seconds: %(why)s",
                f"{within.total_seconds():g}",
                incidents.error_text(poll),
            )
    said = incidents.error_text(poll)
    progress |= {"message": storable_text(said)[:200], "text": pack_text(said)}
    untroubled = {"error": "", "text": None, "lost": "", "given_back": 0}
    due = change.now + max(min(max(poll.after, LEAST_PAUSE), left), timedelta(0))
    change.touch(run, StepStatus.READY)
    change.mark(release(run, due, progress=progress, **untroubled))
    if run.error:  # the process may have been retrying
        change.write()
        return None
    send(change.marks)
    if change.paused:
        suspend_work(run.instance_id, change.now)
    announce(change.instance, {run.node: StepStatus.READY}, "")
    return None


def _most_times(run: StepRun, refusal: Exception) -> int:
    if not from_application(refusal):
        return FREE
    return FREE_OF_APPLICATION if run.attempt == 1 else 0


def unknown_effect(run: StepRun, error: Exception) -> Interrupted:
    """Return the error of a step that must not run twice, whose effect is unknown."""
    return Interrupted(
        "the database refused in attempt %(number)s (%(why)s): whether %(step)s had its effect is not "
        "known. Retry it, or skip it with its result",
        run.attempt,
        incidents.error_text(error),
        run.node,
    )
