"""S8.2, a ladder of deadlines: those whom a row names are told, whatever else they want to be told of."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.core.checks import run_checks
from pytest_django import Settings

from monitoring.diagrams import drawing_of
from monitoring.diagrams.table import transition_table
from orchestrator import start_process
from orchestrator.definition.graph import Graph
from orchestrator.engine.loops.drain import drain
from orchestrator.models import Occurrence, ProcessInstance
from orchestrator.testing import pass_time
from tests.apps.ladder.processes import Question, QuestionAsked
from tests.apps.process_managers.fixtures import known
from tests.services.doing import fresh
from tests.services.telling import gathered

pytestmark = pytest.mark.django_db

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
CLERK, DUTY, OPS = (
    {"to": [f"{who}@example.org"], "about": [what]}
    for who, what in (("clerk", "queue"), ("duty", "queue"), ("ops", "escalation"))
)
BOTH = ["deadline", "escalation"]


@pytest.fixture(scope="module", autouse=True)
def ladder() -> Iterator[None]:
    """Let the running code have the process."""
    yield from known(Question)


@pytest.fixture(autouse=True)
def declared(settings: Settings) -> None:
    """Declare the clerk and the duty officer, who want to hear of nothing but queues."""
    settings.PROCESSION_NOTICES = {"clerk": CLERK, "duty": DUTY}


def asked() -> ProcessInstance:
    receipt = start_process(Question, QuestionAsked("Q-1"), id="ask Q-1", source="desk")
    drain()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def told() -> dict[str, list[list[str]]]:
    """What each recipient is told: the topics of each thing."""
    return {one.recipient: [item["topics"] for item in one.items] for one in gathered()}


def test_s8_2_each_rung_tells_those_whom_it_names() -> None:
    process = asked()
    pass_time(59 * MINUTE)
    assert told() == {}

    pass_time(2 * MINUTE)
    assert told() == {"clerk": [["deadline"]]}

    pass_time(HOUR)
    assert told() == {"clerk": [["deadline"], BOTH], "duty": [BOTH]}
    assert (fresh(process).escalation_level, process.step) == (1, "Waiting")
    assert not Occurrence.objects.exists()


def test_s8_2_a_rung_whose_guard_does_not_hold_tells_nobody() -> None:
    process = asked()
    pass_time(2 * HOUR + MINUTE)
    before = told()

    pass_time(HOUR)

    assert told() == before
    pass_time(HOUR)
    assert fresh(process).status == "completed"


def test_s8_2_others_are_told_as_they_want(settings: Settings) -> None:
    settings.PROCESSION_NOTICES = {"ops": OPS, "clerk": CLERK}
    asked()
    pass_time(2 * HOUR + MINUTE)

    assert told() == {"clerk": [["deadline"], BOTH], "ops": [BOTH]}


def test_s8_2_where_nobody_has_the_name_a_check_warns(settings: Settings) -> None:
    settings.PROCESSION_NOTICES = {"duty": DUTY}
    settings.PROCESSION_SITE_URL = "https://procession.example.org"
    asked()
    pass_time(HOUR + MINUTE)

    assert told() == {}
    assert not Occurrence.objects.exists()
    checks = run_checks(tags=["orchestrator"])
    boss, clerk = (one.msg for one in checks if one.id == "orchestrator.W004")
    assert ("'boss'" in boss, "'clerk'" in clerk) == (True, True)


def test_s8_2_the_ladder_is_drawn_and_stands_in_the_table() -> None:
    graph = Question.graph()

    drawn, table = drawing_of(graph).svg(), transition_table(graph).as_text()

    for text in ("notify clerk", "notify clerk, duty", "notify boss"):
        assert text in table
    assert "notify boss" in drawn
    assert Graph.from_json(graph.to_json()) == graph
