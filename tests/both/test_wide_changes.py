"""Wide changes are cut: a transaction never stands idle for long while Python makes a message ready."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.conf import settings
from django.db import connection, transaction

from orchestrator import start_process
from orchestrator.definition import Workflow
from orchestrator.engine.change.workflows import starting
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.batch import MANY_PARAMS
from orchestrator.engine.sql.connection import IDLE_TIMEOUT, allow_idle
from orchestrator.engine.storage import definitions
from orchestrator.models import InboxEvent, IssuedCommand, ProcessInstance, Status
from tests.apps.process_managers.desk import place
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import PackParcel, ParcelDelivered
from tests.apps.wide_graphs.processes import WORKFLOWS, Breadth, Broad, Dense, Fan, Mesh
from tests.services.crews import knowing
from tests.services.noting import noting

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("known", "parcels"),
]
on_postgresql = pytest.mark.skipif(
    "postgresql" not in settings.DATABASES["default"]["ENGINE"],
    reason="SQLite ends no sessions",
)

BRANCHES = 500
Asked = list[tuple[str, Any]]


known = knowing(*WORKFLOWS, autouse=False)


@pytest.fixture
def asked() -> Iterator[Asked]:
    """Return what is sent."""
    with noting() as found:
        yield found


def most(asked: Asked) -> int:
    """Return the largest number of parameters."""
    return max(len(params or ()) for _, params in asked)


@pytest.mark.parametrize(
    ("workflow", "given"),
    [(Broad, Breadth(BRANCHES)), (Fan, Breadth(BRANCHES)), (Dense, Mesh(20, 4))],
    ids=["start", "fork", "dense"],
)
def test_no_message_is_big(workflow: type[Workflow], given: Any, asked: Asked) -> None:
    start_process(workflow, given)
    while drain():
        pass

    assert most(asked) <= MANY_PARAMS
    assert ProcessInstance.objects.get().status == Status.COMPLETED


def test_a_handler_may_cause_many_events(handler: SetHandler, asked: Asked) -> None:
    many = [ParcelDelivered("P-1")] * BRANCHES
    handler(PackParcel, lambda command: many)
    parcel = place("P-1")

    assert most(asked) <= MANY_PARAMS
    assert InboxEvent.objects.filter(process=parcel).count() == BRANCHES + 1
    assert IssuedCommand.objects.get().status == "done"


@on_postgresql
def test_the_limit_grows_with_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[str] = []
    allow = allow_idle

    def note(seconds: float) -> None:
        allow(seconds)
        with connection.cursor() as cursor:
            cursor.execute(f"SHOW {IDLE_TIMEOUT}")
            allowed.append(cursor.fetchone()[0])

    monkeypatch.setattr("orchestrator.engine.sql.connection.allow_idle", note)
    pin = definitions.make_pin(Broad, Breadth(1000))
    with transaction.atomic():  # as that of a step that starts it as its sub-process
        starting.begin_process(pin)

    assert allowed[-1] == "20s"
    with connection.cursor() as cursor:
        cursor.execute(f"SHOW {IDLE_TIMEOUT}")
        assert cursor.fetchone()[0] == "5s"


@on_postgresql
@pytest.mark.parametrize("limit", ["0", "2min"])
def test_a_limit_that_is_longer_or_none_stays(limit: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"SET {IDLE_TIMEOUT} = '{limit}'")
        with transaction.atomic():
            allow_idle(60)
            cursor.execute(f"SHOW {IDLE_TIMEOUT}")
            assert cursor.fetchone()[0] == limit
    connection.close()
