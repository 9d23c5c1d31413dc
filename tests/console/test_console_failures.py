"""What a process's page says of what has failed, of what was undone, and of the commands that are held."""

from collections.abc import Iterator

import pytest
from django.contrib.auth.models import User

from monitoring.process.page import instance_page
from monitoring.process.revision.entries import Entry, ShownCommand
from orchestrator import Permanent
from orchestrator.models import CommandStatus, IssuedCommand
from orchestrator.testing import registered
from tests.apps.compensation import journal
from tests.apps.patterns.desk import finished
from tests.apps.subprocess_failures.processes import WORKFLOWS, Booked, Plain, Round
from tests.services.client import Read
from tests.services.reading import plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("errands")]


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """For a whole module: the invariants are asked for after each test, and must still know the definitions."""
    with registered(*WORKFLOWS):
        yield


@pytest.fixture
def errands(known: None) -> None:
    journal.forget()


def test_what_has_failed_for_good_is_not_said_to_be_tried_again_nor_listed_twice(
    operator: User,
) -> None:
    journal.faults["buy"] = ConnectionError("no line")
    process = finished(Plain)
    child = process.children.get()
    for part in (process, child):
        newest = instance_page(part.pk, operator).history.entries[0]
        assert newest.status == "failed"
    view = instance_page(process.pk, operator).workflow
    assert view is not None
    assert [step.run.child for step in view.open] == [child]
    assert view.children == []  # its open step shows it


def test_a_map_is_as_failed_in_the_table_as_in_the_diagram(operator: User) -> None:
    journal.faults["buy"] = ConnectionError("no line")
    page = instance_page(finished(Round, "Nara", 3).pk, operator)
    view = page.workflow

    assert view is not None
    assert page.runs is not None
    [row] = [row for row in page.runs.rows if row.run.node == "errand"]
    [step] = [step for step in view.open if step.is_map]
    assert "is-failed" in page.state.nodes["errand"].classes
    assert (row.status, step.status) == ("failed", "failed")


def test_what_was_undone_and_who_declined(operator: User, page_of: Read) -> None:
    journal.faults["buy"] = Permanent("sold out")
    process = finished(Booked)
    page = instance_page(process.pk, operator)
    assert page.runs is not None

    history = [entry.status for entry in page.history.entries]
    table = [row.status for row in page.runs.rows]
    assert history == ["undone", "failed", "", "done", ""]
    assert table == ["undone", "failed", "done"]
    declined = "Declined by Errand SubprocessDeclined: the sub-process errand"
    assert declined in plain(page_of(process))


def test_of_many_commands_the_page_shows_the_first_and_those_that_fail() -> None:
    held, failed = CommandStatus.HELD, CommandStatus.FAILED
    statuses = [*[CommandStatus.DONE] * 10, failed, *[held] * 189]
    commands = [ShownCommand(IssuedCommand(status=status)) for status in statuses]
    entry = Entry(at=None, what="", commands=commands)  # type: ignore[arg-type]  # never shown

    assert entry.shown == [*commands[:8], commands[10]]
    assert entry.folded == [*commands[8:10], *commands[11:]]
