"""Which errors of the database pass by themselves: asked of real errors, as the drivers raise them."""

import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest
from django.conf import settings
from django.db import (
    Error,
    IntegrityError,
    InterfaceError,
    OperationalError,
    connection,
    transaction,
)
from django.db.transaction import TransactionManagementError
from django.db.utils import DatabaseErrorWrapper

from orchestrator.engine.sql.connection import is_conflict, passes
from orchestrator.management.procession_command import failure_line
from tests.services.cases import words

on_postgresql = pytest.mark.skipif(
    "postgresql" not in settings.DATABASES["default"]["ENGINE"],
    reason="codes of PostgreSQL",
)

CROWDED = words("40001 40003 40P01 55006 55P03")
"""Serialization, completion unknown, deadlock, in use, lock not available: others were at the same rows."""

PASSING = CROWDED + words(
    """08000 08001 08003 08006 25006 25P03 25P04
    53100 53200 53300 57P01 57P02 57P03 57P05 58030"""
)
"""Besides, of connections, of a transaction that is read only, stood idle or took too long, of resources that are used
up, of a server that shuts down or cannot be connected, and of input or output."""

STAYING = words(
    "0A000 22012 23505 25P02 42601 42P01 54000 55000 57014 P0001 XX000 XX001"
)
"""Not supported, division by zero, unique, transaction failed before, syntax, no table, too large for the server, not
in the state for it, canceled, raised by a trigger, internal error, data corrupted."""


def raised(work: Callable[[], object]) -> Error:
    """Return the error that the work raises."""

    def undone() -> None:
        with transaction.atomic():
            work()

    with pytest.raises(Error) as found:
        undone()
    return found.value


def ask(sql: str) -> Callable[[], object]:
    return lambda: connection.cursor().execute(sql)


@on_postgresql
@pytest.mark.django_db
def test_a_code_of_postgresql_decides() -> None:
    told = {}
    for state in (*PASSING, *STAYING):
        code = f"RAISE EXCEPTION 'planted' USING ERRCODE = '{state}'"
        error = raised(ask(f"DO $$ BEGIN {code}; END $$"))
        told[state] = (passes(error), is_conflict(error))

    assert told == {state: (state in PASSING, state in CROWDED) for state in told}


@on_postgresql
@pytest.mark.django_db(transaction=True)
def test_a_plan_that_was_made_before_a_migration_passes() -> None:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE early (a integer)")
        cursor.execute("PREPARE known AS SELECT * FROM early")
        cursor.execute("EXECUTE known")
        cursor.execute("ALTER TABLE early ADD COLUMN b integer")

    error = raised(ask("EXECUTE known"))

    assert "cached plan" in str(error)
    assert passes(error)


def save_badly(error: Exception) -> None:
    """Fail as a model does that cannot be saved, and be asked for more."""
    with suppress(Error), transaction.mark_for_rollback_on_error("default"):
        raise error
    connection.cursor().execute("SELECT 1")


@pytest.mark.django_db
def test_what_had_spoilt_the_transaction_before_decides() -> None:
    cut, there = OperationalError("the line was cut"), IntegrityError("there")
    for before, so in ((cut, True), (there, False)):
        error = raised(partial(save_badly, before))
        assert isinstance(error, TransactionManagementError)
        assert passes(error) is so


def test_errors_without_a_code() -> None:
    for error, so in (
        (OperationalError("raised by hand"), True),
        (InterfaceError("the connection is closed"), True),
        (IntegrityError("there already"), False),
        (TransactionManagementError("a mistake"), False),
        (ConnectionError("of another service"), False),
        (ValueError("no error of a database"), False),
    ):
        assert passes(error) is so, error


def test_an_error_that_is_its_own_cause_does_not_pass() -> None:
    error = TransactionManagementError("raised from itself")
    error.__cause__ = error
    assert not passes(error)
    assert not is_conflict(error)


# SQLite, on whatever the run's own database is: these are files of their own


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "small.sqlite3"
    with sqlite3.connect(path) as own:
        own.execute("CREATE TABLE things (name TEXT UNIQUE)")
        own.execute("INSERT INTO things VALUES ('one')")
    own.close()
    return path


def of_sqlite(path: Path | str, *statements: str, uri: bool = False) -> Error:
    """Return the error that these statements lead to, as Django raises it."""
    backend = pytest.importorskip("django.db.backends.sqlite3.base").DatabaseWrapper
    wrapper = backend({**settings.DATABASES["default"], "NAME": ":memory:"})

    def execute() -> None:
        with DatabaseErrorWrapper(wrapper), closing(open_file(path, uri)) as own:
            for statement in statements:
                own.execute(statement)

    with pytest.raises(Error) as found:
        execute()
    return found.value


def open_file(path: Path | str, uri: bool = False) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=0, uri=uri, isolation_level=None)


@pytest.mark.once
def test_a_locked_file_passes(file: Path) -> None:
    with closing(open_file(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        error = of_sqlite(file, "INSERT INTO things VALUES ('two')")

    assert passes(error)
    assert is_conflict(error)
    said = "others were in the way, start it again: database is locked"
    assert failure_line(error) == said


@pytest.mark.once
def test_a_full_disk_and_a_file_that_cannot_be_used_pass(file: Path) -> None:
    large = "INSERT INTO things VALUES (hex(randomblob(100000)))"
    assert passes(of_sqlite(file, "PRAGMA max_page_count = 3", large))

    gone = of_sqlite(file.parent / "gone" / "db.sqlite3", "SELECT 1")

    assert passes(gone)
    assert not is_conflict(gone)
    read_only = f"file:{file}?mode=ro"
    assert passes(of_sqlite(read_only, "DELETE FROM things", uri=True))


@pytest.mark.once
def test_a_query_that_is_wrong_stays_wrong(file: Path) -> None:
    for wrong in (
        "SELECT * FROM nowhere",
        "INSERT INTO things VALUES ('one')",
        "SELECT nonsense FROM things",
    ):
        assert not passes(of_sqlite(file, wrong))
