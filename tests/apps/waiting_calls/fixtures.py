"""Makes what waits outside known to the engine for a module of tests, and starts workers who know it too."""

from collections.abc import Callable, Iterator

import pytest

from tests.apps.waiting_calls import handlers, processes
from tests.apps.waiting_calls.ways import forget
from tests.services.crews import beginning, knowing
from tests.services.declared import declared
from tests.services.workers import Workers, said

__all__ = ["Begin", "begin", "forgotten", "said", "waiting_calls"]

Begin = Callable[..., Workers]
"""Starts a supervisor with so many workers."""


assert handlers.__name__  # importing it has registered them
waiting_calls = knowing(*declared(vars(processes)), autouse=False)


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    """Let each test begin with an empty journal, and all gates closed."""
    forget()
    yield
    forget()


begin = beginning("waiting_calls", 1, SWEEP_SECONDS=1, BLOCKED_SECONDS=1)
