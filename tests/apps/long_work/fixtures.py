"""Makes the long work known to the engine for a module of tests, and starts workers who know it too."""

from collections.abc import Callable, Iterator

import pytest

from tests.apps.long_work import handlers
from tests.apps.long_work.processes import Errands, LongLayer, LongMap, LongStep
from tests.apps.long_work.ways import ACTIONS, JOURNAL
from tests.services.crews import beginning, knowing
from tests.services.workers import Workers, said

__all__ = ["Begin", "begin", "long_work", "said", "written"]

Begin = Callable[..., Workers]
"""Starts a supervisor with so many workers."""


assert handlers.__name__  # importing it has registered them
long_work = knowing(LongStep, LongMap, LongLayer, Errands, autouse=False)


@pytest.fixture(autouse=True)
def written() -> Iterator[None]:
    """Let each test begin with an empty journal, and nothing told to the work."""
    JOURNAL.forget()
    yield
    ACTIONS.clear()
    JOURNAL.forget()


begin = beginning("long_work", 2, SWEEP_SECONDS=1)
