"""What a function leaves of a connection to another database of the project: later work does not meet it."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from django.db import Error, connection, connections, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.test.utils import CaptureQueriesContext

from orchestrator.definition import Workflow, step
from orchestrator.definition.workflow.rows import then
from orchestrator.engine.sql.session import own_session
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.models import Incident, StepRun
from orchestrator.testing import registered, started

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "second")]

SECOND = "second"


def send(sql: str) -> int:
    """Return the number of rows that came back."""
    with connections[SECOND].cursor() as cursor:
        cursor.execute(sql)
        return len(cursor.fetchall()) if cursor.description else 0


def write() -> None:
    send("INSERT INTO other_ledger VALUES (1)")


def written() -> int:
    return send("SELECT * FROM other_ledger")


def lose() -> None:
    """Lose the connection, and find it out."""
    if connection.vendor == "postgresql":
        with suppress(Error):
            send("SELECT pg_terminate_backend(pg_backend_pid())")
    else:
        send("SELECT 1")
        connections[SECOND].connection.close()
        with suppress(Error):
            send("SELECT 1")


def lose_and_fail() -> None:
    lose()
    send("SELECT 1")


def leave_open() -> None:
    transaction.atomic(using=SECOND).__enter__()
    write()


def begin_by_hand() -> None:
    send("BEGIN")
    write()


class Losing(Workflow):
    flow = (then(step(lose, retries=0), step(write, retries=0)),)


class LosingTransactional(Workflow):
    flow = (then(step(lose, transactional=True, retries=0), step(write, retries=0)),)


class Failing(Workflow):
    flow = (step(lose_and_fail, retries=0),)


class Writing(Workflow):
    flow = (step(write, retries=0),)


class Leaving(Workflow):
    flow = (step(leave_open, retries=3),)


class Beginning(Workflow):
    flow = (step(begin_by_hand, retries=3),)


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    with registered(Losing, LosingTransactional, Failing, Writing, Leaving, Beginning):
        yield


@pytest.fixture
def second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give the project another database, or the same one once more on PostgreSQL."""
    given = dict(connection.settings_dict)
    if connection.vendor == "sqlite":
        given["NAME"] = str(tmp_path / SECOND)
    monkeypatch.setitem(connections.settings, SECOND, given)
    allowed = BaseDatabaseWrapper.ensure_connection

    def ensure(db: BaseDatabaseWrapper) -> None:
        if db.alias == SECOND and db.connection is None:  # Django's tests know it not
            db.connect()
        else:
            allowed(db)

    monkeypatch.setattr(BaseDatabaseWrapper, "ensure_connection", ensure)
    send("CREATE TABLE other_ledger (number integer)")
    yield
    connections[SECOND].close()
    send("DROP TABLE other_ledger")
    connections[SECOND].close()
    del connections[SECOND]


@pytest.mark.parametrize("definition", [Losing, LosingTransactional])
def test_a_lost_connection_is_not_met_by_the_next_step(
    definition: type[Workflow],
) -> None:
    assert started(definition).status == "completed"
    assert written() == 1


def test_a_lost_connection_is_not_met_by_another_process() -> None:
    started(Failing)

    assert started(Writing).status == "completed"


@pytest.mark.parametrize("definition", [Leaving, Beginning])
def test_who_leaves_a_transaction_open_fails_and_what_it_wrote_is_undone(
    definition: type[Workflow],
) -> None:
    started(definition)
    assert started(Writing).status == "completed"

    assert StepRun.objects.exclude(node="write").get().attempt == 1
    [incident] = Incident.objects.open()
    assert "left a database transaction open" in incident.message
    assert not connections[SECOND].in_atomic_block
    assert written() == 1


def test_a_transaction_around_the_call_stays() -> None:
    own_session()
    with transaction.atomic(using=SECOND):
        call_application("write", write)
        assert connections[SECOND].in_atomic_block

    assert written() == 1


def test_where_nothing_is_spoilt_nothing_is_sent() -> None:
    with CaptureQueriesContext(connections[SECOND]) as sent:
        started(Writing)

    assert [query["sql"] for query in sent] == ["INSERT INTO other_ledger VALUES (1)"]
