"""Steps in time: each failure that rows tell of, what was waited for after it, and the process as a whole."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from monitoring.process.revision.moment import process_moment
from monitoring.process.timeline import Timeline, timeline_of
from orchestrator.engine import operations
from orchestrator.testing import registered, run
from tests.apps.patterns.desk import finished
from tests.apps.random_graphs.journeys import Standstill, Visit
from tests.services.asking import asked
from tests.services.placing import placed

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(Visit, Standstill):
        yield


def tones(timeline: Timeline, label: str) -> list[list[str]]:
    """Return the parts of the bars of a lane."""
    (lane,) = (row for row in timeline.rows if row.label.lower() == label)
    return [[part.tone for part in bar.stretches] for bar in lane.bars]


def test_s4_3_a_step_in_time_shows_each_failure_for_good_and_each_retry() -> None:
    process = finished(Standstill)
    for _ in range(2):
        operations.retry(process.pk, request=asked())
        run()
    process.refresh_from_db()

    found = timeline_of(process_moment(process))

    assert tones(found, "lose") == [["failed", "stopped"] * 3]
    assert [bar[0] for bar in tones(found, "process")].count("stopped") >= 1


def test_s4_3_an_order_that_has_failed_or_is_paused_says_so_at_the_top() -> None:
    process = placed()
    assert process.status == "failed"
    operations.pause(process.pk, request=asked())
    operations.unpause(process.pk, request=asked())
    process.refresh_from_db()

    found = timeline_of(process_moment(process, 1))

    top = found.rows[0]
    assert top.label == "Process"
    assert tones(found, "process") == [["stopped"], ["paused"], ["stopped"]]
    assert "Paused" in top.said
    assert "still going on" in top.bars[-1].said
