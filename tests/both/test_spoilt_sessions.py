"""Whatever code of the application leaves in the session of the engine's connection, the next work does not meet it."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import OperationalError, connection, connections, transaction

from orchestrator import start_process
from orchestrator.definition import (
    Workflow,
    case,
    route,
    step,
)
from orchestrator.definition.workflow.rows import then
from orchestrator.engine.sql.connection import allow_idle
from orchestrator.engine.sql.session import OWNED, own_session
from orchestrator.engine.storage.application_code.calling import call_application
from orchestrator.models import Incident, IssuedCommand, StepRun
from orchestrator.testing import pass_time, registered, started
from tests.apps.noting import Note, Noting, Opened
from tests.apps.process_managers.fixtures import SetHandler, handler
from tests.services.database import NEEDS_SERVER

__all__ = ["handler"]

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("known", "whole"),
]

spoiling: list[Callable[[], object]] = []
calls: list[str] = []
seen: list[object] = []


def spoil(*given: Any) -> bool:
    calls.append("spoil")
    for one in spoiling:
        one()
    return True


def before() -> None:
    spoil()


def after_it() -> None:
    """Look at the session."""
    if connection.vendor == "postgresql":
        seen.append(looked())


def first() -> str:
    return "first"


def looked() -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('search_path'), current_setting('TimeZone'), current_setting('role'),"
            " current_setting('statement_timeout'), current_setting('default_transaction_read_only'),"
            " (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()),"
            " to_regclass('pg_temp.orchestrator_steprun'), (SELECT count(*) FROM pg_cursors),"
            " (SELECT count(*) FROM pg_listening_channels())"
        )
        found: tuple[Any, ...] = cursor.fetchone()
    return found


class Plain(Workflow):
    flow = (then(step(before, retries=1), after_it),)


class Transactional(Workflow):
    flow = (then(step(before, transactional=True, retries=1), after_it),)


class Deciding(Workflow):
    flow = (
        step(first, retries=1),
        route(first, case(spoil, to=after_it), otherwise=step(after_it, "other")),
    )


class Silent(Workflow):
    flow = (step(before),)


def do(command: Note) -> None:
    spoil()


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(Plain, Transactional, Deciding, Silent, Noting):
        yield


@pytest.fixture
def whole() -> Iterator[None]:
    for one in (calls, spoiling, seen):
        one.clear()
    yield
    spoiling.clear()
    connection.close()


def tell(*statements: str) -> Callable[[], None]:
    def send() -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    return send


def set_unseen() -> None:
    """Say it to the driver, of which Django knows nothing."""
    raw: Any = connection.connection
    raw.execute("SET search_path TO tenant_a")


def read_only() -> None:
    connection.ensure_connection()
    raw: Any = connection.connection
    raw.read_only = True


def close_unseen() -> None:
    connection.ensure_connection()
    connection.connection.close()


SPOILT = {
    "path": tell("SET search_path TO tenant_a"),
    "path in a function": tell("SELECT set_config('search_path', 'tenant_a', false)"),
    "unseen": set_unseen,
    "time zone": tell("SET TIME ZONE 'Asia/Tokyo'"),
    "role": tell("SET ROLE pg_monitor"),
    "limit": tell("SET statement_timeout = 1"),
    "read only": tell("SET default_transaction_read_only = on"),
    "read only in the driver": read_only,
    "table": tell("CREATE TEMP TABLE orchestrator_steprun (id integer)"),
    "lock": tell("SELECT pg_advisory_lock(7)"),
    "cursor": tell("DECLARE c CURSOR WITH HOLD FOR SELECT 1"),
    "channel": tell("LISTEN c"),
    "prepared": tell("DISCARD TEMP", "DEALLOCATE ALL"),
    "closed": close_unseen,
}
ALONE = ("closed", "prepared", "read only in the driver")
IN_TRANSACTIONS = [name for name in SPOILT if name not in ALONE]


@NEEDS_SERVER
@pytest.mark.parametrize("how", SPOILT)
def test_a_step_leaves_the_session_as_it_was(how: str) -> None:
    clean = looked()
    spoiling.append(SPOILT[how])
    process = started(Plain)

    assert (process.status, seen, calls) == ("completed", [clean], ["spoil"])


@NEEDS_SERVER
@pytest.mark.parametrize("definition", [Transactional, Deciding])
@pytest.mark.parametrize("how", IN_TRANSACTIONS)
def test_so_does_what_runs_in_a_transaction(how: str, definition: Any) -> None:
    clean = looked()
    spoiling.append(SPOILT[how])
    process = started(definition)

    assert (process.status, seen, calls) == ("completed", [clean], ["spoil"])


@NEEDS_SERVER
def test_a_transaction_that_was_made_read_only_is_a_failed_attempt() -> None:
    spoiling.append(tell("SET TRANSACTION READ ONLY"))
    process = started(Transactional)

    assert (process.status, calls) == ("failed", ["spoil"])
    assert "read only" in Incident.objects.open().get().message
    assert StepRun.objects.get().attempt == 1


@NEEDS_SERVER
def test_the_idle_limit_of_a_long_transaction_stays_raised() -> None:
    own_session()
    with transaction.atomic():
        allow_idle(4321)
        with connection.cursor() as cursor:
            call_application("look", tell("SET search_path TO tenant_a"))
            cursor.execute("SHOW idle_in_transaction_session_timeout")
            assert cursor.fetchone() == ("4321s",)
    connection.close()


@NEEDS_SERVER
@pytest.mark.parametrize("after_commit", [False, True])
@pytest.mark.parametrize("how", IN_TRANSACTIONS)
def test_so_does_a_handler(how: str, after_commit: bool, handler: SetHandler) -> None:
    clean = looked()
    spoiling.append(SPOILT[how])
    handler(Note, do, after_commit=after_commit)
    started(Noting, Opened(1))

    assert IssuedCommand.objects.get().status == "done"
    assert looked() == clean
    assert calls == ["spoil"]


@NEEDS_SERVER
def test_what_a_project_has_set_for_the_connection_stays() -> None:
    tell("SET search_path TO public, tenant_b", "SET lock_timeout = 4321")()
    clean = looked()
    spoiling.append(SPOILT["path"])

    assert (started(Plain).status, seen) == ("completed", [clean])
    assert "tenant_b" in str(clean)


@pytest.fixture
def tokyo() -> Iterator[None]:
    """Let the server's own time zone be that of Tokyo, for sessions that begin from now on."""
    database = f'ALTER DATABASE "{connection.settings_dict["NAME"]}"'
    tell(f"{database} SET timezone = 'Asia/Tokyo'")()
    connection.close()
    yield
    tell(f"{database} RESET timezone")()
    connection.close()


