"""Ends a child process when its parent ends, where the system can do that."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def end_with(parent: int) -> Callable[[], None] | None:
    """Return what a child of the process `parent` calls before it runs its program, or None if the system lacks it.

    The child is then sent SIGTERM when its parent ends in any way, SIGKILL included.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(
        None, use_errno=True
    )  # loaded here: nothing may be loaded between fork and exec

    def ask() -> None:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:  # it ended before it could be asked for
            os._exit(1)

    return ask
