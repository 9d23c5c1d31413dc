"""Layout of DOT by Graphviz, in processes of its own.

Graphviz is written in C: while it works, no other Python code of its process runs, and a bug in it can crash the
process. So a shared process lays out small pictures, and a process of its own each large one. Both end with this
process, since their input closes.
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


class GraphvizProcess:
    """A process of Graphviz that lays out one picture at a time. The first picture starts it, also after it ended.

    Args:
        nice: its niceness, 0 to 19; a higher number leaves more time to other processes.
    """

    def __init__(self, *, nice: int = 0) -> None:
        self.nice = nice
        self._one_at_a_time = Lock()
        self._process: subprocess.Popen[str] | None = None

    def lay_out(self, dot: str) -> str:
        """Return the SVG that Graphviz makes of DOT. It is not safe for pages yet.

        Raises:
            LayoutFailed: Graphviz refused the DOT, crashed, or took too long.
        """
        with self._one_at_a_time:
            process = self._running()
            overdue = Timer(PATIENCE, process.kill)
            overdue.start()
            try:
                answer = _ask(process, dot)
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
        """End the process, also in the middle of a picture."""
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


def _ask(process: subprocess.Popen[str], dot: str) -> str:
    """Return the line that the process answers with; empty when it ended."""
    if process.stdin is None or process.stdout is None:
        return ""
    try:
        process.stdin.write(f"{json.dumps(dot)}\n")
        process.stdin.flush()
        return process.stdout.readline()
    except BrokenPipeError:
        return ""


_kept = GraphvizProcess()
atexit.register(_kept.end)


def lay_out_small(dot: str) -> str:
    """Lay out a small picture in the shared process.

    Raises:
        LayoutFailed: there is none.
    """
    return _kept.lay_out(dot)


def lay_out_large(dot: str) -> str:
    """Lay out a large picture in a process of its own, beside the small ones.

    Raises:
        LayoutFailed: there is none.
    """
    alone = GraphvizProcess(nice=10)
    try:
        return alone.lay_out(dot)
    finally:
        alone.end()
