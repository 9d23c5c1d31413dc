"""What a transactional step has written stays with its result, where the condition behind the step raises."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction

from orchestrator.definition import (
    Workflow,
    case,
    catch,
    each,
    repeat,
    route,
    start,
    step,
    undo,
)
from orchestrator.exceptions import NoCase
from orchestrator.testing import pass_time, registered, started
from tests.services.database import NEEDS_SERVER
from tests.services.noting import noting

pytestmark = pytest.mark.django_db(transaction=True)

LONG = timedelta(hours=1)
calls: list[str] = []
how: list[str] = []


ENDS: dict[str, type[BaseException]] = {
    "by an exit": SystemExit,
    "as a generator does": GeneratorExit,
    "as an iterator does": StopIteration,
    "as a route does": NoCase,
}


def charge() -> int:
    calls.append("charge")
    Group.objects.create(name=f"charge {len(calls)}")
    return 1


def charge_part(item: int) -> int:
    return charge() if item else 0


def numbers() -> list[int]:
    return [0, 1]


def judged(paid: object) -> bool:
    """Raise as the test wants it."""
    if "in a savepoint" in how:
        with transaction.atomic():
            spoil()
    if "by a statement" in how:
        spoil_by_the_orm()
    if "in silence" in how:
        with suppress(IntegrityError):
            spoil_by_the_orm()
        return True
    if "and leaves a transaction open" in how:
        transaction.atomic().__enter__()
        return True
    if how:
        raise ENDS.get(how[0], ValueError)("out of a condition")
    return True


def spoil() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nothing FROM nowhere")


def spoil_by_the_orm() -> None:
    """Store a row whose name another one has."""
    Group.objects.create(name=f"charge {len(calls)}")


def ship() -> None: ...


def hold() -> None: ...


def count() -> None: ...


once = step(charge, transactional=True, retries=2, idempotent=False)
part = step(charge_part, transactional=True, retries=2)


class Routed(Workflow):
    flow = (start(once), route(charge, case(judged, to=ship), otherwise=hold))


class Looped(Workflow):
    flow = (start(once), repeat(charge, until=judged, at_most=3, then=ship))


class Mapped(Workflow):
    flow = (
        each(numbers, over="", do=part, into=count),
        route(charge_part, case(judged, to=ship), otherwise=hold),
    )


class Caught(Workflow):
    """The step has not failed, so nothing catches it."""

    flow = (
        start(step(charge, transactional=True, retries=0)),
        route(charge, case(judged, to=ship), otherwise=hold),
        catch(charge, error=Exception, to=count),
        undo(charge, by=hold),
    )


KINDS = (Routed, Looped, Mapped)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(*KINDS, Caught):
        yield


def charged() -> tuple[int, int]:
    """Return how often the step was called, and how many of its rows are there."""
    return len(calls), Group.objects.filter(name__startswith="charge").count()


@pytest.mark.parametrize("raising", ["plainly", "in a savepoint", *ENDS])
@pytest.mark.parametrize("definition", KINDS)
def test_its_rows_stay_and_the_decision_alone_is_tried_again(
    definition: type[Workflow], raising: str
) -> None:
    calls.clear()
    how[:] = [raising]
    process = started(definition)
    assert (process.status, charged()) == ("retrying", (1, 1))
    pass_time(LONG)
    assert (process.status, charged()) == ("failed", (1, 1))
    assert "judged: " in process.incidents[0]
    process.retry()
    pass_time(LONG)
    assert (process.status, charged()) == ("failed", (1, 1))

    how.clear()
    process.retry()
    assert (process.status, charged()) == ("completed", (1, 1))


@pytest.mark.parametrize(
    ("raising", "told"),
    [
        ("by a statement", "IntegrityError: judged: "),
        (
            "in silence",
            "TransactionAborted: charge: a condition behind charge left a transaction",
        ),
    ],
)
def test_a_statement_of_a_condition_that_fails_is_told_and_undoes_the_step(
    raising: str, told: str
) -> None:
    calls.clear()
    how[:] = [raising]
    process = started(Routed)
    pass_time(LONG)
    pass_time(LONG)
    assert (process.status, charged()) == ("failed", (3, 0))
    assert process.incidents[0].startswith(told)

    how.clear()
    process.retry()
    assert (process.status, charged()) == ("completed", (4, 1))


@pytest.mark.parametrize(
    ("raising", "rows"),
    [*((end, 1) for end in ENDS), ("and leaves a transaction open", 0)],
)
def test_nothing_catches_it_and_the_process_is_not_undone(
    raising: str, rows: int
) -> None:
    calls.clear()
    how[:] = [raising]
    process = started(Caught)
    assert (process.status, process.open_steps) == ("failed", ["charge"])
    assert charged() == (1, rows)


@NEEDS_SERVER  # on SQLite each change that is stored with others has a savepoint
def test_a_condition_that_does_not_raise_costs_no_statement() -> None:
    how.clear()
    with noting() as sent:
        process = started(Routed)

    assert process.status == "completed"
    assert [sql for sql, _ in sent if "SAVEPOINT" in sql] == []
