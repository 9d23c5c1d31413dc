"""What functions leave in the session and in the connection that the engine works with, and errors that ask it."""

import decimal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction
from django.utils import translation
from psycopg.rows import dict_row

from orchestrator import start_process
from orchestrator.configuration.conf import conf
from orchestrator.definition import (
    ProcessManager,
    Workflow,
    case,
    catch,
    during,
    route,
    step,
    when,
)
from orchestrator.definition.workflow.rows import then
from orchestrator.engine.change.incidents import error_text, stored_traceback
from orchestrator.engine.sql.session import own_session
from orchestrator.engine.storage.application_code.calling import (
    FREE_LOSSES,
    LOST_IN_A_ROW,
    BlockingTransaction,
    call_application,
)
from orchestrator.engine.storage.application_code.errors import from_application
from orchestrator.engine.work import keeping
from orchestrator.models import InboxEvent, Incident, ProcessInstance
from orchestrator.testing import pass_time, registered
from tests.apps.noting import Note, Noting, Opened
from tests.apps.process_managers.fixtures import SetHandler, handler
from tests.services.database import NEEDS_SERVER

__all__ = ["handler"]
pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("known", "whole"),
]
ON_SQLITE = pytest.mark.skipif(connection.vendor != "sqlite", reason="of SQLite")

spoiling: list[Callable[[], object]] = []
calls: list[str] = []
after: list[str] = []
LIMIT = 30
"""The number of calls after which nothing is spoilt any more, so that a test ends."""


def spoil(*given: Any) -> bool:
    calls.append("spoil")
    if len(calls) > LIMIT:
        spoiling.clear()
    for one in spoiling:
        one()
    return True


def before() -> None:
    spoil()


def after_it() -> None:
    after.append("after")


def first() -> str:
    calls.append("first")
    return "first"


class Plain(Workflow):
    flow = (then(step(before, retries=1), after_it),)


class Transactional(Workflow):
    flow = (then(step(before, transactional=True, retries=1), after_it),)


class Deciding(Workflow):
    flow = (
        step(first, retries=1, transactional=True),
        route(first, case(spoil, to=after_it), otherwise=step(after_it, "other")),
    )


@dataclass(frozen=True)
class Refused(Exception):
    code: str


class Catching(Workflow):
    flow = (step(before, retries=0), catch(before, error=Refused, to=after_it))


class Silent(Workflow):
    flow = (step(after_it),)


class Summing(ProcessManager):
    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"

    @dataclass(frozen=True)
    class Data:
        number: int

    transitions = (during(Step.NEW, when(Opened).go_to(Step.OPEN)),)

    @classmethod
    def summary(cls, data: Any) -> str:
        spoil()
        return "said"


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    """For a whole module: the invariants are asked for after each test, and must still know the definitions."""
    with registered(Plain, Transactional, Deciding, Catching, Silent, Summing, Noting):
        yield


