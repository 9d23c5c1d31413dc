"""Makes the workflows known to the engine for a module of tests, and starts workers who know them too."""

import shutil
from collections.abc import Callable

from orchestrator.models import ProcessInstance, Status
from tests.apps.watched.processes import Watched, WatchedInside
from tests.apps.watched.steps import begun, folder
from tests.services.crews import beginning, knowing
from tests.services.workers import Workers
from tests.services.workers import said as logged

__all__ = ["all_done", "begin", "has_begun", "watched"]

Begin = Callable[..., Workers]
"""Starts a supervisor with so many workers."""


watched = knowing(Watched, WatchedInside, autouse=False)


begin = beginning("watched", 1, lambda: shutil.rmtree(folder()), SWEEP_SECONDS=1)


def said(workers: Workers) -> str:
    """Return the last of what workers and their supervisor have logged, and where the processes stand."""
    rows = ProcessInstance.objects.values_list("status", "data")
    return f"{list(rows)}\n{logged(workers)}"


def all_done() -> bool:
    """Whether all processes are completed."""
    return not ProcessInstance.objects.exclude(status=Status.COMPLETED).exists()


def has_begun(name: str) -> bool:
    """Whether the work of this name has begun."""
    return bool(begun(name))
