"""One stage of `manage.py test`: a program that ends well if something holds. Several run at once."""

import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[2]
TURN_SECONDS = 0.05
NOTE_SECONDS = 30.0
"""How often it is said how far the stages are."""
END_SECONDS = 60.0
"""What a stage may take to end what it has started, when it is interrupted."""


IDLE_SECONDS = 10.0
"""For how long cores must be idle before one stage more starts."""
IDLE_CORES = 0.5
MOST_MORE = 2
"""The most stages that idle cores let start beside those that always run at once."""

PROBE_SECONDS = 0.014
"""Seconds of a core that `probe` takes on the idle machine on which the budget of computing was measured."""

probes: list[float] = []
"""Seconds of a core that each probe beside the stages took."""


def probe() -> float:
    """Return the seconds of a core that a fixed computation takes: more on a machine whose cores are slow or shared."""
    begun, number = time.process_time(), 0
    for step in range(300_000):
        number += step % 7
    return time.process_time() - begun


def slowness() -> float:
    """Return how many times longer a computation took beside the stages than on that machine; at least 1."""
    return max(1.0, median(probes) / PROBE_SECONDS) if probes else 1.0


def slowness_now() -> float:
    """Return how many times longer than on that machine a computation takes now; at least 1."""
    return max(1.0, median(probe() for _ in range(5)) / PROBE_SECONDS)


@dataclass
class Stage:
    """A program that ends well if something holds.

    Args:
        name: of what holds.
        command: arguments of Python.
        log: where what it says is kept until it has ended; None to say it at once.
        environ: what its environment has beside this process's own.
        fine: the exit codes of a good end.
        report: where pytest is to write how each test ended.
    """

    name: str
    command: Sequence[str]
    log: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    fine: Sequence[int] = (0,)
    report: Path | None = None
    seconds: float | None = None
    """How long it took; None until it has ended."""
    computing: float = 0.0
    """Seconds of a core that it and the processes it has waited for took."""

    def start(self) -> None:
        self.begun = time.monotonic()
        with ExitStack() as stack:
            output = stack.enter_context(self.log.open("wb")) if self.log else None
            if not self.log:
                heading(self.name)
            self.process = subprocess.Popen(
                [sys.executable, *self.command],
                cwd=ROOT,
                env={**environ(), **self.environ},
                stdout=output,
                stderr=subprocess.STDOUT if output else None,
            )

    def ended(self) -> bool:
        """Tell whether it has ended; the first time that it has, say what it has said."""
        if self.seconds is None:
            pid, status, used = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self.process.returncode = os.waitstatus_to_exitcode(status)
                self.seconds = time.monotonic() - self.begun
                self.computing = used.ru_utime + used.ru_stime
                self._show()
        return self.seconds is not None

    def end(self) -> None:
        """End it, if it has not ended, as a key of interruption would: then it ends what it has started."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def _show(self) -> None:
        if self.log:
            heading(f"{self.name}, {self.seconds:.0f} s")
            say(self.log.read_text(errors="replace"))

    @property
    def ok(self) -> bool:
        return self.process.returncode in self.fine

    def so_far(self) -> str:
        """Return the stage's name, and how far it is where pytest says so."""
        said = self.log.read_text(errors="replace") if self.log else ""
        percent = re.findall(r"\[ *(\d+%)\]", said)[-1:]
        return " ".join([self.name, *percent])

    def cases(self) -> list[ElementTree.Element]:
        """Return the tests of its report."""
        if self.report is None or not self.report.exists():
            return []
        return list(ElementTree.parse(self.report).iter("testcase"))  # noqa: S314  pytest wrote it

    def counts(self) -> tuple[int, int]:
        """Return how many of its tests passed and failed; errors count as failed."""
        passed = failed = 0
        for case in self.cases():
            endings = {child.tag for child in case}
            failed += bool(endings & {"failure", "error"})
            passed += not endings & {"failure", "error", "skipped"}
        return passed, failed


def environ() -> dict[str, str]:
    """Return the environment of a stage: this one, where Python keeps what it has compiled.

    Hundreds of processes start in the tests, and would each compile the project and the asserts of the tests anew.
    """
    kept = dict(os.environ)
    kept.pop("PYTHONDONTWRITEBYTECODE", None)
    return kept


class IdleCores:
    """The number of this machine's cores that have nothing to do; 0 where Linux does not tell."""

    def __init__(self) -> None:
        self.counted, self.since = self._count(), time.monotonic()

    def mean(self) -> float:
        """Return the mean since the last answer; 0 before `IDLE_SECONDS` have passed."""
        now = time.monotonic()
        if now - self.since < IDLE_SECONDS:
            return 0.0
        before, passed = self.counted, now - self.since
        self.counted, self.since = self._count(), now
        return (self.counted - before) / passed

    def _count(self) -> float:
        """Return the seconds for which cores had nothing to do since the machine began."""
        try:
            _, _, _, _, idle, waited, *_ = Path("/proc/stat").read_text().split()[:7]
        except (OSError, ValueError):
            return 0.0
        return (int(idle) + int(waited)) / os.sysconf("SC_CLK_TCK")


def run(stages: Sequence[Stage], at_once: int, more: int = 0) -> None:
    """Run the stages in their order until all have ended.

    Args:
        stages: the stages.
        at_once: how many run at once.
        more: how many run beside these while cores are idle: some stages mostly wait for their processes.
    """
    waiting, running = list(stages), list[Stage]()
    begun = noted = time.monotonic()
    cores, most = IdleCores(), at_once
    with ended_with(running):
        while waiting or running:
            if most < at_once + more and cores.mean() > IDLE_CORES:
                most += 1
            while waiting and len(running) < most:
                running.append(waiting.pop(0))
                running[-1].start()
            time.sleep(TURN_SECONDS)
            running[:] = [stage for stage in running if not stage.ended()]
            if time.monotonic() - noted > NOTE_SECONDS:
                noted = time.monotonic()
                probes.append(probe())
                names = ", ".join(stage.so_far() for stage in running)
                say(f"{clock(noted - begun)}  {names}; {len(waiting)} stages wait")


def wait_for(stages: Sequence[Stage]) -> None:
    """Wait until all of the started stages have ended."""
    left = list(stages)
    with ended_with(left):
        while left:
            time.sleep(TURN_SECONDS)
            left[:] = [stage for stage in left if not stage.ended()]


@contextmanager
def ended_with(running: Sequence[Stage]) -> Iterator[None]:
    """End those that still run when the block is left: whoever interrupts the command wants none of them to go on."""
    try:
        yield
    finally:
        for stage in running:
            stage.end()


def clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s"


def heading(text: str) -> None:
    say(f"\n== {text}")


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
