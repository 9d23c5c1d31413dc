"""The commands of a row: carried out in the order written, each after the one before it has settled."""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from django.core.checks import run_checks
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from orchestrator import CommandContext, Permanent, send_event, start_process
from orchestrator.definition import Command, ProcessManager, during, when
from orchestrator.engine import operations
from orchestrator.engine.invariants import violations
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import commands
from orchestrator.engine.work import leases
from orchestrator.models import IssuedCommand, Lost, OperatorAction, ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.apps.ordered_commands.processes import (
    BookClosed,
    BookReturned,
    Edit,
    Print,
    Publishing,
    Register,
    Ship,
)
from tests.apps.process_managers.fixtures import SetHandler
from tests.services.client import Client
from tests.services.doing import did, fresh, refused
from tests.services.invariants import undone

pytestmark = pytest.mark.django_db


Step, Book = Publishing.Step, Publishing.Data
HUNG_UP, NO = ConnectionError("no line"), Permanent("no paper")
HELD = "outbox: command {} is held, but nothing holds it"
EARLY = "outbox: command {} is done before the one that holds it has settled"
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
    apart = CLOSED.issue(Edit, at_once=True).issue(Print).issue(Ship, at_once=True)
    with registered(
        publishing(CLOSED.issue(Register, Edit, Print, Ship), "publishing"),
        publishing(apart, "apart"),
        publishing(CLOSED.issue(Register), "alone"),
        publishing(CLOSED.issue(Register, Edit), "one-after"),
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
    for command in (Edit, Print, Ship):
        handler(command, found.handle, after_commit=True, attempts=3, queue="press")
    return found


ALL = ["Register", "Edit", "Print", "Ship"]


def closed(name: str = "publishing") -> ProcessInstance:
    """Begin a process, which issues its commands; those that are carried out apart wait in their queue."""
    start_process(name, BookClosed("Ulysses"), id="1")
    run("default")
    return ProcessInstance.objects.get()


def publish(name: str = "publishing") -> ProcessInstance:
    book = closed(name)
    run()
    return fresh(book)


def standing() -> dict[str, str]:
    return dict(IssuedCommand.objects.values_list("type", "status"))


def skipped(book: ProcessInstance, name: str) -> OperatorAction:
    """Have a command skipped that has failed."""
    command = IssuedCommand.objects.get(type=name)
    action: OperatorAction = did(operations.skip_command, book, str(command.pk))
    run()
    fresh(book)
    return action


def test_what_waits_for_another_attempt_holds_the_rest(shop: Press) -> None:
    shop.errors["Edit"] = [HUNG_UP, HUNG_UP]
    publish()

    held = dict.fromkeys(("Print", "Ship"), "held")
    assert standing() == {"Register": "done", "Edit": "retrying", **held}
    pass_time(minutes=10)
    assert shop.called[1:] == ["Edit"] * 3 + ["Print", "Ship"]


def test_no_worker_claims_what_is_held(shop: Press) -> None:
    closed()
    [first] = commands.claim("press", "another", 8, 10)

    assert first.work.type == "Edit"
    drain("press")
    assert shop.called == ["Register"]
    assert IssuedCommand.objects.filter(wake_at=None, status="held").count() == 2


def test_the_order_outlives_a_worker_that_dies(shop: Press) -> None:
    closed()
    [first] = commands.claim("press", "dead", 8, 10, status="running")
    name = leases.work_name(first.work)
    leases.end_leases(["dead"], running={name: Lost.DIED})
    run()

    assert shop.called == ALL
    assert IssuedCommand.objects.get(type="Edit").attempt == 2


def test_what_failed_for_good_holds_the_rest_until_it_is_retried(shop: Press) -> None:
    shop.errors["Print"] = [NO]
    book = publish()
    pass_time(days=1)
    assert shop.called == ["Register", "Edit", "Print"]

    did(operations.retry, book)
    run()

    assert shop.called[3:] == ["Print", "Ship"]
    assert fresh(book).status == "waiting"


def test_or_until_it_is_skipped(shop: Press) -> None:
    shop.errors["Print"] = [NO]
    book = publish()

    action = skipped(book, "Print")

    assert shop.called == ALL
    assert (standing()["Print"], action.after["skipped"]) == ("skipped", "Print")
    assert book.status == "waiting"
    assert not book.incidents.open().exists()


def test_only_what_has_failed_can_be_skipped(shop: Press) -> None:
    shop.errors["Edit"] = [NO]
    book = publish()
    held = IssuedCommand.objects.get(type="Print")

    for key, said in (
        (str(held.pk), "Print is held"),
        (str(uuid4()), "the process has no command"),
        ("7", "the process has no command 7"),
    ):
        refused(said, operations.skip_command, book, key)
    assert standing()["Print"] == "held"


@pytest.mark.parametrize("then_fails", [False, True])
def test_the_order_outlives_its_process(then_fails: bool, shop: Press) -> None:
    shop.errors["Edit"] = [HUNG_UP, *[NO] * then_fails]
    book = publish()
    send_event(BookReturned(), id="back", process_id=book.pk)
    run()
    assert fresh(book).status == "completed"

    pass_time(minutes=10)
    if then_fails:
        skipped(book, "Edit")
    assert shop.called == ["Register", "Edit", "Edit", "Print", "Ship"]


def test_the_order_outlives_a_pause(shop: Press) -> None:
    shop.errors["Edit"] = [HUNG_UP]
    book = publish()
    did(operations.pause, book, False)  # as its form gives it
    pass_time(minutes=10)

    assert shop.called == ["Register", "Edit", "Edit", "Print", "Ship"]
    assert fresh(book).status == "paused"


def test_the_next_may_be_on_another_queue(handler: SetHandler, shop: Press) -> None:
    handler(Print, shop.handle, after_commit=True)
    closed()
    run("press")
    assert shop.called == ["Register", "Edit"]
    run("default")
    run("press")

    assert shop.called == ALL


def test_a_row_with_one_of_them_sends_nothing_more(shop: Press) -> None:
    closed("one-after")
    with CaptureQueriesContext(connection) as sent:
        run("press")

    assert standing() == {"Register": "done", "Edit": "done"}
    text = "".join(query["sql"] or "" for query in sent.captured_queries)
    writes = text.count(f'UPDATE "{IssuedCommand._meta.db_table}"')
    assert writes == 2  # it is claimed and settled


# What the row frees


def test_commands_issued_at_once_neither_wait_nor_hold(shop: Press) -> None:
    shop.errors["Edit"] = [NO]
    publish("apart")

    assert sorted(shop.called) == ["Edit", "Print", "Ship"]
    assert standing() == {"Edit": "failed", "Print": "done", "Ship": "done"}


# The system check


def orders() -> list[str]:
    return [str(m) for m in run_checks() if m.id == "orchestrator.E008"]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (CLOSED.issue(Register, Edit, Print), ""),
        (CLOSED.issue(Edit, at_once=True).issue(Register), ""),
        (CLOSED.issue(Edit).issue(Register, at_once=True), ""),
        (CLOSED.issue(Print, Edit, Register), "Register runs in"),
        (CLOSED.issue(Edit).issue(Register), "but Edit, which"),
    ],
    ids=["right", "freed", "free", "mixed", "issued apart"],
)
def test_a_row_that_mixes_them_is_an_error(row: object, said: str, shop: Press) -> None:
    with registered(publishing(row)):
        found = orders()

    assert bool(found) == bool(said)
    assert all(said in one and "at_once=True" in one for one in found)


