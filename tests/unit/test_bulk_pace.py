"""How many items of a bulk operation may be begun, and when: samples, batches, a rate, a share of a worker's time."""

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from orchestrator.engine.operations.bulk import pace, slice_timer
from orchestrator.models import BulkOperation
from tests.services.cases import cases

NOW = datetime(2026, 11, 23, 8, tzinfo=UTC)


def operation(**values: Any) -> BulkOperation:
    given: dict[str, Any] = {"samples": [1, 10], "batch": 100, "total": 1_000}
    return BulkOperation(changed_at=NOW, status="running", **(given | values))


@cases(
    "numbers, room",
    ({}, 1),
    ({"tried": 1}, 0),
    ({"done": 1}, 10),
    ({"skipped": 3}, 1),  # they say nothing of the others
    ({"done": 1, "tried": 4}, 6),  # within the second sample
    ({"done": 1, "tried": 10}, 0),
    ({"done": 10, "tried": 1}, 0),
    ({"done": 11}, 100),
    ({"done": 11, "tried": 30}, 70),
    ({"done": 11, "tried": 100}, 0),
)
def test_s6_2_a_sample_waits_for_the_last(numbers: dict[str, int], room: int) -> None:
    assert pace.batch_allowance(operation(**numbers)) == room


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What a clock shows that stands still until a test moves it."""
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_s6_2_a_rate_saves_up_no_more_than_a_second() -> None:
    asleep = operation(rate=20.0, paced_at=NOW - timedelta(hours=1))

    assert pace.rate_allowance(asleep, NOW) == 20
    asleep.paced_at = pace.rate_start(asleep, NOW, 20)
    assert pace.rate_allowance(asleep, NOW) == 0
    assert pace.rate_allowance(asleep, NOW + timedelta(seconds=0.5)) == 10


def test_s6_2_a_slow_rate_begins_one_at_a_time() -> None:
    slow = operation(rate=0.5)

    assert pace.rate_allowance(slow, NOW) == 1
    slow.paced_at = pace.rate_start(slow, NOW, 1)
    assert pace.rate_allowance(slow, NOW + timedelta(seconds=1)) == 0
    assert pace.next_wake(slow, NOW, delayed=False) == NOW + timedelta(seconds=2)
    assert pace.rate_allowance(slow, NOW + timedelta(seconds=2)) == 1


def test_without_a_rate_there_is_none() -> None:
    assert pace.rate_allowance(operation(), NOW) is None
    assert pace.rate_start(operation(), NOW, 5) is None


@cases(
    "failed, done, stops",
    (0, 0, False),
    (1, 0, True),
    (1, 19, False),
    (2, 37, True),
    (0, 50, False),
)
def test_s6_2_it_stops_above_its_ratio(failed: int, done: int, stops: bool) -> None:
    assert pace.must_stop(operation(stop_above=5.0, failed=failed, done=done)) is stops
    assert not pace.must_stop(operation(stop_above=None, failed=failed, done=done))


def test_what_is_under_way_is_looked_at_less_often_the_longer_nothing_comes() -> None:
    waits = operation(tried=100)
    pauses = [
        (pace.next_wake(waits, now, delayed=False) or now) - now
        for now in (NOW, NOW + timedelta(seconds=4), NOW + timedelta(hours=1))
    ]

    assert pauses == [pace.LEAST_PAUSE, timedelta(seconds=1), pace.LONGEST_PAUSE]


def test_nothing_left_to_do_wants_no_worker() -> None:
    assert pace.next_wake(operation(total=3, done=3), NOW, delayed=False) is None


def test_other_work_goes_first_for_longer(clock: list[float]) -> None:
    mine = slice_timer.SliceTimer()
    assert mine.is_due(others=True)
    with mine.measure():
        clock[0] += 0.1

    assert mine.is_due(others=False)
    assert not mine.is_due(others=True)
    clock[0] += 0.1 * slice_timer.REST
    assert mine.is_due(others=True)


def test_s6_5_other_work_keeps_four_fifths_of_a_worker(clock: list[float]) -> None:
    """Both are always due: whatever a slice begins has to be carried out by the same worker."""
    mine, own, other = slice_timer.SliceTimer(), 0.0, 0.0
    left = 0  # items that were begun and are not carried out yet
    while other < 100:
        if mine.is_due(others=True):
            with mine.measure() as measured:
                clock[0] += 0.1
                measured.begun = 150
            own, left = own + 0.1, left + 150
        part = min(left, 8)  # a batch of those, a batch of other work
        clock[0] += part * slice_timer.FOLLOWS + 0.05
        own, other, left = own + part * slice_timer.FOLLOWS, other + 0.05, left - part

    assert other / (own + other) >= 0.8


def test_s6_5_alone_a_slice_follows_a_slice(clock: list[float]) -> None:
    mine = slice_timer.SliceTimer()
    with mine.measure() as measured:
        measured.begun = 1_000

    assert mine.is_due(others=False)
