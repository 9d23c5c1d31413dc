"""A child process and the processes that its work has started: one process group, which ends with the child."""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

RESPAWN_SECONDS = 5.0
"""A helper that has ended is not started again before that: what ended it may end the next one too."""

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
STOPPED = b"Tt"
"""What Linux calls a process that a signal or a debugger has stopped."""


def fork(run: Callable[[], None]) -> int:
    """Runs a function in a child process, which leads a group of its own and ends with its parent; gives its id."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _be_child(parent, run)
    lead(pid)  # here and in the child: before either goes on
    return pid


def _be_child(parent: int, run: Callable[[], None]) -> None:
    status = 1
    try:
        lead()
        if ask := end_with(parent, signal.SIGKILL):  # so that no orphan goes on
            ask()
        run()
        status = 0
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:
        log.exception("process %s failed", os.getpid())
    finally:
        os._exit(status)


def end_with(parent: int, number: signal.Signals) -> Callable[[], None] | None:
    """Return what a child of the process `parent` calls first, or None if the system lacks it.

    The child is then sent this signal when its parent ends in any way, SIGKILL included.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # nothing may be loaded between fork and exec

    def ask() -> None:
        libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it ended before it could be asked for
            os._exit(1)

    return ask


def call(name: str) -> None:
    """Gives this process a name of up to 15 letters, by which `ps` and `top` show it, where the system can."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())


def _serve(name: str, run: Callable[[], None]) -> None:
    call(name)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    run()


class Helper:
    """A process beside a supervisor's workers; what it was at when it is killed is done or not.

    Args:
        name: up to 15 letters, by which `ps` and `top` show it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.pid = 0

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, or stands still, and another one is needed."""
        if self.pid and stands_still(self.pid):
            self.end()
        if self.pid and has_ended(self.pid):
            self.pid = 0
        return not self.pid

    def begin(self, run: Callable[[], None]) -> None:
        """Starts it; its supervisor alone ends it."""
        self.pid = fork(lambda: _serve(self.name, run))

    def end(self) -> None:
        """Kills it."""
        if self.pid:
            end(self.pid)
        self.pid = 0


class OptionalHelper(Helper):
    """A helper that runs as long as the settings want it.

    Args:
        name: see `Helper`.
        run: what it does until it is killed.
        is_wanted: whether there may be anything to do.
    """

    def __init__(
        self, name: str, run: Callable[[], None], is_wanted: Callable[[], object]
    ) -> None:
        super().__init__(name)
        self.run, self.is_wanted = run, is_wanted
        self._start_at = 0.0

    def start(self) -> None:
        """Starts it, unless it runs, has ended just after its start, or is not wanted."""
        now = time.monotonic()
        if self.is_gone and now >= self._start_at and self.is_wanted():
            self._start_at = now + RESPAWN_SECONDS
            self.begin(self.run)


def lead(pid: int = 0) -> None:
    """Makes a child, by default this process, the leader of a group of its own; a second time changes nothing.

    Ctrl-C in a terminal then reaches the supervisor alone, which ends its children in order.
    """
    _tolerant(os.setpgid, pid, pid)


def ask_to_end(leader: int) -> None:
    """Asks the child alone: what it has started may be what its present piece of work waits for."""
    _tolerant(os.kill, leader, signal.SIGTERM)


def kill(leader: int) -> None:
    """Kills a child and all that its work has started."""
    _tolerant(os.killpg, leader, signal.SIGKILL)


def end(leader: int, seconds: float = 0.5) -> None:
    """Kills a child and waits so long for its end; one that hangs in the kernel may take longer."""
    kill(leader)
    until = time.monotonic() + seconds
    while not has_ended(leader) and time.monotonic() < until:
        time.sleep(0.01)


def has_ended(leader: int) -> bool:
    """Whether a child has ended. What it left behind is killed then, before its work is begun again elsewhere."""
    if os.waitpid(leader, os.WNOHANG)[0] != leader:
        return False
    kill(leader)  # as long as anybody is left in the group, its number is nobody else's
    return True


def stands_still(pid: int) -> bool:
    """Whether a process is stopped, so that it does nothing until it is continued; known on Linux only.

    A process that sleeps, computes in C, or waits for a processor is not.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:  # it has ended, or this is not Linux
        return False
    return stat.rpartition(b") ")[2][:1] in STOPPED


def _tolerant(act: Callable[[int, int], None], pid: int, argument: int) -> None:
    try:
        act(pid, argument)
    except (ProcessLookupError, PermissionError) as error:
        log.debug("process %s has ended, or runs as somebody else: %s", pid, error)
