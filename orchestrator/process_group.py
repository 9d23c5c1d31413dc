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
"""The least seconds between two starts of a helper: what ended one may end the next."""

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15
STOPPED = b"Tt"
"""The letter by which Linux shows a process that a signal or a debugger has stopped."""


def fork_child(run: Callable[[], None]) -> int:
    """Run a function in a child process, which leads a group of its own and ends with its parent; return its id."""
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _run_child(parent, run)
    lead_group(pid)  # here and in the child: before either goes on
    return pid


def _run_child(parent: int, run: Callable[[], None]) -> None:
    status = 1
    try:
        lead_group()
        if ask := end_with_parent(parent, signal.SIGKILL):  # so that no orphan goes on
            ask()
        run()
        status = 0
    except SystemExit as exit_:
        status = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:
        log.exception("process %s failed", os.getpid())
    finally:
        os._exit(status)


def end_with_parent(parent: int, number: signal.Signals) -> Callable[[], None] | None:
    """Return a function that a child of the process `parent` calls first; None if the system lacks it.

    The system then sends the child this signal when its parent ends in any way, SIGKILL included.
    """
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)  # nothing may be loaded between fork and exec

    def ask() -> None:
        libc.prctl(PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it ended before it could be asked for
            os._exit(1)

    return ask


def name_process(name: str) -> None:
    """Set the name, up to 15 letters, by which `ps` and `top` show this process; on Linux alone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_NAME, name.encode())


def _run_helper(name: str, run: Callable[[], None]) -> None:
    name_process(name)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    run()


class Helper:
    """A process beside a supervisor's workers, which may be killed at any moment.

    Args:
        name: up to 15 letters, by which `ps` and `top` show it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.pid = 0

    @property
    def is_gone(self) -> bool:
        """Whether it has ended, or is stopped, and a new one is needed."""
        if self.pid and is_stopped(self.pid):
            self.end()
        if self.pid and has_ended(self.pid):
            self.pid = 0
        return not self.pid

    def begin(self, run: Callable[[], None]) -> None:
        """Start it; its supervisor alone ends it."""
        self.pid = fork_child(lambda: _run_helper(self.name, run))

    def end(self) -> None:
        """Kill it."""
        if self.pid:
            end_child(self.pid)
        self.pid = 0


class OptionalHelper(Helper):
    """A helper that runs as long as the settings want it.

    Args:
        name: see `Helper`.
        run: runs in it until it is killed.
        is_wanted: returns whether it may have work.
    """

    def __init__(
        self, name: str, run: Callable[[], None], is_wanted: Callable[[], object]
    ) -> None:
        super().__init__(name)
        self.run, self.is_wanted = run, is_wanted
        self._start_at = 0.0

    def start(self) -> None:
        """Start it if it is wanted and does not run, unless it was started a moment ago."""
        now = time.monotonic()
        if self.is_gone and now >= self._start_at and self.is_wanted():
            self._start_at = now + RESPAWN_SECONDS
            self.begin(self.run)


def lead_group(pid: int = 0) -> None:
    """Make a child, by default this process, the leader of a group of its own; doing it twice does no harm.

    Ctrl-C in a terminal then reaches the supervisor alone, which ends its children in order.
    """
    _send_to(os.setpgid, pid, pid)


def terminate_child(leader: int) -> None:
    """Send SIGTERM to the child alone: its present work may wait for processes that it has started."""
    _send_to(os.kill, leader, signal.SIGTERM)


def kill_child(leader: int) -> None:
    """Kill a child and all processes that its work has started."""
    _send_to(os.killpg, leader, signal.SIGKILL)


def end_child(leader: int, seconds: float = 0.5) -> None:
    """Kill a child, and wait at most `seconds` for its end; one that hangs in the kernel may take longer."""
    kill_child(leader)
    until = time.monotonic() + seconds
    while not has_ended(leader) and time.monotonic() < until:
        time.sleep(0.01)


def has_ended(leader: int) -> bool:
    """Return whether a child has ended; if so, kill what it left behind before another worker does its work."""
    if os.waitpid(leader, os.WNOHANG)[0] != leader:
        return False
    kill_child(leader)  # while the group has a member, its number stays taken
    return True


def is_stopped(pid: int) -> bool:
    """Return whether a signal or a debugger has stopped a process; known on Linux only.

    A process that sleeps, computes in C, or waits for a processor is not stopped.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:  # it has ended, or this is not Linux
        return False
    return stat.rpartition(b") ")[2][:1] in STOPPED


def _send_to(act: Callable[[int, int], None], pid: int, argument: int) -> None:
    try:
        act(pid, argument)
    except (ProcessLookupError, PermissionError) as error:
        log.debug("process %s has ended, or runs as somebody else: %s", pid, error)
