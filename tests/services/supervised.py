"""A worker of this process with a supervisor that looks when it is told to."""

import time

import pytest

from orchestrator.engine.loops import drain as draining
from orchestrator.engine.steps import session
from orchestrator.engine.work import worker_slice
from orchestrator.engine.work.worker_slice import BEGIN_SECONDS
from orchestrator.workers.current_worker import CurrentWorker
from orchestrator.workers.shared_memory.claims import SharedClaims
from orchestrator.workers.take_over import TakeOver


class Supervised(CurrentWorker):
    """A worker of this process, and who looks after what it holds; the work itself lets it look."""

    def __init__(self) -> None:
        self.shown = SharedClaims()
        super().__init__(held=self.shown)
        self.others = TakeOver("default", {self.owner: self.shown})

    def look(self) -> None:
        """Let what is held be looked at when it is time."""
        time.sleep(BEGIN_SECONDS + 0.05)
        self.others.look()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a step count as quick also on a machine that has much else to do."""
    hold_long(monkeypatch)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let four quick steps be claimed together."""
    hold_long(monkeypatch)
    monkeypatch.setattr(draining, "FEW", 4)
    monkeypatch.setattr(draining, "BEGIN_SECONDS", 30)
    monkeypatch.setattr(draining, "GO_ON_SECONDS", 30)


def hold_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let results be held for as long as a test takes."""
    for module in (session, worker_slice):
        monkeypatch.setattr(module, "HOLD_SECONDS", 30)
