"""Makes what waits outside known to the engine for a module of tests, and starts workers who know it too."""

from collections.abc import Callable, Iterator

import pytest

from tests.apps.waiting_calls import handlers, processes
from tests.apps.waiting_calls.ways import forget
from tests.services.crews import knowing, set_out
from tests.services.declared import declared
from tests.services.workers import Workers, hired, said

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


@pytest.fixture
def begin(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None, waiting_calls: None
) -> Iterator[Begin]:
    """Return a function that starts workers who know what waits outside."""
    set_out(monkeypatch, SWEEP_SECONDS=1, BLOCKED_SECONDS=1)
    with hired() as hire:
        yield lambda processes=1: hire(processes)