@pytest.fixture
def whole(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(keeping, "KEEP_SECONDS", 2.0)
    for one in (calls, spoiling, after, LOST_IN_A_ROW):
        one.clear()
    wrappers = list(connection.execute_wrappers)
    yield
    spoiling.clear()
    connection.execute_wrappers[:] = wrappers
    connection.close()


def tell(*statements: str) -> Callable[[], None]:
    def send() -> None:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    return send


def go(definition: Any) -> str:
    receipt = start_process(definition, id="p")
    pass_time(timedelta(hours=2))
    connection.close()  # what is not committed is not there
    return ProcessInstance.objects.get(pk=receipt.process_id).status


def begin_and_fail() -> None:
    tell("BEGIN")()
    raise RuntimeError("it cannot be done")


@NEEDS_SERVER
def test_a_step_that_has_begun_a_transaction_by_sql_and_raises() -> None:
    spoiling.append(begin_and_fail)
    assert (go(Plain), len(calls)) == ("failed", 2)


@NEEDS_SERVER
def test_what_is_stored_after_a_begin_by_sql_is_committed() -> None:
    spoiling.append(tell("BEGIN"))
    assert go(Plain) == "failed"
    assert "left a database transaction open" in Incident.objects.get().message


def raise_queryset() -> None:
    raise RuntimeError(Group.objects.extra(where=["nonsense = 1"]))


@NEEDS_SERVER
@pytest.mark.parametrize("definition", [Plain, Transactional, Deciding])
def test_an_error_whose_text_is_a_query_that_fails(definition: Any) -> None:
    spoiling.append(raise_queryset)
    assert go(definition) == "failed"
    assert calls.count("spoil") == 2


def do(command: Note) -> None:
    spoil()


def end_session() -> None:
    tell("SELECT pg_terminate_backend(pg_backend_pid())")()


@NEEDS_SERVER
@pytest.mark.parametrize(("after_commit", "attempts"), [(False, 5), (True, 4)])
def test_a_handler_that_ends_its_session(
    after_commit: bool, attempts: int, handler: SetHandler
) -> None:
    spoiling.append(end_session)
    handler(Note, do, after_commit=after_commit)
    start_process(Noting, Opened(1), id="1")
    pass_time(timedelta(days=1))
    assert len(calls) == FREE_LOSSES + attempts
    assert Incident.objects.open().exists()


@NEEDS_SERVER
def test_a_condition_that_ends_its_session() -> None:
    spoiling.append(end_session)
    assert go(Deciding) == "failed"
    assert calls.count("spoil") <= FREE_LOSSES + 2


def rows_as_dicts() -> None:
    connection.connection.row_factory = dict_row


@NEEDS_SERVER
def test_rows_as_dictionaries_in_a_transaction() -> None:
    spoiling.append(rows_as_dicts)
    assert (go(Transactional), len(calls)) == ("completed", 1)


def leave_wrapper() -> None:
    def refuse(*given: Any) -> None:
        raise AssertionError("no queries here")

    connection.execute_wrappers.append(refuse)


def test_a_wrapper_of_statements_that_is_left() -> None:
    spoiling.append(leave_wrapper)
    assert go(Plain) == "completed"


def look() -> tuple[Any, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('TimeZone'), current_setting('statement_timeout')"
        )
        return (*cursor.fetchone(), translation.get_language())


@NEEDS_SERVER
@pytest.mark.parametrize(
    "how",
    [
        tell("SET TIME ZONE 'Asia/Tokyo'"),
        tell("SET statement_timeout = 1"),
        lambda: translation.activate("ja"),
    ],
)
def test_a_summary_leaves_nothing(how: Callable[[], object]) -> None:
    clean = look()
    spoiling.append(how)
    start_process(Summing, Opened(1), id="1")
    pass_time(timedelta(hours=1))
    found = look()
    translation.deactivate()
    assert found == clean


@NEEDS_SERVER
def test_a_summary_that_closes_the_connection() -> None:
    spoiling.append(connection.close)
    start_process(Summing, Opened(1), id="1")
    pass_time(timedelta(days=1))
    assert len(calls) <= FREE_LOSSES + 5


def test_the_hook_of_a_condition_that_raises(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def bad() -> None:
        raise ValueError("hook")

    def condition() -> None:
        transaction.on_commit(bad)
        if calls.count("spoil") < 2:
            raise RuntimeError("the condition")

    spoiling.append(condition)
    assert go(Deciding) == "completed"
    told = [
        one
        for one in caplog.messages
        if "a condition behind first left to the commit raised ValueError" in one
    ]
    assert len(told) == 2
    assert not [
        one for one in caplog.messages if "was taken over by another worker" in one
    ]


def by_script() -> None:
    with connection.cursor() as cursor:
        cursor.executescript("PRAGMA recursive_triggers = ON")


def by_driver() -> None:
    connection.ensure_connection()
    connection.connection.execute("PRAGMA recursive_triggers = ON")


def and_raise() -> None:
    tell("PRAGMA recursive_triggers = ON")()
    raise RuntimeError("after it")


def rows_as_names() -> None:
    connection.ensure_connection()
    connection.connection.row_factory = lambda cursor, row: {"row": row}


@ON_SQLITE
@pytest.mark.parametrize("how", [by_script, by_driver, and_raise])
def test_a_pragma_ends_with_its_function(how: Callable[[], None]) -> None:
    spoiling.append(how)
    start_process(Transactional, id="p")
    pass_time(timedelta(hours=1))
    assert connection.cursor().execute("PRAGMA recursive_triggers").fetchone() == (0,)


@ON_SQLITE
def test_a_row_factory_ends_with_its_function() -> None:
    spoiling.append(rows_as_names)
    assert go(Plain) == "completed"


@ON_SQLITE
def test_query_only_by_the_driver_in_a_condition() -> None:
    def query_only() -> None:
        connection.connection.execute("PRAGMA query_only = ON")

    spoiling.append(query_only)
    assert go(Deciding) in ("completed", "failed")
    assert calls.count("spoil") <= 2


def decline() -> None:
    raise Refused("no")


def test_a_frozen_error_is_caught() -> None:
    spoiling.append(decline)
    assert (go(Catching), after) == ("completed", ["after"])


def test_the_exponents_of_decimals() -> None:
    kept = decimal.getcontext().copy()
    spoiling.append(lambda: setattr(decimal.getcontext(), "Emax", 5))
    go(Plain)
    found = decimal.getcontext().Emax
    decimal.setcontext(kept)
    assert found == kept.Emax


def test_a_transaction_of_the_outer_code_is_not_left_by_the_inner_code() -> None:
    own_session()

    def outer() -> None:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute("INSERT INTO auth_group (name) VALUES ('by hand')")
            call_application("inner", lambda: cursor.execute("SELECT 1") and None)
            cursor.execute("COMMIT")

    call_application("outer", outer)
    assert Group.objects.filter(name="by hand").exists()


def test_the_texts_of_an_error_are_read_once() -> None:
    read: list[str] = []

    class Spoken(Exception):
        def __str__(self) -> str:
            read.append("read")
            return "said"

    def refuse() -> None:
        raise Spoken

    with (
        pytest.raises(Spoken) as caught,
        transaction.atomic(),
        BlockingTransaction("outer"),
    ):
        call_application("inner", refuse)

    number = len(read)
    assert number <= 2  # its message, and its traceback
    assert error_text(caught.value) == "said"
    assert stored_traceback(caught.value).endswith("Spoken: said\n")
    assert len(read) == number


def test_a_transaction_that_was_to_be_rolled_back_before_is_not_the_codes_fault() -> (
    None
):
    with transaction.atomic():
        transaction.set_rollback(True)
        assert call_application("innocent", lambda: 5) == 5


@ON_SQLITE
def test_a_pragma_behind_a_comment_ends_with_its_function() -> None:
    own_session()
    call_application("code", tell("-- why\nPRAGMA recursive_triggers = ON"))
    assert connection.cursor().execute("PRAGMA recursive_triggers").fetchone() == (0,)


def set_autocommit_of_driver() -> None:
    if connection.vendor == "sqlite":
        connection.connection.isolation_level = "DEFERRED"
    else:
        connection.connection.autocommit = False


def test_the_drivers_own_autocommit_is_as_before() -> None:
    spoiling.append(set_autocommit_of_driver)
    assert go(Plain) == "completed"


@NEEDS_SERVER
@pytest.mark.parametrize(
    ("left", "look", "found"),
    [
        (
            "SELECT pg_advisory_lock(7)",
            "SELECT count(*) FROM pg_locks WHERE objid=7",
            1,
        ),
        ("CREATE TEMP TABLE own AS SELECT 5 AS value", "SELECT value FROM own", 5),
    ],
)
def test_what_the_outer_code_holds_outlives_the_inner_code(
    left: str, look: str, found: int
) -> None:
    own_session()
    seen: list[int] = []

    def outer() -> None:
        tell(left)()
        call_application("inner", tell("SELECT 1"))
        with connection.cursor() as cursor:
            cursor.execute(look)
            seen.append(cursor.fetchone()[0])

    call_application("outer", outer)
    call_application("next", lambda: None)
    assert seen == [found]


def test_what_the_inner_code_sets_ends_with_the_outer_code() -> None:
    own_session()
    if connection.vendor == "sqlite":
        spoil_it, look, found = (
            "PRAGMA recursive_triggers = ON",
            "PRAGMA recursive_triggers",
            0,
        )
    else:
        spoil_it, look, found = (
            "SET work_mem = '77MB'",
            "SELECT current_setting('work_mem') = '77MB'",
            False,
        )
    call_application("outer", lambda: call_application("inner", tell(spoil_it)))
    with connection.cursor() as cursor:
        cursor.execute(look)
        assert cursor.fetchone()[0] == found


@NEEDS_SERVER
def test_an_error_that_is_raised_again_after_its_session_was_lost_is_charged() -> None:
    """One object, raised by each call."""
    own_session()
    connection.ensure_connection()
    lasting = RuntimeError("not today")

    def end_and_raise() -> None:
        try:
            tell("SELECT pg_terminate_backend(pg_backend_pid())")()
        except OperationalError:
            raise lasting from None

    def refuse() -> None:
        raise lasting

    with pytest.raises(RuntimeError):
        call_application("code", end_and_raise)
    given_back = not from_application(lasting)
    with pytest.raises(RuntimeError):
        call_application("code", refuse)
    assert (given_back, from_application(lasting)) == (True, True)


REFUSING = """
CREATE OR REPLACE FUNCTION refuse() RETURNS trigger AS
$$ BEGIN RAISE EXCEPTION 'deadlock detected' USING ERRCODE = '40P01'; END $$ LANGUAGE plpgsql;
CREATE TRIGGER refusing BEFORE INSERT ON orchestrator_issuedcommand EXECUTE FUNCTION refuse()
"""


@NEEDS_SERVER
def test_an_event_that_the_database_always_refuses_is_for_people_in_the_end(
    handler: SetHandler,
) -> None:
    handler(Note, do, after_commit=True)
    tell(REFUSING)()
    try:
        start_process(Noting, Opened(1), id="1")
        pass_time(timedelta(days=1))
        found = InboxEvent.objects.get()
        assert (found.verdict, found.attempt) == ("failed", conf().EVENT_ATTEMPTS)
        assert "deadlock" in Incident.objects.get().message
    finally:
        tell("DROP TRIGGER refusing ON orchestrator_issuedcommand")()
