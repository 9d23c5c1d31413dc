"""Migrations run while workers do: indexes are built beside them, and our limits do not end a long migration."""

from collections.abc import Iterator

import pytest
from django.core.management.sql import (
    emit_post_migrate_signal,
    emit_pre_migrate_signal,
)
from django.db import (
    IntegrityError,
    NotSupportedError,
    connection,
    migrations,
    models,
    transaction,
)
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.state import ProjectState
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from orchestrator.migrations._operations import (
    AddIndexConcurrently,
    RemoveIndexConcurrently,
)
from orchestrator.models import QueueOutage
from tests.services.database import NEEDS_SERVER

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "outages_by_time"
TABLE = QueueOutage._meta.db_table
OPERATION = AddIndexConcurrently(
    "queueoutage", models.Index(fields=["since"], name=NAME)
)
LIMITS = ("idle_in_transaction_session_timeout", "statement_timeout", "lock_timeout")
PLAN = [(migrations.Migration("0001_first", "app"), False)]
"""What `migrate` is about to do."""


def states() -> tuple[ProjectState, ProjectState]:
    """Return the tables without and with the index."""
    before = MigrationLoader(connection).project_state()
    after = before.clone()
    OPERATION.state_forwards("orchestrator", after)
    return before, after


def add() -> None:
    with connection.schema_editor(atomic=False) as editor:
        OPERATION.database_forwards("orchestrator", editor, *states())


def remove() -> None:
    before, after = states()
    with connection.schema_editor(atomic=False) as editor:
        OPERATION.database_backwards("orchestrator", editor, after, before)


def indexes() -> dict[str, bool]:
    """Return the indexes of the table, and whether PostgreSQL uses each."""
    with connection.cursor() as cursor:
        if connection.vendor != "postgresql":
            found = connection.introspection.get_constraints(cursor, TABLE)
            return dict.fromkeys(found, True)
        valid = (
            "SELECT indexrelid::regclass::text, indisvalid FROM pg_index"
            " WHERE indrelid = to_regclass(%s)"
        )
        cursor.execute(valid, [TABLE])
        return dict(cursor.fetchall())


def limits() -> list[str]:
    with connection.cursor() as cursor:
        return [cursor.execute(f"SHOW {name}").fetchone()[0] for name in LIMITS]


@pytest.fixture(autouse=True)
def without_the_index() -> Iterator[None]:
    yield
    if NAME in indexes():
        remove()


def test_a_migration_that_adds_an_index_can_be_repeated_and_undone() -> None:
    add()
    add()
    assert indexes()[NAME]

    remove()
    assert NAME not in indexes()


def test_a_migration_that_removes_an_index_can_be_repeated_and_undone() -> None:
    add()
    without, having = states()
    removal = RemoveIndexConcurrently("queueoutage", NAME)

    with connection.schema_editor(atomic=False) as editor:
        for _ in range(2):
            removal.database_forwards("orchestrator", editor, having, without)
        assert NAME not in indexes()
        removal.database_backwards("orchestrator", editor, without, having)

    assert indexes()[NAME]


@NEEDS_SERVER
def test_an_index_is_built_while_others_write_and_waits_for_them() -> None:
    before = limits()

    with CaptureQueriesContext(
        connection,
    ) as asked:
        add()

    told = [query["sql"] for query in asked]
    [made] = [sql for sql in told if sql.startswith("CREATE INDEX")]
    assert made.startswith("CREATE INDEX CONCURRENTLY")
    assert "SELECT set_config('lock_timeout', '0', false)" in told[: told.index(made)]
    assert limits() == before


@NEEDS_SERVER
def test_an_index_that_was_left_incomplete_is_built_again() -> None:
    now = timezone.now()
    for queue in "ab":
        QueueOutage.objects.create(queue=queue, since=now, seen_at=now)
    unique = f"CREATE UNIQUE INDEX CONCURRENTLY {NAME} ON {TABLE} (since)"
    with connection.cursor() as cursor, pytest.raises(IntegrityError):
        cursor.execute(unique)
    assert not indexes()[NAME]

    add()

    assert indexes()[NAME]


@NEEDS_SERVER
def test_an_index_is_not_built_inside_a_transaction() -> None:
    with transaction.atomic(), pytest.raises(NotSupportedError, match="atomic = False"):
        add()


@NEEDS_SERVER
def test_our_limits_do_not_end_a_long_migration() -> None:
    before = limits()

    emit_pre_migrate_signal(0, False, "default", plan=PLAN)
    assert limits() == ["0", "0", before[2]]

    emit_post_migrate_signal(0, False, "default", plan=PLAN)
    assert limits() == before


@NEEDS_SERVER
def test_limits_of_the_project_itself_hold_for_migrations_too() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '7s'")
    try:
        emit_pre_migrate_signal(0, False, "default", plan=PLAN)
        assert limits()[:2] == ["0", "7s"]
        emit_post_migrate_signal(0, False, "default", plan=PLAN)
        assert limits()[1] == "7s"
    finally:
        connection.close()
