"""Giving claimed work back: what was not begun, what must wait, and what the database refused.

The attempt is not charged. A refusal of the database usually passes. One that does not would have a step's function run
without end: the function's own error may look like one, or the database may never take the row. So an attempt of a step
counts as failed after some refusals.
"""

from __future__ import annotations

import logging
import random
from datetime import datetime, timedelta
from typing import Any

from orchestrator.engine.change import incidents
from orchestrator.engine.storage import uncertain
from orchestrator.engine.storage.batch import Statement, database_now, send
from orchestrator.engine.storage.tables import table_of
from orchestrator.exceptions import Interrupted
from orchestrator.models import StepRun, StepStatus, Work
from orchestrator.queue import wake_queue
from orchestrator.text import storable_text

log = logging.getLogger(__name__)

FREE = 5
"""How often a step's attempt is given back to the database's errors."""


def given_back(work: Work, due: datetime, **noted: Any) -> Statement:
    """Makes claimed work due again at a time, uncharged; a step that was only claimed is as ready as before."""
    values = {"owner": "", "wake_at": due, "attempt": work.attempt - 1, **noted}
    if isinstance(work, StepRun) and work.status == StepStatus.RUNNING:
        values["status"] = StepStatus.READY
    return table_of(work).update(values, work.fence, rows=None)


def rested(run: StepRun) -> Statement:
    """Puts a claimed visit to rest whose process stands still; it is due when the process goes on."""
    nothing = {"wake_at": None, "remaining": timedelta(0)}
    return given_back(run, database_now(), **nothing)


def soon(least: float, most: float) -> datetime:
    """A random moment between two numbers of seconds from now, so that many rows do not come back at once."""
    pause = random.uniform(least, most)  # noqa: S311  # spread, not secrecy
    return database_now() + timedelta(seconds=pause)


def wait_for_room(work: Work) -> None:
    """Gives work back for a moment because others of its kind are running."""
    send([given_back(work, soon(0.05, 0.3))])


def at_once(work: Work) -> None:
    """Gives work back that stays due: its next worker knows when there is room for it."""
    send([given_back(work, database_now())])


def to_queue(work: Work, queue: str) -> None:
    """Gives work back that belongs to another queue in the running code."""
    send([given_back(work, database_now(), queue=queue)])
    wake_queue(queue)


def refused(work: Work, refusal: Exception, **noted: Any) -> None:
    """Gives work back after the database refused (deadlock, lost connection, lock timeout).

    Whether the lost transaction was committed after all is answered by the fence when the work is taken up again.
    """
    log.warning("the database refused, %s is tried again: %s", work, refusal)
    uncertain.note()
    send([given_back(work, soon(0.05, 0.5), **noted)])


def step_refused(run: StepRun, refusal: Exception) -> bool:
    """Gives a step back after the database refused, if this attempt was not given back too often.

    Returns:
        Whether it was.
    """
    times = run.given_back + 1
    if times > FREE:
        return False
    told = f"Refused {times}: {storable_text(incidents.said(refusal))}"
    refused(run, refusal, error=told, lost="", given_back=times)
    return True


def unknown(run: StepRun, error: Exception) -> Interrupted:
    """Why a step that must not run twice is not simply tried again."""
    return Interrupted(
        "the database refused in attempt %(number)s (%(why)s): whether %(step)s had its effect is not "
        "known. Retry it, or skip it with its result",
        run.attempt,
        incidents.said(error),
        run.node,
    )
