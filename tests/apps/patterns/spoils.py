"""Steps that leave their session, their process or their worker otherwise than they found it."""

import os
import sys
from collections.abc import Callable
from decimal import Decimal, getcontext

from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.utils import timezone, translation
from psycopg.rows import dict_row

from orchestrator.definition import Workflow, step, then
from tests.apps.patterns.ledger import note
from tests.apps.patterns.patterns import How


def tell(statement: str) -> Callable[[], None]:
    def send() -> None:
        with connection.cursor() as cursor:
            cursor.execute(statement)

    return send


def close() -> None:
    connection.close()


def activate() -> None:
    translation.activate("ja")
    timezone.activate("Asia/Tokyo")


def fail() -> None:
    raise RuntimeError("it cannot be done")


def have_rows_as_dictionaries() -> None:
    connection.connection.row_factory = dict_row


def leave_a_wrapper() -> None:
    connection.execute_wrappers.append(lambda *given: fail())


def fail_with_a_query() -> None:
    raise RuntimeError(Group.objects.extra(where=["nonsense = 1"]))


def leave_a_hook() -> None:
    transaction.on_commit(fail)


SPOILS: dict[str, Callable[[], object]] = {
    "nothing": lambda: None,
    "path": tell("SET search_path TO tenant_a"),
    "zone": tell("SET TIME ZONE 'Asia/Tokyo'"),
    "limit": tell("SET statement_timeout = 1"),
    "table": tell("CREATE TEMP TABLE orchestrator_steprun (id integer)"),
    "lock": tell("SELECT pg_advisory_lock_shared(7)"),
    "connection": close,
    "language": activate,
    "exit": lambda: sys.exit(1),
    "error": fail,
    "files": lambda: os.closerange(3, 1024),
    "begin": tell("BEGIN"),
    "rows": have_rows_as_dictionaries,
    "wrapper": leave_a_wrapper,
    "query": fail_with_a_query,
    "exponents": lambda: setattr(getcontext(), "Emax", 0),
}
"""What a function does to its worker, by its name."""

FAILING = ("exit", "error", "files", "begin", "query")
"""Those that fail."""

AT_ONCE = ("begin",)
"""Those that no other attempt can help."""


def spoil(how: str) -> str:
    """Do what the first word says."""
    note(how)
    SPOILS[how.partition(" ")[0]]()
    return how


def look(spoil: str) -> str:
    """Return what the next function meets."""
    assert Decimal(10) * 10 == 100
    return f"{translation.get_language()} {timezone.get_current_timezone_name()}"


class Spoiling(Workflow):
    """A function that spoils its worker, and one that comes after it."""

    Input = How
    flow = (then(step(spoil, retries=1), look),)


def leave(how: str) -> str:
    leave_a_hook()
    return how


def look_again(leave: str) -> str:
    return leave


class Hooking(Workflow):
    """A function whose hook fails after the commit."""

    Input = How
    flow = (then(step(leave, retries=1, transactional=True), look_again),)
