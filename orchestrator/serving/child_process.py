"""One child process: started in a group of its own, restarted when it dies, and killed in the end."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.process_group import end_with_parent
from orchestrator.serving.log import last_lines

FIRST_PAUSE = 0.5  # seconds before a dead child is started again; doubled each time
LONGEST_PAUSE = 30.0
STEADY_AFTER = 30.0  # seconds of life that reset the pause


@dataclass
class ChildProcess:
    """A program that should run as long as its parent does.

    Args:
        name: its name in messages.
        command: the program and its arguments.
        environ: the whole environment it gets.
        folder: its working directory.
        log: the file that its output is appended to.
        keep: file descriptors it inherits.
    """

    name: str
    command: Sequence[str]
    environ: Mapping[str, str]
    folder: Path
    log: Path
    keep: Sequence[int] = ()
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    pause: float = FIRST_PAUSE
    start_at: float | None = field(default=None)

    def start(self) -> None:
        """Start the program; its output goes to the log file."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command,
                env=self.environ,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=self.keep,
                process_group=0,  # Ctrl-C reaches the parent alone, which then ends everything in order
                preexec_fn=end_with_parent(os.getpid(), signal.SIGTERM),  # noqa: PLW1509  the parent has no threads
            )
        self.started_at = time.monotonic()
        self.start_at = None

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def look_after(self) -> str:
        """Start the program again if it has died, after a pause that grows; return a line about it, or ""."""
        if self.alive:
            return ""
        now = time.monotonic()
        if self.start_at is not None:
            if now >= self.start_at:
                self.start()
            return ""
        if now - self.started_at > STEADY_AFTER:
            self.pause = FIRST_PAUSE
        self.start_at = now + self.pause
        line = (
            f"{self.name} ended with {self.ending}; starting it again in {self.pause:g} s. "
            f"Its log ends: {last_lines(self.log) or 'nothing'} (all of it in {self.log})"
        )
        self.pause = min(self.pause * 2, LONGEST_PAUSE)
        return line

    @property
    def ending(self) -> str:
        """How the program ended, in words."""
        code = self.process.returncode if self.process else None
        if code is not None and code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit code {code}"

    def ask_to_end(self) -> None:
        if self.process and self.alive:
            self.process.terminate()

    def wait_until(self, moment: float) -> None:
        """Wait for the program's end until `moment` of the monotonic clock, then kill the rest of its group."""
        if self.process is None:
            return
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(max(0.0, moment - time.monotonic()))
        with suppress(ProcessLookupError):
            # Processes that the program started may still run.
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
