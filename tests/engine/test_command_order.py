"""The commands of a row: carried out in the order written, each after the one before it has settled."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.core.checks import run_checks
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from orchestrator import CommandContext, Permanent, send_event, start_process
from orchestrator.definition import Command, Event, ProcessManager, during, when
from orchestrator.engine import operations
from orchestrator.engine.claims import leases
from orchestrator.engine.drain import drain
from orchestrator.engine.invariants import violations
from orchestrator.engine.storage.tables import commands
from orchestrator.exceptions import OperationRefused
from orchestrator.models import IssuedCommand, ProcessInstance, Status
from orchestrator.testing import pass_time, registered, run
from tests.apps.process_managers.fixtures import SetHandler
from tests.services.asking import asked

pytestmark = pytest.mark.django_db


class BookClosed(Event):
    title: str


class BookReturned(Event):
    pass


class Register(Command):
    title: str


class Announce(Command):
    title: str


class Print(Command):
    title: str


class Ship(Command):
    title: str


class Step(StrEnum):
    WRITTEN = "Written"
    OUT = "Out"
    BACK = "Back"


@dataclass(frozen=True)
class Book:
    title: str


CLOSED = when(BookClosed).go_to(Step.OUT)


def publishing(row: object, name: str = "checked") -> type[ProcessManager]:
    """Return a process manager that issues in its first transition what the row says."""
    body = {
        "__module__": __name__,
        "name": name,
        "Step": Step,
        "Data": Book,
        "correlation": "title",
        "transitions": (
            during(Step.WRITTEN, row),  # type: ignore[arg-type]  # a row
            during(Step.OUT, when(BookReturned).go_to(Step.BACK)),
        ),
    }
    return type("Publishing", (ProcessManager,), body)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    """For a whole module: the invariants are asked for after each test, and must still know the definition."""
    apart = CLOSED.issue(Announce, at_once=True).issue(Print).issue(Ship, at_once=True)
    with registered(
        publishing(CLOSED.issue(Register, Announce, Print, Ship), "publishing"),
        publishing(apart, "apart"),
        publishing(CLOSED.issue(Register), "alone"),
        publishing(CLOSED.issue(Register, Announce), "one-after"),
    ):
        yield


class Press:
    """Handlers that note what they are called for, and fail as often as they are told."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.errors: dict[str, list[Exception]] = {}

    def handle(self, command: Command, context: CommandContext) -> None:
        name = type(command).__name__
        self.called.append(name)
        if self.errors.get(name):
            raise self.errors[name].pop(0)


@pytest.fixture
def shop(handler: SetHandler) -> Press:
    """Return the handlers of the commands, all but the first after the commit."""
    found = Press()
    handler(Register, found.handle)
    for command in (Announce, Print, Ship):
        handler(command, found.handle, after_commit=True, attempts=3, queue="press")
    return found


def publish(name: str = "publishing") -> ProcessInstance:
    start_process(name, BookClosed("Ulysses"), id="1")
    run()
    return ProcessInstance.objects.get()


def standing() -> dict[str, str]:
    return dict(IssuedCommand.objects.values_list("type", "status"))


def test_what_waits_for_another_attempt_holds_the_rest(shop: Press) -> None:
    shop.errors["Announce"] = [ConnectionError("no line"), ConnectionError("no line")]
    publish()

    assert standing() == {
        "Register": "done",
        "Announce": "retrying",
        "Print": "held",
        "Ship": "held",
    }
    pass_time(minutes=10)
    assert shop.called[1:] == ["Announce"] * 3 + ["Print", "Ship"]


def test_no_worker_claims_what_is_held(shop: Press) -> None:
    start_process("publishing", BookClosed("Ulysses"), id="1")
    run("default")
    [first] = commands.claim("press", "another", 8, 10)

    assert first.work.type == "Announce"
    drain("press")
    assert shop.called == ["Register"]
    assert IssuedCommand.objects.filter(wake_at=None, status="held").count() == 2


