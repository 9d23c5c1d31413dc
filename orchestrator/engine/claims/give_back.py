"""Giving a step back after the database refused: uncharged at first, since most of it passes.

What does not pass would have the function run without end: an error of its own that only looks so, or a row that the
database never takes. An attempt that was given back so often counts as failed.
"""

from __future__ import annotations

from typing import Any

from django.db import connection

from orchestrator.engine.change import incidents
from orchestrator.engine.claims import leases
from orchestrator.engine.failures import of_work
from orchestrator.engine.storage.tables import step_runs
from orchestrator.exceptions import Interrupted
from orchestrator.models import StepRun, StepStatus

FREE = 5
"""How often an attempt is given back."""


def give_back(run: StepRun, refused: Exception) -> bool:
    """Gives a visit back uncharged, if this attempt was not given back too often.

    Returns:
        Whether it was.
    """
    times = run.given_back + 1
    if times > FREE:
        return False
    begun = run.status == StepStatus.RUNNING
    note: dict[str, Any] = {
        "status": StepStatus.READY if begun else run.status,
        "error": f"Refused {times}: {incidents.storable(incidents.said(refused))}",
        "lost": "",
        "given_back": times,
    }
    of_work.hand_back(run, step_runs, refused, note)
    return True


def doubt() -> None:
    """Whether the refused commit happened is not known, nor whether its connection can still be used."""
    leases.doubt()
    if not connection.in_atomic_block:
        connection.close()


def unknown(run: StepRun, refused: Exception) -> Interrupted:
    """Why a step that must not run twice is not simply tried again."""
    return Interrupted(
        f"the database refused in attempt {run.attempt} ({incidents.said(refused)}): whether {run.node} had its effect "
        "is not known. Retry it, or skip it with its result"
    )
