"""Makes what waits outside known to the engine for a module of tests, and starts workers who know it too."""

from collections.abc import Callable, Iterator

import pytest

from orchestrator.definition import ProcessManager, Workflow
from orchestrator.testing import registered
from tests.apps.waiting_calls import handlers, processes
from tests.apps.waiting_calls.ways import forget
from tests.services.crews import set_out
from tests.services.workers import Workers, hired, said

__all__ = ["Begin", "begin", "forgotten", "said", "waiting_calls"]

Begin = Callable[..., Workers]
"""Starts a supervisor with so many workers."""


@pytest.fixture(scope="module")
def waiting_calls() -> Iterator[None]:
    """Let the running code have this app; for a whole module, as the invariants need it after each test."""
    assert handlers.__name__  # importing it has registered them
    kinds = [
        value
        for value in vars(processes).values()
        if isinstance(value, type)
        and issubclass(value, Workflow | ProcessManager)
        and value.__module__ == processes.__name__
    ]
    with registered(*kinds):
        yield


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