# On the page, and in the invariants


def test_pages_say_what_holds_a_command_and_skip_it(shop: Press, admin: Client) -> None:
    shop.errors["Edit"] = [NO]
    book = publish()

    def history() -> str:
        page = admin.read(f"/processes/{book.pk}/")
        return " ".join(page.partition('id="history"')[2].split())

    page = history()
    row = page.partition('id="revision-1"')[2]
    places = [row.index(f"{name} <") for name in ALL]
    assert places == sorted(places)
    assert page.count("held by Edit") == 2
    failed = IssuedCommand.objects.get(type="Edit")
    assert f'data-given="{failed.pk}"' in page

    form = {"key": uuid4(), "reason": "why not", "command": failed.pk}
    answer = admin.post(f"/processes/{book.pk}/skip_command/", form, follow=True)
    assert "Skipped." in answer.content.decode()
    run()
    assert "held by" not in history()


def test_they_are_carried_out_in_the_order_written(shop: Press) -> None:
    publish()

    assert shop.called == ALL
    assert set(standing().values()) == {"done"}
    last = IssuedCommand.objects.filter(type="Ship")
    last.update(status="held", finished_at=None)
    assert violations() == [HELD.format(last.get().pk)]
    last.update(status="done", finished_at=timezone.now())


def test_the_invariants_find_a_command_out_of_its_turn(shop: Press) -> None:
    shop.errors["Edit"] = [NO]
    publish()
    early = IssuedCommand.objects.filter(type="Print")
    early.update(status="done", attempt=1, finished_at=timezone.now())

    last = IssuedCommand.objects.get(type="Ship")
    assert set(violations()) == {EARLY.format(early.get().pk), HELD.format(last.pk)}
    # The invariants are asked for again after the test.
    early.update(status="held", attempt=0, finished_at=None)


# The attempt


def test_a_handler_in_the_transaction_knows_the_attempt(handler: SetHandler) -> None:
    seen: list[tuple[int, str]] = []

    def fail_twice(command: Register, context: CommandContext) -> None:
        seen.append((context.attempt, context.idempotency_key))
        if len(seen) < 3:
            raise HUNG_UP

    handler(Register, fail_twice)
    start_process("alone", BookClosed("Ulysses"), id="1")
    pass_time(minutes=10)

    key = str(IssuedCommand.objects.get().pk)
    assert seen == [(1, key), (2, key), (3, key)]


def test_a_command_that_was_let_go_before_the_one_it_follows_is_found(
    shop: Press,
) -> None:
    shop.errors["Edit"] = [HUNG_UP]
    publish()
    assert violations() == []

    with undone():
        IssuedCommand.objects.filter(type="Edit").update(holds=None)
        printing = IssuedCommand.objects.filter(type="Print")
        printing.update(status="ready", wake_at=timezone.now())
        assert any(
            "before" in line and line.startswith("model") for line in violations()
        )
