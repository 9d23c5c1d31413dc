"""S3.3: the panel of a step has its attempts, input and output, worker, job, and how long is usual; one at a time."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.queries.graphs import labels_of
from monitoring.queries.instance.step_panel import StepPanel, step_panel
from orchestrator import start_process
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import ActionRequest, retry
from orchestrator.models import ProcessInstance, StepRun
from orchestrator.testing import pass_time
from tests.apps.every_construct.desk import inquiry
from tests.apps.every_construct.processes import Inquiry
from tests.services.client import Client, Read

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk")]


def panel(instance: ProcessInstance, step: str) -> StepPanel:
    found = step_panel(instance, labels_of(instance.definition), step)
    assert found is not None
    return found


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def failed(operator: User) -> ProcessInstance:
    """One whose last step failed for good, was retried by a person, and failed again."""
    instance = inquiry(trouble="reply")
    verdict = StepRun.objects.get(instance=instance, node="verdict", finished_at=None)
    from orchestrator.engine.operations import decide

    request = ActionRequest(operator, uuid4(), "fine", None)
    decide(instance.pk, verdict.pk, "accept", request=request)
    drain()
    for _ in range(5):
        pass_time(timedelta(minutes=6))
    instance.refresh_from_db()
    assert instance.status == "failed"
    request = ActionRequest(operator, uuid4(), "again", instance.revision)
    retry(instance.pk, request=request)
    drain()
    for _ in range(5):
        pass_time(timedelta(minutes=6))
    instance.refresh_from_db()
    assert instance.status == "failed"
    return instance


def test_s3_3_it_has_the_attempts_with_what_went_wrong_in_each(
    operator: User, page_of: Read
) -> None:
    instance = failed(operator)

    [visit] = panel(instance, "reply").visits

    ways = [one.way for one in visit.attempts]
    assert ways.count("stopped") == 2
    assert ways.count("on") == 1
    said = [one.message for one in visit.attempts if one.way == "stopped"]
    assert all("the mail server does not answer" in one for one in said)
    text = page_of(instance, "?step=reply")
    shown = words(text.partition('id="step"')[2].partition("</section>")[0])
    assert "attempt" in shown
    assert "failed for good" in shown
    assert "went on" in shown
    assert f"steprun:{visit.run.pk}" in shown


def test_s3_3_it_has_what_the_step_gets_and_what_came_of_it(page_of: Read) -> None:
    instance = inquiry(pages=2)

    found = panel(instance, "merge")

    given = {one.parameter: (one.step, one.text) for one in found.inputs}
    assert given["collect"] == ("collect", '"PAGE 1, PAGE 2"')
    assert given["read_text"] == ("read_text", '"a text"')
    text = page_of(instance, "?step=merge")
    shown = text.partition('id="step"')[2].partition("</section>")[0]
    assert "a text: PAGE 1, PAGE 2" in shown
    assert 'href="?step=collect"' in shown
    assert "the input&#x27;s field" not in shown
    of_input = words(page_of(instance, "?step=read_text").partition('id="step"')[2])
    assert "the input's field trouble" in of_input
    assert "its circumstances" in of_input


def test_s3_3_its_worker_is_named_while_it_holds_it(page_of: Read) -> None:
    instance = inquiry()
    run = StepRun.objects.get(instance=instance, node="verdict", finished_at=None)
    StepRun.objects.filter(pk=run.pk).update(owner="worker-7")
    try:
        assert "worker-7" in page_of(instance, "?step=verdict")
    finally:
        StepRun.objects.filter(pk=run.pk).update(owner="")
    assert "none has it in hand" in page_of(instance, "?step=verdict")


def test_s3_3_the_time_is_compared_with_the_usual_of_the_map(page_of: Read) -> None:
    for number in range(4):
        start_process(Inquiry, Inquiry.Input(f"T-{number + 2}"))
    drain()
    slow = inquiry()
    run = StepRun.objects.get(instance=slow, node="classify")
    begun = run.started_at
    StepRun.objects.filter(pk=run.pk).update(started_at=begun - timedelta(hours=5))
    try:
        [visit] = panel(slow, "classify").visits
        usual = panel(slow, "classify").usual
        assert usual is not None
        assert usual.number == "5"
        assert usual.median < timedelta(minutes=1)
        text = words(page_of(slow, "?step=classify").partition('id="step"')[2])
    finally:
        StepRun.objects.filter(pk=run.pk).update(started_at=begun)
    # Among five it is one of the slowest twentieth itself.
    assert visit.row.duration > timedelta(hours=4)
    assert "half take at most" in text
    assert "last week" in text


def test_s3_3_longer_than_95_of_100_is_said(page_of: Read) -> None:
    first = inquiry()
    run = StepRun.objects.get(instance=first, node="verdict", finished_at=None)
    other = StepRun.objects.get(instance=first, node="classify")
    begun = run.started_at
    # What is open is no part of what is usual.
    StepRun.objects.filter(pk=run.pk).update(started_at=begun - timedelta(hours=5))
    StepRun.objects.filter(pk=other.pk).update(node="verdict", visit=9)
    try:
        visits = panel(first, "verdict").visits
        slow = next(one for one in visits if one.row.open)
        assert slow.slow > 1
        assert "longer than usual" in page_of(first, "?step=verdict")
    finally:
        StepRun.objects.filter(pk=run.pk).update(started_at=begun)
        StepRun.objects.filter(pk=other.pk).update(node="classify", visit=1)


def test_s3_3_no_panel_opens_itself_and_never_more_than_one(
    operator: User, page_of: Read
) -> None:
    instance = failed(operator)
    assert 'id="step"' not in page_of(instance)
    for query in ("?step=reply", "?step=reply&step=merge", "?step=reply&at="):
        assert page_of(instance, query).count('class="card of-step"') == 1
    for query in ("?step=nothing", "?step=%00", "?step=reply&at=1"):
        assert 'class="card of-step"' not in page_of(instance, query)


def test_s3_3_a_step_of_a_process_manager_has_one_too(page_of: Read) -> None:
    order = place_order(Destination.EXTERNAL, "50 MWh")
    drain()
    instance = ProcessInstance.objects.get(pk=order.process_id)

    text = page_of(instance, "?step=AwaitingExternalCreation")

    shown = words(text.partition('id="step"')[2].partition("</section>")[0])
    assert "visit 1" in shown
    assert "Failed" in shown  # no exchange is there
    assert "Job steprun:" in shown
    assert 'href="?step=AwaitingExternalCreation"' in text.partition("<svg")[2]
    assert "It was never in this step." in page_of(instance, "?step=Completed")


def test_s3_3_it_costs_so_many_statements_and_no_more(
    operating: Client, django_assert_max_num_queries: Any
) -> None:
    instance = inquiry(pages=50)
    operating.get(f"/processes/{instance.pk}/?step=merge")
    with django_assert_max_num_queries(60):
        operating.get(f"/processes/{instance.pk}/?step=merge")
