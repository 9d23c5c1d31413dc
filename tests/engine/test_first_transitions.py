"""What the start of a process manager writes and tells: its visits, its commands in their order, pages and people."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks, Settings

from orchestrator import Permanent, send_event, start_process
from orchestrator.definition import Command, Event, ProcessManager, during, when
from orchestrator.engine.change.announcements import announce_failures
from orchestrator.engine.loops.drain import drain
from orchestrator.models import Incident, IssuedCommand, Occurrence
from orchestrator.signals import Change, committed
from orchestrator.testing import run, started
from tests.apps.process_managers.fixtures import SetHandler
from tests.services.crews import knowing
from tests.services.doing import raising, taking
from tests.services.written_rows import bells

__all__ = ["bells"]

pytestmark = pytest.mark.django_db


class BookWanted(Event):
    title: str


class BookFetched(Event):
    pass


class SearchBook(Command):
    title: str


class PrintSlip(Command):
    title: str


class MailReader(Command):
    title: str


class Inquiry(ProcessManager):
    """Looks for a book, and tells its reader by mail once there is a slip."""

    class Step(StrEnum):
        NEW = "New"
        OPEN = "Open"
        CLOSED = "Closed"

    @dataclass(frozen=True)
    class Data:
        title: str

    correlation = "title"

    transitions = (
        during(
            Step.NEW,
            when(BookWanted)
            .issue(SearchBook, at_once=True)
            .issue(PrintSlip, MailReader)
            .escalate()
            .go_to(Step.OPEN),
        ),
        during(Step.OPEN, when(BookFetched).go_to(Step.CLOSED)),
    )


known = knowing(Inquiry)
WANTED = BookWanted("Kokoro")


@pytest.fixture(autouse=True)
def taken(handler: SetHandler) -> None:
    """Let each command be carried out in the commit that issues it."""
    for command in (SearchBook, PrintSlip, MailReader):
        handler(command, taking)


@pytest.fixture
def changes() -> Iterator[list[Change]]:
    """Return what live pages are told."""
    found: list[Change] = []

    def hear(change: Change, **signal: Any) -> None:
        found.append(change)

    committed.connect(hear)
    yield found
    committed.disconnect(hear)


def test_a_start_ends_the_visit_of_the_first_step_and_begins_that_of_the_next() -> None:
    process = started(Inquiry, WANTED)

    visits = process.instance.step_runs.order_by("pk")
    assert list(visits.values_list("definition", "node", "status")) == [
        ("inquiry", "New", "done"),
        ("inquiry", "Open", "waiting"),
    ]


def test_live_pages_are_told_of_a_start_after_its_commit(
    changes: list[Change],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        process = started(Inquiry, WANTED)
        assert changes == []

    told = [(one.process_id, one.name, one.revision, one.status) for one in changes]
    assert told == [(process.id, "inquiry", 1, "waiting")]


def test_live_pages_are_told_by_its_definition_that_failures_are_marked(
    changes: list[Change],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    with django_capture_on_commit_callbacks(execute=True):
        announce_failures("inquiry")

    assert [(one.process_id, one.name) for one in changes] == [(None, "inquiry")]


def test_what_people_are_told_of_an_escalation_names_the_process(
    settings: Settings,
) -> None:
    settings.PROCESSION_NOTICES = {"ops": {"to": ["ops@example.org"]}}
    process = started(Inquiry, WANTED)

    told = Occurrence.objects.get()
    assert (told.definition, told.process_id) == ("inquiry", process.id)
    assert (told.correlation_key, told.step) == ("Kokoro", "Open")


def test_the_incident_of_a_start_that_fails_tells_the_class_of_its_error(
    handler: SetHandler,
) -> None:
    handler(SearchBook, raising(Permanent("no catalogue")))
    send_event(WANTED, id="1")
    run()

    told = Incident.objects.get()
    assert (told.instance_id, told.error) == (None, "orchestrator.exceptions.Permanent")
    assert told.place.endswith("raising.<locals>.fail")


# Commands


def test_a_command_waits_for_the_one_before_it_also_behind_one_issued_at_once(
    handler: SetHandler,
) -> None:
    handler(SearchBook, taking, after_commit=True)
    handler(PrintSlip, raising(ConnectionError("no paper")), after_commit=True)
    handler(MailReader, taking, after_commit=True)
    started(Inquiry, WANTED)

    assert dict(IssuedCommand.objects.values_list("type", "status")) == {
        "SearchBook": "done",
        "PrintSlip": "retrying",
        "MailReader": "held",
    }


def test_the_end_of_a_command_wakes_the_queue_of_the_one_that_waits_for_it(
    handler: SetHandler,
    bells: list[str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    handler(PrintSlip, taking, after_commit=True, queue="printer")
    handler(MailReader, taking, after_commit=True, queue="post")
    start_process(Inquiry, WANTED, id="1")
    run("default")
    with django_capture_on_commit_callbacks(execute=True):
        drain("printer")

    assert bells == ["post"]
