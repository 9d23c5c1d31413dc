"""A process manager in trouble: its status is that of the work that still fails, and people can clear what is left."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

import pytest
from django.utils import timezone

from orchestrator import Permanent
from orchestrator.definition import (
    Command,
    Event,
    ProcessManager,
    after,
    during,
    when,
)
from orchestrator.engine.operations import pause, unpause
from orchestrator.models import IssuedCommand
from orchestrator.testing import Process, run, started
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import overdue
from tests.apps.process_managers.fixtures import SetHandler
from tests.services.crews import knowing
from tests.services.doing import did, raising, taking

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


class BookLent(Event):
    book: str


class LoanRenewed(Event):
    pass


class BookReturned(Event):
    pass


class PostBook(Command):
    book: str


class BillReader(Command):
    book: str


class RemindReader(Command):
    book: str


class Loan(ProcessManager):
    """Lends a book, which may be renewed once."""

    class Step(StrEnum):
        NEW = "New"
        OUT = "Out"
        RENEWED = "Renewed"
        BACK = "Back"

    @dataclass(frozen=True)
    class Data:
        book: str

    correlation = "book"

    transitions = (
        during(
            Step.NEW,
            when(BookLent).issue(PostBook, BillReader, at_once=True).go_to(Step.OUT),
        ),
        during(
            Step.OUT,
            when(LoanRenewed).go_to(Step.RENEWED),
            after(DAY).issue(RemindReader),
        ),
        during(
            Step.RENEWED,
            when(BookReturned).go_to(Step.BACK),
            after(DAY).issue(RemindReader),
            after(2 * DAY).escalate(),
        ),
    )


known = knowing(Loan)


@pytest.fixture(autouse=True)
def taken(handler: SetHandler) -> None:
    """Let each command be carried out in the commit that issues it."""
    for command in (PostBook, BillReader, RemindReader):
        handler(command, taking)


def lent() -> Process:
    return started(Loan, BookLent("Kokoro"))


def try_again() -> None:
    """Let the next attempts of commands be due, and make them."""
    waiting = IssuedCommand.objects.filter(status="retrying")
    waiting.update(wake_at=timezone.now())
    run()


def test_a_process_waits_again_once_its_command_is_carried_out(
    handler: SetHandler,
) -> None:
    handler(PostBook, raising(ConnectionError("no line")), after_commit=True)
    process = lent()
    assert process.status == "retrying"

    handler(PostBook, taking, after_commit=True)
    try_again()

    assert process.status == "waiting"


def test_a_process_has_failed_as_long_as_one_of_its_commands_has(
    handler: SetHandler,
) -> None:
    handler(PostBook, raising(Permanent("no stamps")), after_commit=True)
    handler(BillReader, raising(ConnectionError("no line")), after_commit=True)
    process = lent()
    assert process.status == "failed"

    handler(BillReader, taking, after_commit=True)
    try_again()

    assert IssuedCommand.objects.get(type="BillReader").status == "done"
    assert process.status == "failed"


def test_an_event_resolves_what_was_told_of_a_deadline_of_the_step_it_leaves(
    handler: SetHandler,
) -> None:
    handler(RemindReader, raising(Permanent("no address")))
    process = lent()
    overdue(process.instance)
    assert process.status == "failed"

    process.send(LoanRenewed())

    assert (process.status, process.incidents) == ("waiting", [])


def test_the_second_deadline_of_a_step_is_not_put_off_by_a_pause_before_the_step() -> (
    None
):
    process = lent()
    loan = process.instance
    did(pause, loan, True)
    move_times_back(10 * DAY)
    did(unpause, loan, True)
    process.send(LoanRenewed())
    overdue(loan)

    visit = loan.step_runs.get(finished_at=None)
    second = visit.started_at + 2 * DAY
    assert (visit.deadlines_fired, visit.wake_at) == (1, second)
