"""One piece of work at a time on an idle system."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from bench.game import Figures

PAUSE_SECONDS = 0.02
"""The pause between two pieces of work, in which the workers fall asleep."""
WARM = 3
ONE_BY_ONE = 30
"""How many pieces of work a round has."""
LOOK_SECONDS = 0.001
"""The pause between two looks at whether one has ended."""


def idle_figures(rounds: int, once: Callable[[], tuple[float, float]]) -> Figures:
    """Return the times from just before the call to the end, and from its return to the end.

    Args:
        rounds: how many pieces of work to measure, at least two.
        once: makes one call and waits for the end; returns the times of the call's return and of the end.
    """
    whole, after = list[float](), list[float]()
    for _ in range(WARM + max(rounds, 2)):
        begun = time.time()
        called, ended = once()
        whole.append((ended - begun) * 1000)
        after.append((ended - called) * 1000)
        time.sleep(PAUSE_SECONDS)
    whole, after = whole[WARM:], after[WARM:]
    return {
        "per_second": 1000 / statistics.mean(whole),
        "p50_ms": statistics.median(whole),
        "p95_ms": statistics.quantiles(whole, n=20)[18],
        "after_call_p50_ms": statistics.median(after),
    }
