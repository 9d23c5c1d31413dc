"""S8.2, a ladder of deadlines: whom a row names sees to the process from then on."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from pytest_django import Settings

from monitoring.diagrams import drawing_of
from monitoring.diagrams.table import transition_table
from monitoring.process.history.history import history_of
from monitoring.process.revision.moment import process_moment
from orchestrator.definition.graph import Graph
from orchestrator.testing import Process, pass_time, started
from tests.apps.ladder.processes import Complaint, ComplaintMade
from tests.apps.process_managers.fixtures import known
from tests.conftest import person
from tests.services.client import Client
from tests.services.telling import gathered

pytestmark = pytest.mark.django_db

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture(scope="module", autouse=True)
def ladder() -> Iterator[None]:
    """Let the running code have the process."""
    yield from known(Complaint)


@pytest.fixture
def people(db: None) -> dict[str, User]:
    return {name: person(name) for name in ("day-shift", "night-shift")}


def made() -> Process:
    return started(Complaint, ComplaintMade("C-1"))


def of(process: Process) -> tuple[str, int]:
    """Whose it is, and how often it was escalated."""
    row = process.instance
    return str(row.owner or ""), row.escalation_level


def test_s8_2_each_rung_gives_the_process_to_the_next(people: dict[str, User]) -> None:
    process, found = made(), []
    for time in (59 * MINUTE, 2 * MINUTE, HOUR, HOUR):
        pass_time(time)
        found.append((*of(process), process.status))

    assert found == [
        ("", 0, "waiting"),
        ("day-shift", 0, "waiting"),
        ("night-shift", 0, "waiting"),
        ("day-shift", 0, "completed"),
    ]


def test_s8_2_where_nobody_active_has_the_name_it_is_escalated_with_the_reason(
    people: dict[str, User], settings: Settings
) -> None:
    ops = {"to": ["ops@example.org"], "about": ["escalation"]}
    settings.PROCESSION_NOTICES = {"ops": ops}
    people["day-shift"].is_active = False
    people["day-shift"].save()
    process = made()

    pass_time(HOUR + MINUTE)

    assert of(process) == ("", 1)
    [told] = gathered()
    assert "no active user has the name 'day-shift'" in str(told.items)


def test_s8_2_who_has_it_keeps_it_if_the_next_is_gone(people: dict[str, User]) -> None:
    people["night-shift"].delete()
    process = made()

    pass_time(2 * HOUR + MINUTE)

    assert of(process) == ("day-shift", 1)


def test_s8_2_who_gets_it_is_drawn_and_stands_in_the_table_and_on_the_pages(
    operating: Client, people: dict[str, User]
) -> None:
    graph = Complaint.graph()
    address = f"/processes/{made().id}/"

    assert "assign to night-shift" in transition_table(graph).as_text()
    assert "assign to night-shift" in drawing_of(graph).svg()
    assert Graph.from_json(graph.to_json()) == graph
    for page in ("/waits/", address, "/definitions/complaint/"):
        assert "assign to night-shift" in operating.read(page), page
    pass_time(HOUR + MINUTE)
    assert "day-shift" in operating.read(address)


def test_s4_1_a_deadline_in_a_history_names_its_person(people: dict[str, User]) -> None:
    process = made()
    pass_time(2 * HOUR + MINUTE)

    page = history_of(process_moment(process.instance))

    assert [(entry.what, entry.source) for entry in page.entries][:2] == [
        ("Deadline passed", "assign to night-shift, notify duty"),
        ("Deadline passed", "assign to day-shift"),
    ]
