"""The open files of a worker process, which code of the application may close: sockets, pipes, shared memory.

A worker whose files are closed would write into those that get their numbers next. So it ends at once.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from typing import NoReturn

log = logging.getLogger(__name__)

_last_acts: list[Callable[[], None]] = []
"""The functions that are called before this worker ends."""

_watched: list[tuple[int, int]] = []
"""A file that this worker holds open: its descriptor, and its inode, which no other open file has."""


def watch_descriptors(*last_acts: Callable[[], None]) -> None:
    """Hold a file open from now on, by which `are_closed` finds that all files were closed.

    Args:
        last_acts: what this worker does without any file before it ends.
    """
    _last_acts[:] = last_acts
    reading, _writing = os.pipe()
    _watched[:] = [(reading, os.fstat(reading).st_ino)]


def are_closed() -> bool:
    """Return whether the watched file was closed since; False where none is watched."""
    try:
        for number, inode in _watched:
            if os.fstat(number).st_ino != inode:
                return True
    except OSError:
        return True
    return False


def end_worker() -> NoReturn:
    """End this process at once: code of the application has spoilt it, and its supervisor replaces it."""
    for act in _last_acts:
        act()
    os._exit(1)


def end_spoilt_process(worker: int, name: str) -> None:
    """End this process if code of the application has forked it, or has closed the files of the worker.

    Args:
        worker: the process in which the code began.
        name: the name of the code.
    """
    if os.getpid() != worker:
        os._exit(0)
    if are_closed():
        log.error("%s has closed the files of its worker, which ends", name)
        end_worker()  # its supervisor charges this attempt alone
