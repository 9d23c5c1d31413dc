"""Layout of DOT by Graphviz, in processes of its own.

Graphviz is C: while it works no other Python code of its process runs, and where it has a mistake the process dies. So
a small picture is laid out by a process that is kept for the next, and a large one by a process for itself. Both end
with this one: their input closes.
"""

import atexit
import json
import subprocess
import sys
from pathlib import Path
from threading import Lock, Timer

from orchestrator.exceptions import ProcessionError

PATIENCE = 60.0
"""Seconds that the layout of a picture may take."""

GRACE = 1.0
"""Seconds that a process has to end by itself."""

WORKER = Path(__file__).with_name("layout_process.py")


class LayoutFailed(ProcessionError):
    """Graphviz could not lay the diagram out."""


class Layouts:
    """A process of Graphviz, started at the first picture and again after it ended; one picture at a time.

    Args:
        nice: how much it steps back behind other processes, 0 to 19.
    """

    def __init__(self, *, nice: int = 0) -> None:
        self.nice = nice
        self._one_at_a_time = Lock()
        self._process: subprocess.Popen[str] | None = None

    def lay_out(self, dot: str) -> str:
        """The SVG that Graphviz makes of DOT, with all that Graphviz puts in it; not yet fit for a page.

        Raises:
            LayoutFailed: Graphviz refused it, died of it, or took too long.
        """
        with self._one_at_a_time:
            process = self._running()
            overdue = Timer(PATIENCE, process.kill)
            overdue.start()
            try:
                answer = _asked(process, dot)
            finally:
                overdue.cancel()
        if not answer:
            said = process.wait()
            raise LayoutFailed(f"Graphviz ended with {said} while it drew a diagram")
        svg, complaint = json.loads(answer)
        if complaint:
            raise LayoutFailed(f"Graphviz could not draw a diagram: {complaint}")
        return str(svg)

    def end(self) -> None:
        """Ends the process, also in the middle of a picture."""
        process, self._process = self._process, None
        if process is None:
            return
        try:
            process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()

    def _running(self) -> subprocess.Popen[str]:
        if self._process is not None and self._process.poll() is not None:
            self.end()
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(WORKER), str(self.nice)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="utf-8",
            )
        return self._process


def _asked(process: subprocess.Popen[str], dot: str) -> str:
    """The line that the process answers with; empty when it ended."""
    if process.stdin is None or process.stdout is None:
        return ""
    try:
        process.stdin.write(f"{json.dumps(dot)}\n")
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return ""


_kept = Layouts()
atexit.register(_kept.end)


def laid_out(dot: str) -> str:
    """The layout of a small picture.

    Raises:
        LayoutFailed: there is none.
    """
    return _kept.lay_out(dot)


def laid_out_apart(dot: str) -> str:
    """The layout of a large picture, while small ones go on.

    Raises:
        LayoutFailed: there is none.
    """
    alone = Layouts(nice=10)
    try:
        return alone.lay_out(dot)
    finally:
        alone.end()
