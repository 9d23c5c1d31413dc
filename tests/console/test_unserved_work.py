"""Work that is due on a queue without a worker is told wherever its process is shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from monitoring.probes import unserved_work
from orchestrator import send_event, start_process
from orchestrator.definition import Event, ProcessManager, Workflow, during, step, when
from orchestrator.engine.operations import pause
from orchestrator.models import ProcessInstance
from orchestrator.testing import registered, run
from tests.conftest import of, person
from tests.console.test_seen_by_definition import VIEW, let_see
from tests.services.asking import asked
from tests.services.client import Client, Read
from tests.services.hired import hire

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known", "served")]

SAID = "No worker serves the queue press."
START = "manage.py work --queue press"
LONG = -3600
"""Seconds ago: a worker that is heard of in an hour lives for as long as a test takes."""


@dataclass(frozen=True)
class Sheet:
    text: str = "news"


def print_sheet(text: str) -> str:
    return text


class Printing(Workflow):
    """Prints a sheet."""

    name = "printing"
    queue = "press"
    Input = Sheet
    flow = (step(print_sheet),)


class Delivering(Workflow):
    """Delivers a sheet, on a queue that is served."""

    name = "delivering"
    Input = Sheet
    flow = (step(print_sheet),)


class Trimmed(Event):
    sheet: str


class Stitched(Event):
    sheet: str


class Bound(Event):
    sheet: str


@dataclass(frozen=True)
class Book:
    sheet: str


class Binding(ProcessManager):
    """Trims, stitches and binds a sheet."""

    class Step(StrEnum):
        NEW = "New"
        TRIMMED = "Trimmed"
        STITCHED = "Stitched"
        BOUND = "Bound"

    name = "binding"
    queue = "press"
    Data = Book
    correlation = "sheet"
    transitions = (
        during(Step.NEW, when(Trimmed).go_to(Step.TRIMMED)),
        during(Step.TRIMMED, when(Stitched).go_to(Step.STITCHED)),
        during(Step.STITCHED, when(Bound).go_to(Step.BOUND)),
    )


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    with registered(Printing, Delivering, Binding):
        yield


@pytest.fixture
def served() -> None:
    """A worker of the default queue, and none of the queue of the press."""
    hire(seconds_ago=LONG)


def sheet(of: type[Workflow] = Printing) -> ProcessInstance:
    receipt = start_process(of, Sheet())
    return ProcessInstance.objects.get(pk=receipt.process_id)


def binding(sheet: str) -> ProcessInstance:
    receipt = start_process(Binding, Trimmed(sheet))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def shown(page: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def row_of(name: str, home: str) -> str:
    found = re.search(rf'<tr id="definition-{name}".*?</tr>', home, re.DOTALL)
    assert found is not None
    return shown(found[0])


def test_a_process_says_it_with_its_step_and_its_visit(page_of: Read) -> None:
    text = shown(page_of(sheet()))
    # At its head, at the open step, and among the steps in time.
    assert text.count(SAID) == 3
    assert text.count("Due since") == 2
    assert text.count(START) == 2  # at its head, and in the page's banner


def test_its_box_in_the_diagram_has_another_colour_than_one_that_waits(
    page_of: Read,
) -> None:
    box = r'<g id="n_print_sheet" class="([^"]+)"'
    [classes] = re.findall(box, page_of(sheet()))
    assert "is-ready is-current is-unserved" in classes
    [classes] = re.findall(box, page_of(sheet(Delivering)))
    assert "is-unserved" not in classes


def test_a_process_manager_says_it_of_its_event(page_of: Read) -> None:
    instance = binding("news")
    assert SAID not in shown(page_of(instance))
    send_event(Stitched("news"), id="one", source="press", process_id=instance.pk)
    text = shown(page_of(instance))
    assert f"Due since {text.partition('Due since ')[2][:8]}" in text
    assert SAID in text


def test_its_definition_says_it_on_the_first_page(operating: Client) -> None:
    sheet()
    sheet(Delivering)
    home = operating.get("/").content.decode()
    assert "no worker serves press , the oldest" in row_of("printing", home)
    assert '?definition=printing"' in home
    assert "nothing needs a person" in row_of("delivering", home)


def test_the_list_of_what_stands_still_has_it(show: Read) -> None:
    assert "Nothing stands still." in show("/stalled/")
    sheet()
    sheet()
    send_event(Bound("lost"), id="bound", source="press")
    text = shown(show("/stalled/"))
    assert "Due, and no worker serves its queue" in text
    assert re.search(rf"printing press 2 \S+ .*? {START}", text)
    assert "Nothing else stands still." in text
    assert "printing press" not in shown(show("/stalled/?definition=delivering"))


def test_what_is_served_paused_ended_or_past_does_not_say_it(page_of: Read) -> None:
    other, stopped = sheet(Delivering), sheet()
    pause(stopped.pk, request=asked())
    assert [SAID in shown(page_of(one)) for one in (other, stopped)] == [False, False]
    run()
    other.refresh_from_db()
    assert other.finished_at is not None
    assert SAID not in shown(page_of(other))
    book = binding("news")
    send_event(Stitched("news"), id="one", source="press", process_id=book.pk)
    run()
    send_event(Bound("news"), id="two", source="press", process_id=book.pk)
    assert SAID in shown(page_of(book))
    assert SAID not in shown(page_of(book, "?at=1"))


def test_a_worker_of_the_queue_ends_it(page_of: Read, show: Read) -> None:
    instance = sheet()
    hire("press", seconds_ago=LONG)
    assert SAID not in shown(page_of(instance))
    assert "Nothing stands still." in show("/stalled/")
    assert "no worker serves" not in show("/")


def test_readers_of_one_definition_see_that_of_theirs_alone() -> None:
    sheet()
    for definition, sees in (("delivering", False), ("printing", True)):
        client = of(let_see(person(f"of-{definition}"), definition, VIEW))
        home, list_ = "/", f"/stalled/?definition={definition}"
        told = ["serves press" in client.read(home), START in client.read(list_)]
        assert told == [sees, sees], definition


def test_starts_by_events_are_told_and_numbers_say_when_they_are_more(
    show: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unserved_work, "MOST", 2)
    for _ in range(3):
        sheet()
    start_process(Binding, Trimmed("news"))
    text = shown(show("/stalled/"))
    assert "binding press 1+" in text
    assert "printing press 2+" in text


def test_each_queue_is_read_in_the_order_of_its_index(show: Read) -> None:
    sheet()
    with CaptureQueriesContext(connection) as asked_for:
        show("/stalled/")
    due = [
        one["sql"]
        for one in asked_for
        if 'AS "of"' in one["sql"] and 'FROM "orchestrator_steprun"' in one["sql"]
    ]
    assert len(due) == 2  # of the queue, and of its calls
    if connection.vendor == "postgresql":
        return  # it sorts small tables whatever index they have
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {due[0]}")
        plan = str(cursor.fetchall())
    assert "TEMP B-TREE" not in plan
