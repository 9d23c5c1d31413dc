"""How far a step is: stored, not more often than people can see, and announced."""

from collections.abc import Iterator
from typing import Any

import pytest

from orchestrator.engine.loops.drain import drain
from orchestrator.engine.steps import context
from orchestrator.models import StepKind
from orchestrator.signals import Change, committed
from tests.apps.patterns import patterns as p
from tests.apps.patterns import reporting
from tests.apps.patterns.desk import complaint, finished, insist, launch, visit
from tests.apps.patterns.fixtures import flows

__all__ = ["flows"]

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("flows")]


@pytest.fixture
def changes() -> Iterator[list[Change]]:
    """Return what is announced."""
    found: list[Change] = []

    def hear(change: Change, **signal: Any) -> None:
        found.append(change)

    committed.connect(hear)
    yield found
    committed.disconnect(hear)


class Clock:
    """A clock that goes on by the 256th part of what is between two showings, each time that somebody looks at it."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        self.now += context.SHOWN_SECONDS / 256
        return self.now


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have steps report by a clock of their own, so that a machine with much else to do shows as much."""
    monkeypatch.setattr(context, "time", Clock())


def running(changes: list[Change], node: str) -> int:
    """Return how often it was announced that a step is running."""
    return sum(change.steps.get(node) == "running" for change in changes)


def test_progress_is_stored_with_the_step() -> None:
    progress = visit(finished(reporting.Counting, 40), "count").progress

    assert progress == {"done": 40, "total": 40, "message": "page 40"}


def test_progress_is_announced_while_the_step_runs(changes: list[Change]) -> None:
    process = launch(reporting.Counting, 3)
    changes.clear()
    drain()

    assert running(changes, "count") == 3  # when it is taken up, and twice as it goes
    assert {change.process_id for change in changes} == {process.pk}
    assert changes[-1].steps == {"count": "done"}


def test_progress_is_stored_no_more_often_than_people_can_see(
    changes: list[Change], django_assert_max_num_queries: Any
) -> None:
    launch(reporting.Counting, 2000)
    changes.clear()
    with django_assert_max_num_queries(40):
        drain()

    # When it is taken up, when it reports first, each 256th time after that, and its end.
    assert running(changes, "count") == 1 + 1 + 1999 // 256 + 1


def test_the_end_is_told_once(changes: list[Change]) -> None:
    finished(reporting.Repeating)

    # When it is taken up, its end, and each 256th time after that.
    assert running(changes, "repeat_the_end") == 1 + 1 + 499 // 256


def test_progress_that_is_no_number_is_not_shown_and_fails_nothing() -> None:
    [counted] = finished(reporting.Miscounting).step_runs.all()

    assert (counted.status, counted.progress) == ("done", None)


def test_a_step_asks_whether_it_is_still_its_own() -> None:
    process = finished(reporting.Asking)

    assert visit(process, "ask_twice").result == [True, False]


def test_the_key_for_effects_outside_is_the_same_in_every_attempt() -> None:
    process = insist(finished(reporting.Keeping), 1)

    before, after = visit(process, "keep").result or ("", "other")
    assert before == after


def test_what_a_step_saves_is_checked_like_a_result() -> None:
    process = finished(reporting.Saving)

    assert "at most 262,144 are stored" in complaint(process).message
    assert visit(process, "save_much").saved is None


def test_a_map_counts_its_elements(changes: list[Change]) -> None:
    process = finished(p.Tolerant, [1, -2, 3, 4])

    head = process.step_runs.get(kind=StepKind.MAP)
    assert head.progress == {"done": 3, "failed": 1, "total": 4}
    assert head.expected == 4
    assert running(changes, "square") >= 1
    assert "done" in {change.steps.get("square") for change in changes}
