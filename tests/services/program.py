"""A program of the project as a process of its own, on the test database."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection

from orchestrator.serving.child_process import ChildProcess
from tests.services.loaded import ForkedProcess
from tests.services.patience import A_MINUTE, SHARED
from tests.services.python import ran


def environ() -> dict[str, str]:
    """Return the environment in which another process uses this run's database, Valkey and data folder."""
    return {**os.environ, "DATABASE_URL": database_url(), "PYTHONUNBUFFERED": "1"}


def database_url() -> str:
    """Return the address of the test database that is in use now."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}").geturl()


class Program:
    """A program that tests start, end, and end badly.

    Args:
        name: of its log file.
        command: the program and its arguments.
    """

    kind = ChildProcess

    def __init__(
        self, name: str, command: Sequence[str], keep: Sequence[int] = ()
    ) -> None:
        root: Path = settings.BASE_DIR
        self.log: Path = settings.DATA_DIR / f"{name}.log"
        self.child = self.kind(name, command, environ(), root, self.log, keep)

    @property
    def pid(self) -> int:
        assert self.child.process is not None
        return self.child.process.pid

    @property
    def alive(self) -> bool:
        return self.child.alive

    def start(self) -> None:
        self.child.environ = environ()
        self.child.start()

    def stop(self, patience: float = 5) -> int | None:
        """Ask the program to end; return its exit code.

        What is left after `patience` seconds, longer on a machine that others use too, is killed.
        """
        self.child.ask_to_end()
        self.child.wait_until(time.monotonic() + patience * SHARED)
        return self.child.process.returncode if self.child.process else None

    def kill(self) -> None:
        """End the program and its children by SIGKILL."""
        self.child.wait_until(0)

    def wait_until(self, ready: Callable[[], bool], patience: float = 20) -> None:
        """Wait until `ready`, as long as the program lives."""
        deadline = time.monotonic() + max(A_MINUTE, patience * SHARED)
        while not ready():
            if not self.alive or time.monotonic() > deadline:
                raise TimeoutError(f"{self.child.name}: {self.log.read_text()[-2000:]}")
            time.sleep(0.02)


class ManagementCommand(Program):
    """A program that need not load the project first."""

    kind = ForkedProcess


def management_command(name: str, *words: str) -> Program:
    """Return a management command as a program."""
    return ManagementCommand(
        name, [sys.executable, str(settings.BASE_DIR / "manage.py"), name, *words]
    )


def run_command(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a management command to its end in a process of its own."""
    return ran("manage.py", name, *words, environ=environ())
