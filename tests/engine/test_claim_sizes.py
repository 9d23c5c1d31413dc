"""How much is claimed at once: as much as can be begun in time, as long as the work goes on as it did."""

from typing import Any

import pytest

from orchestrator import start_process
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import step_runs
from orchestrator.engine.work.worker_slice import BEGIN_SECONDS
from tests.apps.long_work.fixtures import long_work, written
from tests.apps.long_work.processes import LongStep
from tests.apps.long_work.ways import ACTIONS

__all__ = ["long_work", "written"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("long_work"),
]


class Clock:
    """A clock that only passes while a step runs."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def take(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Have the worker of this process go by a clock of its own."""
    clock = Clock()
    monkeypatch.setattr(draining, "time", clock)
    monkeypatch.setattr(draining, "BEGIN_SECONDS", BEGIN_SECONDS)
    return clock


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many steps are claimed each time that there are any."""
    found: list[int] = []
    usual = step_runs.claim

    def claim(queue: str, owner: str, limit: int, *args: Any, **more: Any) -> Any:
        claimed = usual(queue, owner, limit, *args, **more)
        found.extend([limit] * bool(claimed))
        return claimed

    monkeypatch.setattr(step_runs, "claim", claim)
    return found


def have(clock: Clock, *seconds: float) -> None:
    """Run so many processes of one step, each of which takes its time."""
    left = list(seconds)
    for number in range(len(seconds)):
        name = f"n{number}"
        ACTIONS[name] = lambda: clock.take(left.pop(0))
        start_process(LongStep, LongStep.Input(name))
    drain()


@pytest.mark.parametrize(
    ("seconds", "claimed"),
    [
        ([0.001] * 60, [4, 32, 32]),
        ([0.03] * 12, [4, 4, 4]),
        ([*[0.001] * 4, 0.2, *[0.001] * 40], [4, 32, 4, 32, 32]),
    ],
    ids=["full batches after the first", "slow", "held up once"],
)
def test_as_much_is_claimed_as_can_be_begun_in_time(
    seconds: list[float], claimed: list[int], clock: Clock, sizes: list[int]
) -> None:
    have(clock, *seconds)

    assert sizes == claimed
