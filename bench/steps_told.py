"""Steps that write down when they ran, the same in every system: naive Fibonacci numbers, or nothing but the last end.

Nothing of Django is imported here: other systems run it in processes of their own.
"""

from __future__ import annotations

import os
import statistics
import time
from itertools import pairwise
from pathlib import Path

LOG = "PROCESSION_BENCH_LOG"
"""The variable that names the file to write to."""


def fibonacci(number: int) -> int:
    """The number, in the slowest way there is."""
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def step(left: int, number: int) -> None:
    """One step of a chain, `left` of which are to run with it.

    It computes that Fibonacci number and writes down when. Of 0 it does nothing, and the last one alone is written.
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


def told(path: Path) -> list[tuple[float, float]]:
    """When each step that was written down began and ended, in order."""
    lines = path.read_text().splitlines() if path.exists() else []
    found = [tuple(map(float, line.split())) for line in lines]
    return sorted((begun, ended) for begun, ended in found)


def chain_figures(times: list[tuple[float, float]]) -> dict[str, float]:
    """Of one chain: from its first step's begin to its last one's end, and the median pause between steps."""
    seconds = times[-1][1] - times[0][0]
    pauses = [then[0] - before[1] for before, then in pairwise(times)]
    return {
        "per_second": len(times) / seconds,
        "total_ms": seconds * 1000,
        "gap_ms": statistics.median(pauses) * 1000,
    }
