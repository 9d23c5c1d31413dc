"""Writes that go out in one message: a batch knows which rows they touch."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from uuid6 import uuid7

from orchestrator.engine.sql.batch import Batch, Statement, Touched
from orchestrator.engine.sql.tables import incidents, instances, step_runs
from orchestrator.exceptions import LeaseLost
from orchestrator.models import ProcessInstance, StepRun
from tests.apps.process_managers.desk import place
from tests.apps.process_managers.fixtures import parcels
from tests.services.doing import fresh

__all__ = ["parcels"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


def summary(process: ProcessInstance, text: str) -> Statement:
    return instances.update({"summary": text}, {"id": process.pk})


def error(text: str, **where: Any) -> Statement:
    return step_runs.update({"error": text}, where, rows=None)


def error_of(process: ProcessInstance) -> Statement:
    return error("b", instance_id=process.pk)


def new_run(process: ProcessInstance) -> Statement:
    at = dict.fromkeys(("started_at", "finished_at"), process.started_at)
    return step_runs.insert(StepRun(instance=process, node="x", status="done", **at))


def resolved() -> Statement:
    return incidents.update({"resolution": "x"}, {"kind": "step_failed"}, rows=None)


def test_a_write_by_condition_sees_what_was_written_before_it() -> None:
    process = place()
    run = process.step_runs.latest("pk")
    batch = [error("first", id=run.pk), error("second", error="first")]
    Batch(batch).send()

    assert fresh(run).error == "second"


Writes = Callable[[ProcessInstance], list[Statement]]
APART: dict[str, Writes] = {
    "other rows": lambda p: [summary(p, "a"), error("b", id=1), error("c", id=2)],
    "other tables": lambda p: [summary(p, "a"), resolved(), error_of(p)],
    "new rows after a condition": lambda p: [error_of(p), new_run(p), new_run(p)],
    "another row than the new one": lambda p: [new_run(p), error("a", id=1)],
}
MEETING: dict[str, Writes] = {
    "one row twice": lambda p: [summary(p, "a"), summary(p, "b")],
    "a new row whose key is known": lambda p: [instances.insert(p), summary(p, "b")],
    "a row and then a condition": lambda p: [error("a", id=1), error_of(p)],
    "a condition and then a row": lambda p: [error_of(p), error("a", id=1)],
    "a condition that may hold of the new row": lambda p: [new_run(p), error_of(p)],
    "two conditions": lambda p: [resolved(), resolved()],
}


def test_a_batch_knows_whether_its_writes_can_meet() -> None:
    process = place()
    meet = {
        name: Batch(writes(process)).meeting() is not None
        for name, writes in {**APART, **MEETING}.items()
    }

    assert meet == dict.fromkeys(APART, False) | dict.fromkeys(MEETING, True)


@pytest.mark.skipif(
    connection.vendor != "postgresql", reason="SQLite takes writes one by one"
)
def test_writes_that_cannot_meet_go_out_as_one_statement() -> None:
    process = place()
    with CaptureQueriesContext(connection) as sent:
        Batch([summary(process, "a"), new_run(process), resolved()]).send()

    [one] = sent
    assert one["sql"].startswith("WITH w0 AS")


def test_a_batch_that_would_lose_a_write_as_one_statement_is_sent_in_order() -> None:
    """Within one statement, PostgreSQL carries out one of two updates of a row, and says nothing of the other."""
    process = place()
    batch = Batch([summary(process, "first"), summary(process, "second")])

    batch.send()
    assert fresh(process).summary == "second"
    assert batch.meeting() == Touched(ProcessInstance._meta.db_table, "key", process.pk)


def test_a_commit_that_fails_spares_the_transaction_it_may_be_inside() -> None:
    """A test's own transaction is the only one there is; PostgreSQL would give it up at the failing statement."""
    process = place()
    nobody = instances.update({"summary": "a"}, {"id": uuid7()})
    with pytest.raises(LeaseLost):
        Batch([new_run(process), nobody]).commit()

    assert not process.step_runs.filter(node="x").exists()
    Batch([summary(process, "b")]).commit()
    assert fresh(process).summary == "b"
