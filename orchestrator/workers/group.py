"""A worker and the processes that its work has started: one process group, which ends with the worker."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable

log = logging.getLogger(__name__)


def lead(pid: int = 0) -> None:
    """Makes a worker, by default this process, the leader of a group of its own; a second time changes nothing.

    Ctrl-C in a terminal then reaches the supervisor alone, which ends its workers in order.
    """
    _tolerant(os.setpgid, pid, pid)


def ask_to_end(leader: int) -> None:
    """Asks the worker alone: what it has started may be what its present piece of work waits for."""
    _tolerant(os.kill, leader, signal.SIGTERM)


def kill(leader: int) -> None:
    """Kills a worker and all that its work has started."""
    _tolerant(os.killpg, leader, signal.SIGKILL)


def has_ended(leader: int) -> bool:
    """Whether a worker has ended. What it left behind is killed then, before its work is begun again elsewhere."""
    if os.waitpid(leader, os.WNOHANG)[0] != leader:
        return False
    kill(leader)  # as long as anybody is left in the group, its number is nobody else's
    return True


def _tolerant(act: Callable[[int, int], None], pid: int, argument: int) -> None:
    try:
        act(pid, argument)
    except (ProcessLookupError, PermissionError) as error:
        log.debug("process %s has ended, or runs as somebody else: %s", pid, error)
