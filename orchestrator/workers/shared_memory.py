"""Memory that a process shares with the children that it forks.

A field of eight bytes is written at once: a reader needs no lock to see it as it was, or as it is.
"""

from __future__ import annotations

import mmap
from ctypes import sizeof
from typing import Any, TypeVar

T = TypeVar("T")


def shared(form: type[T]) -> T:
    """Makes a value of a type of ctypes, all zeros, in memory that children share."""
    made: Any = form
    value: T = made.from_buffer(mmap.mmap(-1, sizeof(made)))
    return value
