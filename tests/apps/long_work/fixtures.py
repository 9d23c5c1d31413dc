"""Makes the long work known to the engine for a module of tests, and starts workers who know it too."""

from collections.abc import Callable, Iterator

import pytest

from orchestrator.testing import registered
from tests.apps.long_work import handlers
from tests.apps.long_work.processes import Errands, LongLayer, LongMap, LongStep
from tests.apps.long_work.ways import ACTIONS, journal
from tests.services.crews import set_out
from tests.services.workers import Workers, hired, said

__all__ = ["Begin", "begin", "long_work", "said", "written"]

Begin = Callable[..., Workers]
"""Starts a supervisor with so many workers."""


@pytest.fixture(scope="module")
def long_work() -> Iterator[None]:
    """Let the running code have this app; for a whole module, as the invariants need it after each test."""
    assert handlers.__name__  # importing it has registered them
    with registered(LongStep, LongMap, LongLayer, Errands):
        yield


@pytest.fixture(autouse=True)
def written() -> Iterator[None]:
    """Let each test begin with an empty journal, and nothing told to the work."""
    journal().unlink(missing_ok=True)
    yield
    ACTIONS.clear()
    journal().unlink(missing_ok=True)


@pytest.fixture
def begin(
    monkeypatch: pytest.MonkeyPatch, transactional_db: None, long_work: None
) -> Iterator[Begin]:
    """Return a function that starts workers who know the long work."""
    set_out(monkeypatch, SWEEP_SECONDS=1)
    with hired() as hire:
        yield lambda processes=2: hire(processes)
