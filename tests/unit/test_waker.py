"""Who looks after what workers hold is woken when it would sleep for too long, and not each time."""

import os
import select
import time
from collections.abc import Callable

import pytest

from orchestrator.engine.work.worker_slice import Claim, lateness
from orchestrator.workers.shared_memory.claims import CLAIMS_SECONDS, SharedClaims
from orchestrator.workers.take_over import TakeOver, Waker

NEVER = float("inf")


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Return what is written to wake it."""
    found: list[bytes] = []
    usual = os.write

    def write(file: int, data: bytes) -> int:
        found.append(data)
        return usual(file, data)

    monkeypatch.setattr(os, "write", write)
    return found


def test_while_it_is_awake_nobody_wakes_it(written: list[bytes]) -> None:
    Waker().wake(0.0)

    assert not written


def test_what_is_shown_while_it_looks_is_not_missed(written: list[bytes]) -> None:
    waker = Waker()

    def look() -> float:
        waker.wake(time.monotonic() + 60)
        return NEVER

    waker.sleep(look)

    assert len(written) == 1


def test_only_what_is_due_before_it_is_up_wakes_it(
    written: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    waker, up = Waker(), time.monotonic() + 60
    usual: Callable[..., object] = select.select

    def others(*asked: object) -> object:
        waker.wake(up + 1)
        assert not written
        waker.wake(up - 1)
        return usual(*asked)

    monkeypatch.setattr(select, "select", others)
    waker.sleep(lambda: up)

    assert len(written) == 1


def test_a_worker_says_by_when_its_claims_are_looked_at() -> None:
    told: list[float] = []
    held = SharedClaims(told.append)
    held.show_claimed([Claim("step:1", ""), Claim("step:2", "")], 7.0)

    assert told == [7.0 + CLAIMS_SECONDS]


def test_where_a_worker_is_late_its_claims_are_looked_at_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both count from the lateness that the page has, whatever it is by then."""
    monkeypatch.setattr(lateness, "factor", 3.0)
    told: list[float] = []
    held = SharedClaims(told.append)
    held.show_claimed([Claim("step:1", ""), Claim("step:2", "")], 7.0)
    others = TakeOver("default", {"A": held})
    monkeypatch.setattr(lateness, "factor", 1.0)

    assert told == [others.soonest()] == [7.0 + 3 * CLAIMS_SECONDS]
