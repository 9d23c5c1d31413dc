"""Makes the workflows known to the engine for a module of tests, and starts workers who know them too."""

from collections.abc import Iterator

import pytest

from orchestrator.testing import registered
from tests.apps.interrupted_undo import processes
from tests.services.workers import Workers

__all__ = ["hands", "harbour"]

QUICK = {
    "PROCESSION_APPS": "tests.apps.interrupted_undo",
    "PROCESSION_BACKOFF_SECONDS": "0.1",
    "PROCESSION_SWEEP_SECONDS": "0.2",
}
WORKFLOWS = (processes.Overrun, processes.Endless, processes.Voyage)


@pytest.fixture(scope="module")
def harbour() -> Iterator[None]:
    """Let the running code have these workflows; for a whole module, as the invariants need them after each test."""
    with registered(*WORKFLOWS):
        yield


@pytest.fixture
def hands(monkeypatch: pytest.MonkeyPatch, transactional_db: None) -> Iterator[Workers]:
    """Return two workers who know the harbour; the test starts them."""
    for name, value in QUICK.items():
        monkeypatch.setenv(name, value)
    workers = Workers(processes=2)
    yield workers
    workers.stop()
