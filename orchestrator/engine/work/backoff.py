"""The pause before the next attempt.

Exponential backoff with full jitter: Brooker (2015), Exponential Backoff And Jitter, AWS Architecture Blog.
"""

from __future__ import annotations

import random
from datetime import timedelta

from orchestrator.configuration.conf import conf
from orchestrator.definition.refusals import LONGEST
from orchestrator.exceptions import Retry

spread = random.Random()  # noqa: S311  # not secrecy
"""The source of the jitter, apart from other random numbers, so that a test can replace it alone."""


def delay(attempt: int, base: float | None = None) -> timedelta:
    """Return the pause after attempt number n, counted from 1: between nothing and base * 2^(n - 1).

    `base` is in seconds; the setting BACKOFF_SECONDS when None.
    """
    settings = conf()
    longest = min(
        settings.BACKOFF_CAP_SECONDS,
        (settings.BACKOFF_SECONDS if base is None else base)
        * 2 ** min(attempt - 1, 30),
    )
    return timedelta(seconds=spread.uniform(0, longest))


def pause(attempt: int, error: Exception, base: float | None = None) -> timedelta:
    """Return the pause after attempt number n: the one that its error asks for, else `delay`."""
    if isinstance(error, Retry) and error.after is not None:
        return min(max(error.after, timedelta(0)), LONGEST)
    return delay(attempt, base)
