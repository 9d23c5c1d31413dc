"""Due work by queue, from all tables in one statement."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.work.claims import DueWork, due_by_queue
from orchestrator.models import InboxEvent, IssuedCommand, ProcessInstance, StepRun
from orchestrator.queue import calls_queue
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import launch
from tests.apps.patterns.fixtures import flows

__all__ = ["flows"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows")]


@pytest.fixture(autouse=True)
def gone() -> Iterator[None]:
    """Afterwards nobody asks how rows came about that no process has led to."""
    yield
    InboxEvent.objects.all().delete()
    ProcessInstance.objects.all().delete()


def rows(queue: str, *ages: int, now: datetime) -> None:
    """Have rows of one table or another wait on a queue, due so many seconds ago."""
    of: dict[str, Any]
    process = launch(p.Layered, 1, 1)
    process.step_runs.all().delete()
    for number, age in enumerate(ages):
        due = {"queue": queue, "wake_at": now - timedelta(seconds=age)}
        if number % 2:
            of = {"instance": process, "node": f"n{number}", "kind": "step"}
            StepRun.objects.create(**of, entered=1, started_at=now, **due)
        else:
            of = {"source": "here", "event_id": f"{queue}{number}", "type": "Told"}
            InboxEvent.objects.create(**of, body={}, received_at=now, **due)


def test_each_queue_has_what_is_due_on_it_and_since_when() -> None:
    now = database_now()
    InboxEvent.objects.all().delete()
    rows("alpha", 5, 30, 10, -60, now=now)
    rows("beta", -60, now=now)
    rows(calls_queue("gamma"), 3, now=now)
    rows("gamma", 1, 2, now=now)
    assert not IssuedCommand.objects.exists()

    with CaptureQueriesContext(connection) as asked:
        found = due_by_queue(now, 1_000)

    assert found == {
        "alpha": DueWork(3, now - timedelta(seconds=30)),
        "gamma": DueWork(3, now - timedelta(seconds=3)),
    }
    assert len(asked) == 1


def test_of_each_table_no_more_are_counted_than_wanted() -> None:
    now = database_now()
    rows("alpha", *range(1, 12), now=now)

    assert due_by_queue(now, 4)["alpha"] == DueWork(8, now - timedelta(seconds=11))


def test_where_nothing_waits_nothing_is_due() -> None:
    assert due_by_queue(database_now(), 10) == {}
