"""What a visit's bar is made of: attempts that failed, the time between them, standing still, and going on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from monitoring.queries.instance.axis import axis_of
from monitoring.queries.instance.stretches import (
    VisitTurn,
    stretches_of,
    troubled_spans,
)
from orchestrator.models import StepKind, StepRun

START = datetime(2026, 11, 23, tzinfo=UTC)
AXIS = axis_of([START, START + timedelta(seconds=100)])


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def tones(
    turns: Sequence[tuple[float, str]],
    status: str,
    *,
    ended: bool = True,
    kind: StepKind | str = StepKind.STEP,
) -> list[tuple[str, float]]:
    """Return each part with its length in seconds, of a visit of a hundred seconds."""
    run = StepRun(kind=kind, started_at=START, finished_at=at(100) if ended else None)
    told = [VisitTurn(at(moment), way) for moment, way in turns]
    parts = stretches_of(run, status, at(100), told, AXIS)
    return [(part.tone, round(part.width / 10, 3)) for part in parts]


def test_s4_3_a_visit_without_a_failure_is_one_part() -> None:
    assert tones([], "done") == [("attempt", 100)]
    assert tones([], "waiting", ended=False, kind=StepKind.ASK) == [("waiting", 100)]


def test_s4_3_of_attempts_that_are_repeated_the_first_failure_is_shown() -> None:
    assert tones([(10, "again")], "done") == [
        ("failed", 10),
        ("retrying", 90),
        ("attempt", 0),
    ]


def test_s4_3_standing_still_and_going_on_are_shown_as_often_as_they_happened() -> None:
    turns = [(10, "again"), (30, "stopped"), (60, "on"), (70, "stopped"), (90, "on")]
    assert tones(turns, "done") == [
        ("failed", 10),
        ("retrying", 20),
        ("stopped", 30),
        ("failed", 10),
        ("stopped", 20),
        ("attempt", 10),
    ]


def test_s4_3_what_stands_still_now_has_no_end() -> None:
    turns = [(40, "stopped")]
    assert tones(turns, "failed", ended=False) == [("failed", 40), ("stopped", 60)]


def test_s4_3_a_deadline_that_fails_ends_a_wait_not_an_attempt() -> None:
    turns = [(40, "stopped"), (50, "on")]
    assert tones(turns, "done", kind="") == [
        ("waiting", 40),
        ("stopped", 10),
        ("waiting", 50),
    ]


@pytest.mark.parametrize("moment", [-5, 0, 100, 105])
def test_s4_3_what_was_not_within_the_visit_is_no_part_of_it(moment: float) -> None:
    assert tones([(moment, "again")], "done") == [("attempt", 100)]


def test_s4_3_a_process_is_shown_where_it_did_not_simply_go_on() -> None:
    told = [
        (at(0), "running"),
        (at(10), "retrying"),
        (at(15), "retrying"),
        (at(20), "failed"),
        (at(50), "running"),
        (at(60), "paused"),
    ]
    assert troubled_spans(told, at(100)) == [
        ("retrying", at(10), at(20)),
        ("failed", at(20), at(50)),
        ("paused", at(60), at(100)),
    ]
