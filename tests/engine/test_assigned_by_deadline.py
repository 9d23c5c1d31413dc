"""S8.2, a ladder of deadlines: whom a row names sees to the process from then on."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import Settings

from monitoring.diagrams import drawing_of
from monitoring.diagrams.table import transition_table
from monitoring.queries.instance.history import history_of
from orchestrator import start_process
from orchestrator.definition.graph import Graph
from orchestrator.engine.drain import drain
from orchestrator.models import Notice, ProcessInstance
from orchestrator.testing import pass_time
from tests.apps.ladder.processes import Complaint, ComplaintMade
from tests.apps.process_managers.fixtures import known
from tests.conftest import person
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


def made() -> ProcessInstance:
    receipt = start_process(
        Complaint, ComplaintMade("C-1"), id="make C-1", source="desk"
    )
    drain()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def of(process: ProcessInstance) -> tuple[User | None, int]:
    """Whose it is, and how often it was escalated."""
    process.refresh_from_db()
    return process.owner, process.escalation_level


def test_s8_2_each_rung_gives_the_process_to_the_next(people: dict[str, User]) -> None:
    process = made()
    pass_time(59 * MINUTE)
    assert of(process) == (None, 0)

    pass_time(2 * MINUTE)
    assert of(process) == (people["day-shift"], 0)

    pass_time(HOUR)
    assert of(process) == (people["night-shift"], 0)
    assert process.step == "Open"

    pass_time(HOUR)
    assert of(process) == (people["day-shift"], 0)
    assert process.status == "completed"


def test_s8_2_where_nobody_active_has_the_name_it_is_escalated_with_the_reason(
    people: dict[str, User], settings: Settings
) -> None:
    settings.PROCESSION_NOTICES = {
        "ops": {"to": ["ops@example.org"], "about": ["escalation"]}
    }
    people["day-shift"].is_active = False
    people["day-shift"].save()
    process = made()

    pass_time(HOUR + MINUTE)

    assert of(process) == (None, 1)
    [told] = gathered()
    assert isinstance(told, Notice)
    assert "nobody with the name 'day-shift'" in str(told.items)


def test_s8_2_who_has_it_keeps_it_where_the_next_is_gone(
    people: dict[str, User],
) -> None:
    people["night-shift"].delete()
    process = made()

    pass_time(2 * HOUR + MINUTE)

    assert of(process) == (people["day-shift"], 1)


def test_s8_2_who_gets_it_is_drawn_and_stands_in_the_table_and_on_the_pages(
    client: Client, operator: User, people: dict[str, User]
) -> None:
    graph = Complaint.graph()
    process = made()
    client.force_login(operator)

    assert "assign to night-shift" in transition_table(graph).as_text()
    assert "assign to night-shift" in drawing_of(graph).svg()
    assert Graph.from_json(graph.to_json()) == graph
    for page in ("/waits/", f"/processes/{process.pk}/", "/definitions/complaint/"):
        assert "assign to night-shift" in client.get(page).content.decode(), page
    pass_time(HOUR + MINUTE)
    assert "day-shift" in client.get(f"/processes/{process.pk}/").content.decode()


def test_s4_1_the_row_of_a_deadline_in_the_ledger_says_whom_it_named(
    people: dict[str, User],
) -> None:
    process = made()
    pass_time(2 * HOUR + MINUTE)
    process.refresh_from_db()

    page = history_of(process, "Made", {})

    said = {entry.revision: (entry.what, entry.source) for entry in page.entries}
    assert list(said.values())[:2] == [
        ("Deadline passed", "assign to night-shift, notify duty"),
        ("Deadline passed", "assign to day-shift"),
    ]
