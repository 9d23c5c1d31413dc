"""A copy of this process, in which something is tried that this one must not do."""

import os
import resource
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

import psutil

from tests.services.valkey import ValkeyServer

OUTCOMES = ("killed", "timed out", "survived", "unreached", "not made")
"""What comes of a mutant: "unreached" if no test runs its statement, "not made" where its function is not found."""

STILL_SECONDS = 180.0
"""For how long a copy computes nothing until it counts as one that waits for ever."""
STEP_SECONDS = 0.02
LEAST_COMPUTING = 0.01

SURVIVES, KILLED, NOT_MADE = 0, 1, 3


def in_copy(action: Callable[[], bool], most: float) -> tuple[str, float]:
    """Do something in a copy of this process, and wait for its end.

    Args:
        action: returns whether all is well.
        most: seconds of a core that it may take.

    Returns:
        "survived" if all was well, "killed" if not, "timed out" if it never ended; and the seconds of a core it took.
    """
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter(
            "ignore", DeprecationWarning
        )  # of threads, which a copy lacks
        pid = os.fork()
    if pid == 0:
        _be_copy(action, int(most))
    still = _wait(pid)
    _, status, used = os.wait4(pid, 0)
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what it has started
    computing = used.ru_utime + used.ru_stime
    code = os.waitstatus_to_exitcode(status)
    if still or code == -signal.SIGXCPU:
        return "timed out", computing
    return {SURVIVES: "survived", NOT_MADE: "not made"}.get(code, "killed"), computing


def _be_copy(action: Callable[[], bool], most: int) -> None:
    """Do it, and end without what this process would do at its own end."""
    code = KILLED
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 10))
        silence = os.open(os.devnull, os.O_RDWR)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        _share_server()
        if action():
            code = SURVIVES
    finally:
        os._exit(code)


def _share_server() -> None:
    """Leave the Valkey of the first process running: to a copy it would seem to have ended, as it is no child of it."""

    def refuse(server: ValkeyServer) -> None:
        raise RuntimeError("the server belongs to another process")

    instead = {"start": lambda server: None, "stop": refuse, "kill": refuse}
    for name, function in instead.items():
        setattr(ValkeyServer, name, function)


def _wait(pid: int) -> bool:
    """Wait until a copy has ended. End it, and return True, if it has long computed nothing: it waits for ever."""
    process, worked, since = psutil.Process(pid), 0.0, time.monotonic()
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(STEP_SECONDS)
        times = process.cpu_times()
        now = times.user + times.system
        if now - worked >= LEAST_COMPUTING:
            worked, since = now, time.monotonic()
        elif time.monotonic() - since > STILL_SECONDS:
            process.kill()
            return True
    return False