@NEEDS_SERVER
@pytest.mark.parametrize("how", ["path", "time zone", "prepared"])
def test_moments_stay_right_on_a_server_in_another_time_zone(
    how: str, tokyo: None
) -> None:
    zone = (connection.timezone_name, looked()[1])
    spoiling.append(SPOILT[how])
    started(Plain)
    with connection.cursor() as cursor:
        cursor.execute("SELECT now()::timestamp - now() AT TIME ZONE 'UTC'")
        apart = cursor.fetchone()

    assert (connection.timezone_name, looked()[1]) == zone == ("UTC", "UTC")
    assert apart == (timedelta(0),)


@NEEDS_SERVER
def test_prepared_statements_stay() -> None:
    started(Plain)  # so that the session is known
    with connection.cursor() as cursor:
        cursor.execute("PREPARE known AS SELECT 7")
        call_application("spoil", SPOILT["path"])
        cursor.execute("EXECUTE known")

        assert cursor.fetchone() == (7,)
    connection.close()


@NEEDS_SERVER
def test_the_session_of_a_request_is_the_projects(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may have the search path of a tenant, which another request's is not to replace."""
    monkeypatch.delitem(vars(connections["default"]), OWNED, raising=False)
    with connection.cursor() as cursor:
        call_application("look", tell("SET search_path TO tenant_a, public"))
        cursor.execute("SHOW search_path")
        assert cursor.fetchone() == ("tenant_a, public",)
    connection.close()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="of SQLite")
@pytest.mark.parametrize("definition", [Plain, Transactional, Deciding])
def test_a_pragma_ends_with_the_function_on_sqlite(definition: Any) -> None:
    spoiling.append(tell("PRAGMA query_only = ON"))

    assert (started(definition).status, calls) == ("completed", ["spoil"])


@NEEDS_SERVER
def test_a_function_that_sends_nothing_costs_no_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started(Silent)  # so that the session is known
    calls.clear()
    raw: Any = connection.connection
    sent = list[object]()
    monkeypatch.setattr(raw, "execute", sent.append)
    started(Silent)

    assert (calls, sent) == (["spoil"], [])


# Errors that only look like the database's


def raised() -> None:
    raise OperationalError("another database is down")


@pytest.mark.parametrize(("after_commit", "attempts"), [(False, 5), (True, 4)])
def test_a_handlers_error_is_charged_whatever_it_looks_like(
    after_commit: bool, attempts: int, handler: SetHandler
) -> None:
    spoiling.append(raised)
    handler(Note, do, after_commit=after_commit)
    start_process(Noting, Opened(1), id="1")
    pass_time(timedelta(days=1))

    assert len(calls) == attempts
    message = "OperationalError: another database is down"
    assert Incident.objects.open().get().message == message


@pytest.mark.parametrize("definition", [Plain, Transactional])
def test_a_steps_error_is_charged_from_the_third_time_on(definition: Any) -> None:
    spoiling.append(raised)
    process = started(definition)
    pass_time(timedelta(days=1))

    assert (process.status, len(calls)) == ("failed", 2 + 2)
    assert StepRun.objects.get().attempt == 2