def test_the_order_outlives_a_worker_that_dies(shop: Press) -> None:
    start_process("publishing", BookClosed("Ulysses"), id="1")
    run("default")
    [first] = commands.claim("press", "dead", 8, 10, status="running")
    name = leases.name_of(commands, first.work.pk)
    leases.end(["dead"], in_hand={name: "died"})  # type: ignore[dict-item]  # its value
    run()

    assert shop.called == ["Register", "Announce", "Print", "Ship"]
    attempts = IssuedCommand.objects.values_list("type", "attempt")
    assert dict(attempts)["Announce"] == 2


def test_a_command_that_failed_for_good_holds_the_rest_until_it_is_retried(
    shop: Press,
) -> None:
    shop.errors["Print"] = [Permanent("no paper")]
    book = publish()
    pass_time(days=1)
    assert shop.called == ["Register", "Announce", "Print"]

    operations.retry(book.pk, request=asked())
    run()

    assert shop.called[3:] == ["Print", "Ship"]
    book.refresh_from_db()
    assert book.status == Status.WAITING


def test_or_until_it_is_skipped(shop: Press) -> None:
    shop.errors["Print"] = [Permanent("no paper")]
    book = publish()
    failed = IssuedCommand.objects.get(type="Print")

    action = operations.skip_command(book.pk, str(failed.pk), request=asked())
    run()

    assert shop.called == ["Register", "Announce", "Print", "Ship"]
    assert standing()["Print"] == "skipped"
    book.refresh_from_db()
    assert book.status == Status.WAITING
    assert not book.incidents.open().exists()
    assert action.after["skipped"] == "Print"


def test_only_what_has_failed_can_be_skipped(shop: Press) -> None:
    shop.errors["Announce"] = [Permanent("no line")]
    book = publish()
    held = IssuedCommand.objects.get(type="Print")

    for key, said in (
        (str(held.pk), "Print is held"),
        (str(uuid4()), "the process has no command"),
        ("7", "the process has no command 7"),
    ):
        with pytest.raises(OperationRefused, match=said):
            operations.skip_command(book.pk, key, request=asked())
    assert standing()["Print"] == "held"


@pytest.mark.parametrize("then_fails", [False, True])
def test_the_order_outlives_the_end_of_the_process_after_which_one_can_be_skipped(
    then_fails: bool, shop: Press
) -> None:
    errors: list[Exception] = [ConnectionError("no line")]
    shop.errors["Announce"] = errors + [Permanent("no line")] * then_fails
    book = publish()
    send_event(BookReturned(), id="back", process_id=book.pk)
    run()
    book.refresh_from_db()
    assert book.status == Status.COMPLETED

    pass_time(minutes=10)
    if then_fails:
        failed = IssuedCommand.objects.get(type="Announce", status="failed")
        operations.skip_command(book.pk, str(failed.pk), request=asked())
        run()
    assert shop.called == ["Register", "Announce", "Announce", "Print", "Ship"]


def test_the_order_outlives_a_pause(shop: Press) -> None:
    shop.errors["Announce"] = [ConnectionError("no line")]
    book = publish()
    operations.pause(book.pk, False, request=asked())  # as its form gives it
    pass_time(minutes=10)

    assert shop.called == ["Register", "Announce", "Announce", "Print", "Ship"]
    book.refresh_from_db()
    assert book.status == Status.PAUSED


def test_the_next_may_be_on_another_queue(handler: SetHandler, shop: Press) -> None:
    handler(Print, shop.handle, after_commit=True)
    start_process("publishing", BookClosed("Ulysses"), id="1")
    run("default")
    run("press")
    assert shop.called == ["Register", "Announce"]
    run("default")
    run("press")

    assert shop.called == ["Register", "Announce", "Print", "Ship"]


def test_a_row_with_one_of_them_sends_nothing_more(shop: Press) -> None:
    start_process("one-after", BookClosed("Ulysses"), id="1")
    run("default")
    with CaptureQueriesContext(connection) as sent:
        run("press")

    assert standing() == {"Register": "done", "Announce": "done"}
    text = "".join(query["sql"] or "" for query in sent.captured_queries)
    writes = text.count(f'UPDATE "{IssuedCommand._meta.db_table}"')
    assert writes == 2  # it is claimed and settled


