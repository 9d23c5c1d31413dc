"""The database ends a session in the middle of a statement: whoever was at it is told, and nothing is lost or twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta
from io import BytesIO, StringIO, TextIOWrapper
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import Error, connection

from orchestrator.engine.operations.bulk import slices
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.tables import bulk_operations
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.failures import Failures, fail
from tests.apps.process_managers.messages import ParcelDelivered
from tests.services.bulk import begun, frozen, verdicts, worked_on
from tests.services.pruned import prune

__all__ = ["fail"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("parcels"),
    pytest.mark.skipif(
        connection.vendor != "postgresql", reason="SQLite has no sessions"
    ),
]

HangingUp = Callable[[Any, str], AbstractContextManager[None]]


@contextmanager
def hanging_up(model: Any, doing: str) -> Iterator[None]:
    """Have the database end the session that does something to a table ("DELETE"), as long as the block lasts."""
    table = connection.ops.quote_name(model._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION hang_up() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$"
        )
        cursor.execute(
            f"CREATE TRIGGER hangs_up BEFORE {doing} ON {table} EXECUTE FUNCTION hang_up()"
        )
    try:
        yield
    finally:
        connection.close()
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION hang_up CASCADE")


def test_prune_says_so_and_removes_the_rest_when_it_is_started_again() -> None:
    ended = [underway(f"P-{number}") for number in range(3)]
    for parcel in ended:
        tell(parcel, ParcelDelivered(parcel.correlation_key))
    move_times_back(timedelta(days=400), [parcel.pk for parcel in ended])
    going_on = place("P-9")
    before = StepRun.objects.count()

    with (
        hanging_up(ProcessInstance, "DELETE"),
        pytest.raises(CommandError, match="the database does not answer"),
    ):
        prune("--keep", "30")

    assert (ProcessInstance.objects.count(), StepRun.objects.count()) == (4, before)
    prune("--keep", "30")
    assert list(ProcessInstance.objects.all()) == [going_on]


def test_events_sent_again_are_there_once(monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        {"id": str(n), "type": "ParcelDelivered", "data": {"parcel_id": f"P-{n}"}}
        for n in range(5)
    ]

    def send() -> None:
        lines = "".join(json.dumps(one) + "\n" for one in events)
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(lines.encode())))
        call_command("send_events", "--source", "depot", stdout=StringIO())

    with (
        hanging_up(InboxEvent, "INSERT"),
        pytest.raises(CommandError, match=r"^line 1 and after it: "),
    ):
        send()

    assert not InboxEvent.objects.exists()
    send()
    send()
    assert InboxEvent.objects.filter(source="depot").count() == len(events)


def test_a_bulk_operation_goes_on_where_it_was(fail: Failures, operator: User) -> None:
    fail(3)
    operation = frozen(begun(operator, {"status": "failed"}, 3))
    BulkOperation.objects.update(wake_at=database_now())
    [claimed] = bulk_operations.claim("default", "me", 1, 60)

    with (
        hanging_up(OperatorAction, "INSERT"),
        pytest.raises(Error, match=r"clos|terminat"),
    ):
        slices.Slice(claimed.work, float("inf"), lambda: False).run()

    retries = OperatorAction.objects.filter(bulk=operation, action="retry")
    assert not retries.exists()
    assert verdicts(worked_on(operation)) == {"done": 3}
    assert retries.count() == 3
