"""Steps in time: each failure that rows tell of, what was waited for after it, and the process as a whole."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.queries.instance.past import moment_of
from monitoring.queries.instance.timeline import Timeline, timeline_of
from orchestrator.engine import operations
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import ActionRequest
from orchestrator.models import ProcessInstance
from orchestrator.testing import registered, run
from tests.apps.patterns.desk import finished
from tests.apps.random_graphs.journeys import Standstill, Visit

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(Visit, Standstill):
        yield


def tones(timeline: Timeline, label: str) -> list[list[str]]:
    """Return the parts of the bars of a lane."""
    (lane,) = (row for row in timeline.rows if row.label.lower() == label)
    return [[part.tone for part in bar.stretches] for bar in lane.bars]


def pressed(user: User) -> ActionRequest:
    return ActionRequest(user, uuid4(), "the line is back")


def test_s4_3_a_step_in_time_shows_each_failure_for_good_and_each_retry(
    administrator: User,
) -> None:
    process = finished(Standstill)
    for _ in range(2):
        operations.retry(process.pk, request=pressed(administrator))
        run()
    process.refresh_from_db()

    found = timeline_of(process, {})

    (lose,) = tones(found, "lose")
    assert lose == ["failed", "stopped"] * 3
    (whole,) = [tones(found, "process")]
    assert [bar[0] for bar in whole].count("stopped") >= 1


def test_s4_3_an_order_that_has_failed_or_is_paused_says_so_at_the_top(
    administrator: User,
) -> None:
    order = place_order(Destination.BOTH, "50 MWh")
    drain()
    process = ProcessInstance.objects.get(pk=order.process_id)
    assert process.status == "failed"
    operations.pause(process.pk, request=pressed(administrator))
    operations.unpause(process.pk, request=pressed(administrator))
    process.refresh_from_db()

    found = timeline_of(process, {}, moment_of(process, 1))

    assert found.rows[0].label == "Process"
    assert tones(found, "process") == [["stopped"], ["paused"], ["stopped"]]
    assert "Paused" in found.rows[0].said
    assert "still going on" in found.rows[0].bars[-1].said
