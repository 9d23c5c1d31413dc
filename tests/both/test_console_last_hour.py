"""The last hour on the first page: counted while there is little, looked at in part while there is much."""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.attention import last_hour as hours
from monitoring.attention.last_hour import last_hour
from orchestrator.models import Checkpoint, Incident, ProcessInstance
from orchestrator.testing import run
from tests.services.explained import explained

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_rows_of_before")]


@pytest.fixture
def no_rows_of_before() -> Any:
    """One process, whose transitions are those that a test says; they are gone before the invariants are asked."""
    place_order(Destination.INTERNAL, "50 MWh")
    run()
    kept = list(Checkpoint.objects.order_by("pk"))
    Checkpoint.objects.all().delete()
    yield
    Checkpoint.objects.all().delete()
    Incident.objects.all().delete()
    Checkpoint.objects.bulk_create(kept)


def moved(times: Iterable[datetime], status: str = "waiting") -> None:
    """Have transitions at these times."""
    of = ProcessInstance.objects.get()
    first = Checkpoint.objects.count() + 100
    one = {"instance": of, "steps": [], "status": status, "data": {}, "checksum": ""}
    Checkpoint.objects.bulk_create(
        Checkpoint(revision=number, cause=f"test:{number}", at=at, **one)
        for number, at in enumerate(times, first)
    )


def test_s1_3_few_transitions_are_counted_each_in_its_minute() -> None:
    now = timezone.now()
    moved(now - timedelta(hours=2, minutes=n) for n in range(9, 0, -1))
    moved(now - timedelta(minutes=30, seconds=n) for n in range(20, 0, -1))
    moved([now - timedelta(seconds=5)], status="completed")

    hour = last_hour(now)

    shown = hour[""].transitions
    assert (shown.number, str(shown)) == (21, "21")
    assert (shown.each[29], shown.each[59]) == (20, 1)
    assert hour[""].ended.number == 1
    assert hour["order-listing"] == hour[""]


@pytest.mark.parametrize("before", [0, 1, 7, 64])
def test_s1_3_the_first_transition_of_the_hour_is_found(before: int) -> None:
    now = timezone.now()
    moved(now - timedelta(hours=3, seconds=-n) for n in range(before))
    assert last_hour(now)[""].transitions.number == 0
    moved(now - timedelta(minutes=59, seconds=-n) for n in range(3))
    assert last_hour(now)[""].transitions.number == 3


def test_s1_3_of_many_one_in_so_many_stands_for_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hours, "LOOKED_AT", 50)
    now = timezone.now()
    moved(now - timedelta(seconds=3500 - n) for n in range(0, 3400, 5))  # 680 of them

    shown = last_hour(now)[""].transitions
    assert shown.about
    assert 680 - 16 <= shown.number <= 680 + 16
    assert str(shown).startswith("≈")
    assert last_hour(now)[""].transitions.each == shown.each  # it does not waver


def test_s1_3_failures_are_those_of_the_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    now, of = timezone.now(), ProcessInstance.objects.get()
    for at in (now - timedelta(hours=2), now - timedelta(minutes=3, seconds=1), now):
        Incident.objects.create(
            kind="step_failed", instance=of, opened_at=at, resolved_at=now, message="E"
        )

    hour = last_hour(now)

    assert hour[""].failures.each[56] == hour[""].failures.each[59] == 1
    assert str(hour[""].failures) == "2"
    monkeypatch.setattr(hours, "FAILURES", 2)
    assert str(last_hour(now)[""].failures) == "2+"
    Incident.objects.create(
        kind="unrouted_event", opened_at=now, resolved_at=now, message="E"
    )
    assert str(last_hour(now)[""].failures) == "1+"  # the newest is about an event


def test_s1_4_the_hour_is_found_along_keys_alone() -> None:
    moved([timezone.now()])
    with explained() as plans:
        last_hour(timezone.now())
    assert plans
    assert not re.search(
        r"(Seq Scan on|SCAN) orchestrator_checkpoint(?! USING)", "\n".join(plans)
    )


def test_a_database_without_a_transition_has_an_empty_hour() -> None:
    assert last_hour(timezone.now())[""].transitions.number == 0
