"""The steps: one breaks, of every other part, as long as nothing has been mended."""

import time
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from orchestrator.definition import Failure

SWITCH: Path = settings.DATA_DIR / "parts.mended"
PAUSE = 0.03
"""Seconds that a step takes, so that kills meet one."""


@dataclass(frozen=True)
class Job:
    """The input of a process: its number, and into how many parts it is divided."""

    number: int = 0
    parts: int = 0


def is_bad(number: int) -> bool:
    """Tell whether the part of this number breaks."""
    return number % 2 == 1


def numbers(parts: int) -> list[int]:
    time.sleep(PAUSE)
    return list(range(parts))


def prepare(number: int) -> int:
    time.sleep(PAUSE)
    return number


def finish(prepare: int) -> int:
    """Break, or return ten times the number."""
    time.sleep(PAUSE)
    if is_bad(prepare) and not SWITCH.exists():
        raise ConnectionError(f"part {prepare} is broken")
    return prepare * 10


def explain(error: Failure) -> str:
    time.sleep(PAUSE)
    return f"{error.step}: {error.child.message if error.child else error.message}"


def total(piece: list[int]) -> int:
    return sum(piece)


def mend() -> None:
    """Let nothing break any more."""
    SWITCH.touch()


def unmend() -> None:
    SWITCH.unlink(missing_ok=True)
