"""A step that spends its time as it is told, and leaves a file behind for each attempt that has begun."""

import os
import time
from dataclasses import dataclass
from itertools import count, takewhile
from pathlib import Path

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import connection

from orchestrator.definition import StepContext

A_MOMENT = 1_000_000  # rounds of a loop, to see how fast this machine is just now


@dataclass(frozen=True)
class Work:
    """What a step is told: how to spend so many seconds."""

    name: str
    how: str
    seconds: float = 0


def spend(name: str, how: str, seconds: float, context: StepContext) -> int:
    """Spend the time; return the number of the attempt."""
    number = len(begun(name)) + 1
    half = folder() / f"half of {name}"
    half.write_text(str(os.getpid()))
    half.rename(folder() / f"{name}.{number}")
    if how.startswith("wait"):
        wait(how.removeprefix("wait "))
    else:
        WAYS[how](seconds if number == 1 else 0)
    return context.attempt


def begun(name: str) -> list[int]:
    """Return the processes in which the step has begun, one for each time."""
    files = (folder() / f"{name}.{number}" for number in count(1))
    return [int(file.read_text()) for file in takewhile(Path.exists, files)]


def open_gate(number: int) -> None:
    """Let those go on who wait for it."""
    (folder() / f"gate {number}").touch()


def folder() -> Path:
    """Return where the files are; it is gone with the test run's data."""
    found: Path = settings.DATA_DIR / "watched"
    found.mkdir(exist_ok=True)
    return found


def hold(seconds: float) -> None:
    """Compute in one call that lets nothing else of this process run."""
    begun_at = time.monotonic()
    max(range(A_MOMENT))
    speed = A_MOMENT / (time.monotonic() - begun_at)
    max(range(int(speed * seconds)))


def ask(seconds: float) -> None:
    """Let the database take its time."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(%s)", [seconds])


def wait(gate: str) -> None:
    """Wait for a gate, then write to the database."""
    while not (folder() / f"gate {gate}").exists():
        time.sleep(0.02)
    Group.objects.create(name=f"written at {time.monotonic()}")


WAYS = {"sleep": time.sleep, "hold": hold, "ask": ask}
