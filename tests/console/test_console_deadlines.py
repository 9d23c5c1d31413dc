"""What pages say of deadlines: how long until one, and since when it is overdue."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from orchestrator import start_process
from orchestrator.engine.drain import drain
from orchestrator.models import StepRun
from tests.apps.every_construct.processes import Inquiry
from tests.services.client import Client

pytestmark = pytest.mark.django_db

OVERDUE = 'class="deadline is-overdue"'
AHEAD = 'class="deadline"'


@pytest.fixture
def waiting() -> StepRun:
    """An order's visit of the step in which it waits for the exchange, for ten minutes at most."""
    order = place_order(Destination.EXTERNAL, "50 MWh")
    drain()
    return StepRun.objects.get(instance=order.process_id, finished_at=None)


def now_part(client: Client, viewer: User, run: StepRun) -> str:
    client.force_login(viewer)
    page = client.read(f"/processes/{run.instance_id}/")
    return page.partition('id="now"')[2].partition("</section>")[0]


def came(run: StepRun, **values: object) -> None:
    """The moment of a visit's deadline is over, and nobody has carried it out."""
    at = timezone.now() - timedelta(seconds=20)
    StepRun.objects.filter(pk=run.pk).update(wake_at=at, **values)


def test_a_deadline_that_nobody_carries_out_is_overdue(
    client: Client, viewer: User, waiting: StepRun
) -> None:
    assert AHEAD in now_part(client, viewer, waiting)

    came(waiting)

    text = now_part(client, viewer, waiting)
    assert OVERDUE in text
    assert "Overdue since" in text


def test_the_next_attempt_of_a_deadline_is_not_taken_for_the_deadline(
    client: Client, viewer: User, waiting: StepRun
) -> None:
    later = timezone.now() + timedelta(minutes=1)
    rows = StepRun.objects.filter(pk=waiting.pk)
    rows.update(wake_at=later, attempt=1, error="ValueError: no")

    text = now_part(client, viewer, waiting)

    assert "Deadline passed" in text
    assert "Deadline in" not in text
    rows.update(attempt=0, error="")


@pytest.mark.usefixtures("helpdesk")
def test_a_question_is_overdue_on_its_page_and_among_the_decisions(
    client: Client, viewer: User
) -> None:
    receipt = start_process(Inquiry, Inquiry.Input("T-1"))
    drain()
    asked = StepRun.objects.get(
        instance=receipt.process_id, kind="ask", finished_at=None
    )
    StepRun.objects.filter(pk=asked.pk).update(
        wake_at=timezone.now() + timedelta(hours=1)
    )
    assert AHEAD in now_part(client, viewer, asked)

    came(asked)

    assert OVERDUE in now_part(client, viewer, asked)
    assert OVERDUE in client.read("/decisions/")