# What the row frees


def test_commands_issued_at_once_neither_wait_nor_hold(shop: Press) -> None:
    shop.errors["Announce"] = [Permanent("no line")]
    publish("apart")

    assert sorted(shop.called) == ["Announce", "Print", "Ship"]
    assert standing() == {"Announce": "failed", "Print": "done", "Ship": "done"}


# The system check


def orders() -> list[str]:
    return [str(m) for m in run_checks() if m.id == "orchestrator.E008"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (CLOSED.issue(Register, Announce, Print), ""),
        (CLOSED.issue(Announce, at_once=True).issue(Register), ""),
        (CLOSED.issue(Announce).issue(Register, at_once=True), ""),
        (CLOSED.issue(Print, Announce, Register), "Register is carried out"),
        (CLOSED.issue(Announce).issue(Register), "and Announce, which"),
    ],
    ids=["right", "freed", "free", "mixed", "issued apart"],
)
def test_a_row_that_mixes_them_is_an_error(row: object, said: str, shop: Press) -> None:
    with registered(publishing(row)):
        found = orders()

    assert bool(found) == bool(said)
    assert all(said in one and "at_once=True" in one for one in found)


# On the page, and in the invariants


def page_of(book: ProcessInstance, client: Client) -> str:
    page = client.get(f"/processes/{book.pk}/").content.decode()
    return " ".join(page.partition('id="ledger"')[2].split())


def test_the_page_says_what_holds_a_command_and_offers_to_skip_it(
    shop: Press, client: Client
) -> None:
    client.force_login(User.objects.create_superuser("reader"))
    shop.errors["Announce"] = [Permanent("no line")]
    book = publish()

    page = page_of(book, client)
    row = page.partition('id="revision-1"')[2]
    order = ["Register <", "Announce <", "Print <", "Ship <"]
    places = [row.index(word) for word in order]
    assert places == sorted(places)
    assert page.count("held by Announce") == 2
    failed = IssuedCommand.objects.get(type="Announce")
    assert f'data-given="{failed.pk}"' in page

    form = {"key": uuid4(), "reason": "why not", "command": failed.pk}
    answer = client.post(f"/processes/{book.pk}/skip_command/", form, follow=True)
    assert "Skipped." in answer.content.decode()
    run()
    assert "held by" not in page_of(book, client)


def test_they_are_carried_out_in_the_order_written(shop: Press) -> None:
    publish()

    assert shop.called == ["Register", "Announce", "Print", "Ship"]
    assert set(standing().values()) == {"done"}
    last = IssuedCommand.objects.filter(type="Ship")
    last.update(status="held", finished_at=None)
    [found] = violations()
    assert found == f"outbox: command {last.get().pk} is held, but nothing holds it"
    last.update(status="done", finished_at=timezone.now())


def test_the_invariants_find_a_command_out_of_its_turn(shop: Press) -> None:
    shop.errors["Announce"] = [Permanent("no line")]
    publish()
    early = IssuedCommand.objects.filter(type="Print")
    early.update(status="done", attempt=1, finished_at=timezone.now())

    assert sorted(violations(), key=lambda said: "nothing" in said) == [
        f"outbox: command {early.get().pk} is done before the one that holds it has settled",
        f"outbox: command {IssuedCommand.objects.get(type='Ship').pk} is held, but nothing holds it",
    ]
    early.update(
        status="held", attempt=0, finished_at=None
    )  # the invariants are asked for again after the test


# The attempt


def test_a_handler_in_the_transaction_knows_the_attempt(handler: SetHandler) -> None:
    seen: list[tuple[int, str]] = []

    def fail_twice(command: Register, context: CommandContext) -> None:
        seen.append((context.attempt, context.idempotency_key))
        if len(seen) < 3:
            raise ConnectionError("no line")

    handler(Register, fail_twice)
    start_process("alone", BookClosed("Ulysses"), id="1")
    pass_time(minutes=10)

    key = str(IssuedCommand.objects.get().pk)
    assert seen == [(1, key), (2, key), (3, key)]
