"""The open files of a worker process, which code of the application may close: sockets, pipes, shared memory.

A worker whose files are closed would write into those that get their numbers next. So it ends at once.
"""

from __future__ import annotations

import os

_watched: list[tuple[int, int]] = []
"""A file that this worker holds open: its descriptor, and its inode, which no other open file has."""


def watch_descriptors() -> None:
    """Hold a file open from now on, by which `are_closed` finds that all files were closed."""
    reading, _writing = os.pipe()
    _watched[:] = [(reading, os.fstat(reading).st_ino)]


def are_closed() -> bool:
    """Return whether the watched file was closed since; False where none is watched."""
    try:
        return any(os.fstat(number).st_ino != inode for number, inode in _watched)
    except OSError:
        return True
