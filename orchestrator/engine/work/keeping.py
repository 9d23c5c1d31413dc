"""Outcomes that the database refuses for a moment: their worker keeps them, and stores them again."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from time import monotonic, sleep
from typing import TypeVar

from django.db import DatabaseError, InterfaceError

from orchestrator.engine.sql.connection import note_uncertain_commit, passes
from orchestrator.engine.storage.application_code.errors import from_application
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import Work

log = logging.getLogger(__name__)

T = TypeVar("T")

KEEP_SECONDS = 60.0
"""How long a worker keeps an outcome that the database refuses. Nothing else begins on this worker meanwhile."""

PAUSE_SECONDS = 0.05
"""The first pause before an outcome is stored again; each is twice as long as the one before."""

LONGEST_PAUSE = 2.0


def store_outcome(
    work: Work,
    worker_slice: WorkerSlice | None,
    store: Callable[[], T],
    forget: Callable[[], object] = lambda: None,
) -> T:
    """Store the outcome of a piece of work; again while the database refuses by errors that pass by themselves.

    Args:
        work: the claimed row.
        worker_slice: of its worker; None if the caller cannot wait.
        store: stores the outcome in a transaction of its own.
        forget: forgets what was read before the refusal.

    Raises:
        LeaseLost: another worker has the work, or an earlier commit has stored the outcome after all.
        DatabaseError: the database has refused for `KEEP_SECONDS`, or the caller cannot wait.
        Exception: as `store`.
    """
    begun, pause = monotonic(), PAUSE_SECONDS
    try:
        return store()
    except (DatabaseError, InterfaceError) as error:
        refusal = error
    while worker_slice is not None and _passes(refusal):
        if monotonic() - begun + pause > KEEP_SECONDS:
            break
        log.warning("the outcome of %s is kept, refused: %s", work, refusal)
        note_uncertain_commit()
        forget()
        with worker_slice.watched(work):
            sleep(pause * random.uniform(0.5, 1.0))  # noqa: S311  # spread, not secrecy
            try:
                return store()
            except (DatabaseError, InterfaceError) as error:
                refusal = error
        pause = min(pause * 2, LONGEST_PAUSE)
    raise refusal


def _passes(refusal: Exception) -> bool:
    return passes(refusal) and not from_application(refusal)
