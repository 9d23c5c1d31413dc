"""What ends programs is a failed attempt out of any function of the application: charged, told, and no worker ends."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import IntegrityError, connection, transaction

from orchestrator import registry, send_event, start_process
from orchestrator.definition import Event
from orchestrator.definition.declarations.handlers import Handler
from orchestrator.engine.storage import definitions
from orchestrator.models import InboxEvent, Incident, IssuedCommand, StepRun
from orchestrator.testing import pass_time, registered, started
from tests.apps.process_managers.fixtures import SetHandler, handler
from tests.apps.raising import exits
from tests.apps.raising.exits import leave, leaving
from tests.services.database import NEEDS_SERVER

__all__ = ["handler"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "handlers")]

LONG = timedelta(days=1)
ENDS = (SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError)
MONTH = timedelta(days=30)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(*exits.DEFINITIONS):
        yield


@pytest.fixture
def handlers(handler: SetHandler, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let each handler leave."""

    def do(message: exits.Note | exits.Inform | exits.Knock) -> None:
        leave()

    handler(exits.Note, do)
    handler(exits.Inform, do, after_commit=True, attempts=2)
    reaction = Handler(do, exits.Knock, True, 2, 300, "default")
    monkeypatch.setitem(registry.reactions, "Knock", [reaction])
    leaving.clear()
    definitions.forget_definitions()
    yield
    leaving.clear()


def told(event: Event) -> None:
    process = started(exits.Guarding, exits.Opened(1))
    send_event(event, id="1", process_id=process.id)


def listened() -> None:
    process = started(exits.Listening, exits.Number())
    send_event(exits.Rung(1), id="1", process_id=process.id)


def opened() -> None:
    started(exits.Guarding, exits.Opened(1))
    pass_time(MONTH - LONG / 2)


def rested() -> None:
    started(exits.Resting, exits.Number())
    definitions.forget_definitions()


PLACES: dict[str, tuple[Callable[[], object], type[Any], int]] = {
    "predicate": (lambda: told(exits.Shut(1)), InboxEvent, 5),
    "handler inside the transaction": (lambda: told(exits.Rung(1)), InboxEvent, 5),
    "handler after the commit": (lambda: told(exits.Asked(1)), IssuedCommand, 2),
    "value": (lambda: told(exits.Sealed(exits.Unread(1))), InboxEvent, 5),
    "deadline": (opened, StepRun, 5),
    "reaction": (lambda: send_event(exits.Knock(1), id="1"), IssuedCommand, 2),
    "condition": (lambda: start_process(exits.Deciding, exits.Number()), StepRun, 2),
    "predicate of a wait": (listened, InboxEvent, 5),
    "graph": (rested, StepRun, 4),
    "step": (lambda: start_process(exits.Calling, exits.Number()), StepRun, 2),
}
"""The places -> what leads to them, the work that fails there, and the number of its attempts."""


SURVIVING = ("handler after the commit", "condition", "graph", "step")
"""The places whose code runs outside of the engine's transactions, or again where that can go on."""


@pytest.mark.parametrize("kind", ENDS)
@pytest.mark.parametrize("place", PLACES)
def test_what_ends_programs_is_charged_and_told(
    place: str, kind: type[BaseException]
) -> None:
    lead, work, attempts = PLACES[place]
    lead()

    def end() -> None:
        raise kind("2")

    leaving.append(end)
    pass_time(LONG)

    (incident,) = Incident.objects.open()
    assert incident.message.startswith("ExitRefused: ")
    assert f" raised {kind.__name__}: 2, which ends programs" in incident.message
    row = work.objects.exclude(error="").get()
    assert (row.attempt, row.owner) == (attempts, "")


def test_a_parked_event_whose_predicate_exits_does_not_fail_another_event() -> None:
    process = started(exits.Guarding, exits.Opened(1))
    pass_time(MONTH)
    assert process.send(exits.Shut(1)) == "parked"
    leaving.append(exit)

    assert process.send(exits.Back(1)) == "moved"
    pass_time(LONG)
    assert InboxEvent.objects.get(type="Shut").verdict == "failed"


class Unreadable(BaseException):
    """Its text is code of the application too."""

    def __str__(self) -> str:
        raise ValueError("no text")


def test_an_exit_whose_text_raises_leaves_nothing_open() -> None:
    start_process(exits.Calling, exits.Number())

    def end() -> None:
        transaction.atomic().__enter__()
        raise Unreadable

    leaving.append(end)
    before = len(connection.savepoint_ids), len(connection.execute_wrappers)
    pass_time(LONG)

    assert (len(connection.savepoint_ids), len(connection.execute_wrappers)) == before
    assert StepRun.objects.exclude(error="").get().status == "failed"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("place", PLACES)
def test_what_goes_on_after_a_statement_that_failed_is_told_so(place: str) -> None:
    lead, _, _ = PLACES[place]
    lead()

    def pass_over() -> None:
        with suppress(IntegrityError):
            for _ in range(2):
                Group.objects.create(name="the name of both")

    leaving.append(pass_over)
    pass_time(LONG)

    told = [incident.message for incident in Incident.objects.open()]
    assert bool(told) == (place not in SURVIVING)
    assert [
        one
        for one in told
        if " left a transaction that can only be rolled back, " not in one
    ] == []


def ask_by_text() -> None:
    raise RuntimeError(Group.objects.extra(where=["nonsense = 1"]))


def begin_by_statement() -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
    raise RuntimeError("it has begun a transaction")


def set_path() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET search_path TO tenant_a")
    raise RuntimeError("it has set the path")


@NEEDS_SERVER
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("fail", [ask_by_text, begin_by_statement, set_path])
@pytest.mark.parametrize("place", PLACES)
def test_an_error_that_leaves_the_session_otherwise_is_charged_and_told(
    place: str, fail: Callable[[], None]
) -> None:
    lead, work, attempts = PLACES[place]
    lead()
    leaving.append(fail)
    # A value that cannot be read is looked at every half minute: another release may read it.
    pass_time(timedelta(minutes=2) if place == "value" else LONG)

    assert Incident.objects.open().exists()
    if place != "value":
        row = work.objects.exclude(error="").get()
        assert (row.attempt, row.owner) == (attempts, "")
