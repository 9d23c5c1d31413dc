"""Makes the workflows known to the engine for a module of tests, and starts workers who know them too."""

from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from orchestrator.models import Worker
from orchestrator.testing import registered
from tests.apps.patterns.catalogue import WORKFLOWS
from tests.services.patience import wait_for
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers

__all__ = ["Start", "flows", "press", "start"]

Start = Callable[..., Workers]
QUICK = {
    "PROCESSION_APPS": "tests.apps.patterns",
    "PROCESSION_QUEUES": "default,press",
    "PROCESSION_BACKOFF_SECONDS": "0.1",
    "PROCESSION_SWEEP_SECONDS": "0.2",
    "PROCESSION_LEASE_SECONDS": "4",
    "PROCESSION_HEARTBEAT_SECONDS": "0.5",
}


@pytest.fixture(scope="module")
def flows() -> Iterator[None]:
    """Let the running code have this app's workflows.

    For a whole module: the invariants are asked for after each test, and must still know the definition.
    """
    with registered(*WORKFLOWS):
        yield


@pytest.fixture
def press(monkeypatch: pytest.MonkeyPatch) -> str:
    """Let there be a queue of that name beside the default one."""
    monkeypatch.setitem(settings.RQ_QUEUES, "press", settings.RQ_QUEUES["default"])
    return "press"


@pytest.fixture
def start(valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return a function that starts workers who know the workflows and lose their patience quickly."""
    started: list[Workers] = []

    def run(processes: int = 2) -> Workers:
        for name, value in QUICK.items():
            monkeypatch.setenv(name, value)
        workers = Workers(processes)
        started.append(workers)
        workers.start()
        wait_for(
            lambda: Worker.objects.count() >= processes,
            20,
            lambda: said(workers),
        )
        return workers

    yield run
    for workers in started:
        workers.stop()


def said(workers: Workers) -> str:
    """Return the end of what the workers have logged."""
    return workers.supervisor.log.read_text()[-3000:]
