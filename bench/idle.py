"""One piece of work at a time on a system that has nothing else to do."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from bench.game import Figures

PAUSE_SECONDS = 0.02
"""Between two of them, so that the workers have gone to sleep."""
WARM = 3
ONE_BY_ONE = 30
"""How many are looked at in a round."""
LOOK_SECONDS = 0.001
"""Between two looks at whether one has ended."""


def idle_figures(rounds: int, once: Callable[[], tuple[float, float]]) -> Figures:
    """What it takes from just before the call to the end, and from its return to the end.

    Args:
        rounds: how many are looked at, at least two.
        once: calls for one and waits for it; gives the moments of the call's return and of the end.
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
