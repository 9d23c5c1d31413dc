"""Makes the long work known to the engine for a module of tests, and starts workers who know it too."""

from collections.abc import Callable, Iterator

import pytest

from tests.apps.long_work import handlers
from tests.apps.long_work.processes import Errands, LongLayer, LongMap, LongStep
from tests.apps.long_work.ways import ACTIONS, journal
from tests.services.crews import knowing, set_out
from tests.services.workers import Workers, hired, said

__all__ = ["Begin", "begin", "long_work", "said", "written"]

Begin = Callable[..., Workers]
"""Starts a supervisor with so many workers."""


assert handlers.__name__  # importing it has registered them
long_work = knowing(LongStep, LongMap, LongLayer, Errands, autouse=False)


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
