"""Games of other systems, whose processes are stopped while their chains are sent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import connection

from bench import checks
from bench.game import BenchFailed, Figures, Game, Size
from bench.steps_told import LOG, chain_figures, step_times
from bench.workers import Team

ROOT = Path(__file__).resolve().parent.parent
SAID = 500
"""How many letters of a system's output a failure shows."""
SECONDS_TO_END = 10


class PeerGame(Game):
    """Chains in another system.

    Args:
        size: `count` chains.
        peer: the name of its module.
        length: steps of a chain.
        number: which Fibonacci number each step computes; 0 for none.
    """

    def __init__(self, size: Size, peer: str, length: int, number: int = 0) -> None:
        super().__init__(size)
        self.peer = peer
        self.length = length
        self.number = number
        self.name = f"{peer}, {shape(length, number)}"
        self.folder = Path()
        self.environ: dict[str, str] = {}
        self.team = Team([])

    @contextmanager
    def at_hand(self) -> Iterator[None]:
        with (
            tempfile.TemporaryDirectory() as folder,
            scratch_database() as database,
        ):
            self.folder = Path(folder)
            self.environ = {
                **os.environ,
                "REDIS_URL": settings.REDIS_URL,
                "DATABASE_URL": database,
                LOG: str(self.log),
            }
            self._have("prepare")
            with self._workers():
                self._have("send", 4 * self.size.processes, self.length, 0)
                self._wait(4 * self.size.processes)
                self.log.unlink()
                yield

    @property
    def log(self) -> Path:
        """The file in which the steps write their times."""
        return self.folder / "told"

    def prepare(self) -> None:
        self._signal(signal.SIGSTOP)
        self._have("send", self.size.count, self.length, self.number)

    def run(self) -> Figures:
        units = self.size.count * self.length
        before, begun = self.team.used(), time.time()
        self._signal(signal.SIGCONT)
        self._wait(self._lines)
        used = self.team.figures(before, units)
        times = step_times(self.log)
        if self.number:
            return {**chain_figures(times), **used}
        return {"per_second": units / (times[-1][1] - begun), **used}

    def check(self) -> None:
        checks.check_equal(
            f"{self.name}: steps told", len(step_times(self.log)), self._lines
        )

    @property
    def _lines(self) -> int:
        return self.size.count * (self.length if self.number else 1)

    @contextmanager
    def _workers(self) -> Iterator[None]:
        """Run its workers for the block: a group of processes with the first as its leader."""
        with (self.folder / "said").open("w") as said:
            self.process = subprocess.Popen(
                self._command("work", self.size.processes),
                cwd=ROOT,
                env=self.environ,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        self.team = Team([self.process.pid])
        try:
            yield
        finally:
            self._signal(signal.SIGCONT)
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(SECONDS_TO_END)
            self._signal(signal.SIGKILL)
            self.process.wait()

    def _have(self, what: str, *numbers: int) -> None:
        """Run a command of its module, in a process of its own."""
        try:
            subprocess.run(
                self._command(what, *numbers),
                cwd=ROOT,
                env=self.environ,
                capture_output=True,
                text=True,
                check=True,
                timeout=self.size.patience,
            )
        except subprocess.CalledProcessError as error:
            raise BenchFailed(
                f"{self.name}: {what} failed: {error.stderr[-SAID:]}"
            ) from None
        except subprocess.TimeoutExpired:
            raise BenchFailed(
                f"{self.name}: {what} did not end within {self.size.patience:g} s"
            ) from None

    def _command(self, what: str, *numbers: int) -> list[str]:
        words = ["-m", "bench.systems", self.peer, what]
        return [sys.executable, *words, *map(str, numbers)]

    def _wait(self, lines: int) -> None:
        self.wait(lambda: self._has_told(lines), "the end of its chains")

    def _has_told(self, lines: int) -> bool:
        if self.process.poll() is not None:
            said = (self.folder / "said").read_text()[-SAID:]
            raise BenchFailed(f"{self.name}: its workers have ended: {said}")
        return self.log.exists() and self.log.read_bytes().count(b"\n") >= lines

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


def shape(length: int, number: int) -> str:
    """Return the name of a chain."""
    return f"{length} x fibonacci({number})" if number else f"chain of {length}"


@contextmanager
def scratch_database() -> Iterator[str]:
    """Return the address of an empty PostgreSQL database beside the configured one; "" for SQLite."""
    if connection.vendor != "postgresql":
        yield ""
        return
    name = f"{connection.settings_dict['NAME']}_peers"
    quoted = connection.ops.quote_name(name)
    _execute(f"DROP DATABASE IF EXISTS {quoted} WITH (FORCE)")
    _execute(f"CREATE DATABASE {quoted}")
    try:
        yield _address(name)
    finally:
        _execute(f"DROP DATABASE IF EXISTS {quoted} WITH (FORCE)")


def _address(name: str) -> str:
    configured = urlsplit(os.environ["DATABASE_URL"])
    return urlunsplit(configured._replace(path=f"/{name}"))


def _execute(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)
