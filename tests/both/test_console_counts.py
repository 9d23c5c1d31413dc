"""Counts for each of many values are the same however the database is asked for them."""

from __future__ import annotations

import pytest
from django.db.models import QuerySet

from monitoring.queries.counts import (
    MARK,
    Capped,
    ForEach,
    RowQuery,
    count_by,
    count_each,
    fixed_query,
    uuid_from_sql,
)
from orchestrator.models import InboxEvent, ProcessInstance, Status
from tests.apps.process_managers.desk import place, underway
from tests.services.cases import cases

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

KEYS = ["P-1", "P-2", "100%", "%s", "it's", 'a "quoted" one', "a,b{c}", "nobody's"]


def _of_key() -> QuerySet[ProcessInstance]:
    """With a percent sign of its own, and another parameter before and behind the value."""
    rows = ProcessInstance.objects.exclude(summary__contains="200%")
    rows = rows.filter(correlation_key=MARK, revision__gte=0)
    return rows.exclude(name="%s").order_by("-pk")


def _that_wait() -> QuerySet[ProcessInstance]:
    return ProcessInstance.objects.filter(status=Status.WAITING)


def _that_never_are() -> QuerySet[ProcessInstance]:
    return ProcessInstance.objects.none()


@pytest.fixture
def several() -> list[ProcessInstance]:
    return [underway(key) for key in KEYS[:-1]] + [place("P-9")]


@cases("alike", False, True)
def test_each_value_is_counted(alike: bool, several: list[ProcessInstance]) -> None:
    found = count_by(ForEach(_of_key, KEYS, alike), "correlation_key", "id", cap=5)

    there = {(one.correlation_key, one.pk, 1) for one in several[:-1]}
    assert {
        (key, uuid_from_sql(stored), number) for key, stored, number in found
    } == there


@cases("alike", False, True)
def test_counts_have_a_bound(alike: bool, several: list[ProcessInstance]) -> None:
    found = dict(count_by(ForEach(_of_step, ["shipping"], alike), "name", cap=3))

    assert found == {"shipping": 3}


def _of_step() -> QuerySet[ProcessInstance]:
    return ProcessInstance.objects.filter(name=MARK).order_by("name", "-pk")


@cases("alike", False, True)
def test_of_no_values_there_is_nothing(alike: bool) -> None:
    assert count_by(ForEach(_of_key, [], alike), "correlation_key") == []


def test_several_are_counted_at_once(several: list[ProcessInstance]) -> None:
    parts: dict[str, RowQuery] = {
        "waiting": fixed_query(_that_wait),
        "never": fixed_query(_that_never_are),
        "events": InboxEvent.objects.all(),
        "none": InboxEvent.objects.none(),
    }

    found = count_each(parts, {"waiting": 3})

    assert found["waiting"] == Capped(3, 3)
    assert found["events"].number == InboxEvent.objects.count()
    assert (found["never"].number, found["none"].number) == (0, 0)
    assert count_each({"none": InboxEvent.objects.none()})["none"].number == 0
