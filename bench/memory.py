"""The cost of a start, and the memory of each kind of process, first and after it has worked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from urllib.request import Request, urlopen

from bench import checks
from bench.game import BenchFailed, Figures, Game, Size
from bench.measurement import Measurement
from bench.processes import BenchErrand
from bench.run import QUEUE, registered_definition
from bench.site import GRACE_SECONDS, ROOT, site, viewer
from orchestrator.engine.processes.starts import start_process
from orchestrator.models import ProcessInstance
from orchestrator.serving.child_process import ChildProcess

PROC = Path("/proc")
SUPERVISOR = "supervisor_mb"
STARTS = 10
PAGES = ("/processes/", "/definitions/bench-errand/", "/")
EACH = 10
"""The game asks for a page after so many processes."""


class CommandStart(Game):
    """One command after the other, up to the refusal of an unknown event."""

    name, unit = "send_event", "start"

    def prepare(self) -> None:
        """Do nothing: `run` starts the commands."""

    def run(self) -> Figures:
        command = [sys.executable, "manage.py", "send_event", "BenchUnknown"]
        begun, seconds = time.monotonic(), 0.0
        for _ in range(self.size.count):
            process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)
            _, _, used = os.wait4(process.pid, 0)
            process.returncode = 0
            seconds += used.ru_utime + used.ru_stime
        return {
            "per_second": self.size.count / (time.monotonic() - begun),
            "cpu_ms": seconds * 1000 / self.size.count,
        }

    def check(self) -> None:
        """Do nothing: the commands store nothing."""


class ProcessMemory(Game):
    """So many processes, and pages that show them, on real programs: web server, supervisor, workers, caller."""

    unit = "errand"

    def __init__(self, size: Size) -> None:
        super().__init__(size)
        self.name = f"memory after {size.count:,}"
        self.started = 0

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        if not PROC.exists():
            raise BenchFailed("memory is read from /proc, which is not here")
        self.started = 0
        with (
            tempfile.TemporaryDirectory() as folder,
            registered_definition(BenchErrand),
            site(Path(folder) / "site.log", self.size.patience) as self.address,
            viewer() as self.cookie,
            self._workers(Path(folder) / "work.log"),
        ):
            yield

    @contextmanager
    def _workers(self, log: Path) -> Iterator[None]:
        words = ["work", "--queue", QUEUE, "--processes", str(self.size.processes)]
        given = {"PROCESSION_APPS": "bench", "PROCESSION_QUEUES": f"default,{QUEUE}"}
        command = [sys.executable, "manage.py", *words]
        self.work = ChildProcess("work", command, {**os.environ, **given}, ROOT, log)
        self.work.start()
        try:
            yield
        finally:
            self.work.ask_to_end()
            self.work.wait_until(time.monotonic() + GRACE_SECONDS)

    def prepare(self) -> None:
        """Do nothing: `run` starts the programs."""

    def run(self) -> Figures:
        begun = time.monotonic()
        for _ in range(self.size.count):
            start_process(BenchErrand)
            self.started += 1
        live = ProcessInstance.objects.filter(name=BenchErrand.name).live()
        self.wait(lambda: not live.exists(), "the end of all processes")
        figures = {"per_second": self.size.count / (time.monotonic() - begun)}
        for number in range(self.size.count // EACH + 1):
            self._look(PAGES[number % len(PAGES)])
        return figures | resident(os.getpid())

    def _look(self, path: str) -> None:
        asked = Request(self.address + path, headers={"Cookie": self.cookie})  # noqa: S310  our own site
        with urlopen(asked, timeout=self.size.patience) as answer:  # noqa: S310  the same
            answer.read()

    def check(self) -> None:
        checks.check_completed(BenchErrand.name, self.started, 3 * self.started)


def resident(pid: int) -> Figures:
    """Return the megabytes in memory of a process's descendants by role, of several workers the largest.

    Memory that a child shares with its parent counts for each.
    """
    found: Figures = {}
    for child in _children(pid):
        with suppress(FileNotFoundError):  # it has ended meanwhile
            role, megabytes = _role(child), _megabytes(child)
            found[role] = max(found.get(role, 0.0), megabytes)
            if role == SUPERVISOR:
                found |= resident(child)
    return found


def _megabytes(pid: int) -> float:
    status = (PROC / str(pid) / "status").read_text()
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


def _children(pid: int) -> Iterator[int]:
    for task in (PROC / str(pid) / "task").iterdir():
        yield from map(int, (task / "children").read_text().split())


def _role(pid: int) -> str:
    """Return the role of a process: by the name of a supervisor's child, else by its command."""
    name = (PROC / str(pid) / "comm").read_text().strip()
    words = (PROC / str(pid) / "cmdline").read_bytes()
    if name.startswith("procession-"):
        return f"{name.removeprefix('procession-')}_mb"
    if b"orchestrator.serving.web" in words:
        return "web_mb"
    return "worker_mb" if _parent(pid) != os.getpid() else SUPERVISOR


def _parent(pid: int) -> int:
    status = (PROC / str(pid) / "status").read_text()
    return int(re.findall(r"PPid:\s+(\d+)", status)[0])


def measurement(size: Size) -> Measurement:
    """Return the start of a command, and memory after one process and after many."""
    first, starts = replace(size, count=1), replace(size, count=STARTS)
    return Measurement(
        "memory", [CommandStart(starts), ProcessMemory(first), ProcessMemory(size)]
    )
