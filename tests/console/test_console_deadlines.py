"""What pages say of deadlines: how long until one, and since when it is overdue."""

from datetime import timedelta

import pytest
from django.utils import timezone

from examples.order_listing.messages import Destination
from orchestrator.models import StepRun
from tests.apps.every_construct.desk import inquiry
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import between

pytestmark = pytest.mark.django_db

OVERDUE = 'class="deadline is-overdue"'
AHEAD = 'class="deadline"'


@pytest.fixture
def waiting() -> StepRun:
    """An order's visit of the step in which it waits for the exchange, for ten minutes at most."""
    return placed(Destination.EXTERNAL).step_runs.get(finished_at=None)


def now_part(client: Client, run: StepRun) -> str:
    page = client.read(f"/processes/{run.instance_id}/")
    return between(page, 'id="now"', "</section>")


def due_in(run: StepRun, **time: float) -> None:
    """The moment of a visit's deadline; when it is over, nobody has carried it out."""
    at = timezone.now() + timedelta(**time)
    StepRun.objects.filter(pk=run.pk).update(wake_at=at)


def test_a_deadline_not_met_is_overdue(viewing: Client, waiting: StepRun) -> None:
    assert AHEAD in now_part(viewing, waiting)

    due_in(waiting, seconds=-20)

    text = now_part(viewing, waiting)
    assert OVERDUE in text
    assert "Overdue since" in text


def test_the_next_attempt_of_a_deadline_is_not_taken_for_the_deadline(
    viewing: Client, waiting: StepRun
) -> None:
    due_in(waiting, minutes=1)
    rows = StepRun.objects.filter(pk=waiting.pk)
    rows.update(attempt=1, error="ValueError: no")

    text = now_part(viewing, waiting)

    assert "Deadline passed" in text
    assert "Deadline in" not in text
    rows.update(attempt=0, error="")


@pytest.mark.usefixtures("helpdesk")
def test_a_question_is_overdue_on_its_page_and_in_decisions(viewing: Client) -> None:
    asked = inquiry().step_runs.get(kind="ask", finished_at=None)
    due_in(asked, hours=1)
    assert AHEAD in now_part(viewing, asked)

    due_in(asked, seconds=-20)

    assert OVERDUE in now_part(viewing, asked)
    assert OVERDUE in viewing.read("/decisions/")
