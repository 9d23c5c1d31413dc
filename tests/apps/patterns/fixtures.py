"""Makes the workflows known to the engine for a module of tests, and starts workers who know them too."""

from collections.abc import Callable, Iterator

import pytest
from django.conf import settings

from tests.apps.patterns.catalogue import WORKFLOWS
from tests.services.crews import QUICK, knowing, told
from tests.services.valkey import ValkeyServer
from tests.services.workers import Workers, hired, said

__all__ = ["Start", "flows", "press", "said", "start"]

Start = Callable[..., Workers]
OWN = QUICK | {"APPS": "tests.apps.patterns", "QUEUES": "press"}
OWN |= {"HEARTBEAT_SECONDS": 0.5}


flows = knowing(*WORKFLOWS, autouse=False)


@pytest.fixture
def press(monkeypatch: pytest.MonkeyPatch) -> str:
    """Let there be a queue of that name beside the default one."""
    monkeypatch.setitem(settings.RQ_QUEUES, "press", settings.RQ_QUEUES["procession"])
    return "press"


@pytest.fixture
def start(valkey: ValkeyServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Return a function that starts workers who know the workflows, with further settings of the engine."""

    def run(processes: int = 2, **more: object) -> Workers:
        told(monkeypatch, OWN | more)
        return hire(processes)

    with hired() as hire:
        yield run
