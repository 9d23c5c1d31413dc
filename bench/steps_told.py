"""Steps that write their times down, the same in every system: naive Fibonacci numbers, or no work and the last end
alone.

This module imports nothing of Django: other systems run it in processes of their own.
"""

from __future__ import annotations

import os
import statistics
import time
from itertools import pairwise
from pathlib import Path

LOG = "PROCESSION_BENCH_LOG"
"""The environment variable with the path of the file."""


def fibonacci(number: int) -> int:
    """Return the number, computed in the slowest way."""
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def step(left: int, number: int) -> None:
    """Run one step of a chain, of which `left` steps are to run with it.

    It computes that Fibonacci number and writes its times down. For 0 it does nothing, and the last step alone writes.
    """
    begun = time.time()
    if number:
        fibonacci(number)
    if number or left == 1:
        line = f"{begun} {time.time()}\n".encode()
        file = os.open(os.environ[LOG], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(file, line)  # in one go, so that several may write
        finally:
            os.close(file)


def step_times(path: Path) -> list[tuple[float, float]]:
    """Return when each written step began and ended, in order."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = [tuple(map(float, line.split())) for line in lines]
    return sorted((begun, ended) for begun, ended in found)


def chain_figures(times: list[tuple[float, float]]) -> dict[str, float]:
    """Return the time of one chain from its first begin to its last end, and the median pause between steps."""
    seconds = times[-1][1] - times[0][0]
    pauses = [then[0] - before[1] for before, then in pairwise(times)]
    return {
        "per_second": len(times) / seconds,
        "total_ms": seconds * 1000,
        "gap_ms": statistics.median(pauses) * 1000,
    }
