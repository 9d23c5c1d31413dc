"""What a visit's bar is made of: attempts that failed, the time between them, standing still, and going on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from monitoring.process.steps.axis import axis_of
from monitoring.process.steps.visit_parts import VisitTurn, stretches_of, troubled_spans
from orchestrator.models import StepKind, StepRun
from tests.services.cases import cases

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


@cases("wake_at, tone", (at(160), "waiting"), (at(100), "attempt"))
def test_a_step_that_is_called_later_waits(wake_at: datetime, tone: str) -> None:
    run = StepRun(kind="step", status="ready", started_at=START, wake_at=wake_at)
    [part] = stretches_of(run, "ready", at(100), [], AXIS)
    assert (part.tone, part.word) == (tone, tone)


AGAIN = [(10, "again"), (30, "stopped"), (60, "on"), (70, "stopped"), (90, "on")]


@cases(
    "turns, status, more, parts",
    # a visit without a failure is one part
    ([], "done", {}, "attempt 100"),
    ([], "waiting", {"ended": False, "kind": StepKind.ASK}, "waiting 100"),
    # of attempts that are repeated the first failure is shown
    ([(10, "again")], "done", {}, "failed 10, retrying 90, attempt 0"),
    # standing still and going on as often as they happened
    (
        AGAIN,
        "done",
        {},
        "failed 10, retrying 20, stopped 30, failed 10, stopped 20, attempt 10",
    ),
    # what stands still now has no end
    ([(40, "stopped")], "failed", {"ended": False}, "failed 40, stopped 60"),
    # a deadline that fails ends a wait, not an attempt
    (
        [(40, "stopped"), (50, "on")],
        "done",
        {"kind": ""},
        "waiting 40, stopped 10, waiting 50",
    ),
    # what was not within the visit is no part of it
    *(([(moment, "again")], "done", {}, "attempt 100") for moment in (-5, 0, 100, 105)),
)
def test_s4_3_what_the_bar_of_a_visit_is_made_of(
    turns: list[tuple[float, str]], status: str, more: dict[str, Any], parts: str
) -> None:
    found = tones(turns, status, **more)

    assert ", ".join(f"{tone} {length:g}" for tone, length in found) == parts


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
