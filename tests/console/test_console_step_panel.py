"""S3.3: the panel of a step has its attempts, input and output, worker, job, and how long is usual; one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from html import unescape
from typing import Any

import pytest

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.process.revision.moment import process_moment
from monitoring.process.steps.elements import VisitFilters
from monitoring.process.steps.step_panel import StepPanel, step_panel
from monitoring.process.steps.step_states import step_states_of
from monitoring.process.steps.visits import run_page
from orchestrator import Permanent
from orchestrator.definition import Workflow, each
from orchestrator.models import ProcessInstance, StepKind, StepRun
from orchestrator.testing import Process, pass_time, run, started
from tests.apps.every_construct.desk import inquiry
from tests.services.cases import cases
from tests.services.client import Client, Read
from tests.services.crews import knowing

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("helpdesk")]


def panel(instance: ProcessInstance, step: str) -> StepPanel:
    moment = process_moment(instance)
    found = step_panel(moment, step_states_of(moment), step)
    assert found is not None
    return found


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def card(page: str) -> str:
    """The part of a page that is about one step."""
    return page.partition('id="step"')[2].partition("</section>")[0]


def failed() -> ProcessInstance:
    """One whose last step failed for good, was retried by a person, and failed again."""
    process = Process(inquiry(trouble="reply").pk)
    process.answer("verdict", "accept")
    pass_time(minutes=30)
    assert process.status == "failed"
    process.retry()
    pass_time(minutes=30)
    assert process.status == "failed"
    return process.instance


@contextmanager
def changed(run: StepRun, **values: Any) -> Iterator[None]:
    """Let a visit be otherwise, until the end of the block."""
    rows = StepRun.objects.filter(pk=run.pk)
    before = {name: getattr(run, name) for name in values}
    rows.update(**values)
    yield
    rows.update(**before)


def hours_ago(run: StepRun) -> dict[str, Any]:
    return {"started_at": run.started_at - timedelta(hours=5)}


def test_s3_3_it_has_the_attempts_with_what_went_wrong_in_each(page_of: Read) -> None:
    instance = failed()

    [visit] = panel(instance, "reply").visits

    stopped = [one for one in visit.attempts if one.way == "stopped"]
    assert (len(stopped), [one.way for one in visit.attempts].count("on")) == (2, 1)
    assert all("the mail server does not answer" in one.message for one in stopped)
    shown = words(card(page_of(instance, "?step=reply")))
    for said in ("attempt", "failed for good", "went on", f"steprun:{visit.run.pk}"):
        assert said in shown
    [handled] = panel(inquiry("T-2", trouble="text"), "read_text").visits
    assert (handled.row.status, handled.attempts) == ("handled", [])


def test_s3_3_it_has_what_the_step_gets_and_what_came_of_it(page_of: Read) -> None:
    instance = inquiry(pages=2)

    found = panel(instance, "merge")

    given = {one.parameter: (one.step, one.text) for one in found.inputs}
    assert given["collect"] == ("collect", '"PAGE 1, PAGE 2"')
    assert given["read_text"] == ("read_text", '"a text"')
    shown = card(page_of(instance, "?step=merge"))
    assert "a text: PAGE 1, PAGE 2" in shown
    assert 'href="?step=collect"' in shown
    assert "the input&#x27;s field" not in shown
    of_input = words(page_of(instance, "?step=read_text").partition('id="step"')[2])
    assert "the input's field trouble" in of_input
    assert "its circumstances" in of_input


def test_s3_3_its_worker_is_named_while_it_holds_it(page_of: Read) -> None:
    instance = inquiry()
    run = StepRun.objects.get(instance=instance, node="verdict", finished_at=None)
    with changed(run, owner="worker-7"):
        assert "worker-7" in page_of(instance, "?step=verdict")
    assert "Worker none" in words(page_of(instance, "?step=verdict"))


def test_s3_3_the_time_is_compared_with_the_usual_of_the_map(page_of: Read) -> None:
    for number in range(4):
        inquiry(f"T-{number + 2}")
    slow = inquiry()
    run = StepRun.objects.get(instance=slow, node="classify")

    with changed(run, **hours_ago(run)):
        found = panel(slow, "classify")
        text = words(page_of(slow, "?step=classify").partition('id="step"')[2])

    assert found.usual is not None
    assert found.usual.number == "5"
    assert found.usual.median < timedelta(minutes=1)
    # Among five it is one of the slowest twentieth itself.
    assert found.visits[0].row.duration > timedelta(hours=4)
    assert "half take at most" in text
    assert "last week" in text


def test_s3_3_longer_than_95_of_100_is_said(page_of: Read) -> None:
    first = inquiry()
    run = StepRun.objects.get(instance=first, node="verdict", finished_at=None)
    other = StepRun.objects.get(instance=first, node="classify")

    # What is open is no part of what is usual.
    with changed(run, **hours_ago(run)), changed(other, node="verdict", visit=9):
        [slow] = [one for one in panel(first, "verdict").visits if one.row.open]
        text = page_of(first, "?step=verdict")

    assert slow.slow > 1
    assert "longer than usual" in text


@cases(
    "query, panels",
    *(
        (query, 1)
        for query in ("?step=reply", "?step=reply&step=merge", "?step=reply&at=")
    ),
    *((query, 0) for query in ("", "?step=nothing", "?step=%00", "?step=reply&at=1")),
)
def test_s3_3_no_panel_opens_itself_and_never_more_than_one(
    query: str, panels: int, page_of: Read
) -> None:
    page = page_of(inquiry(), query)

    assert page.count('class="card of-step"') == page.count('id="step"') == panels


def devices() -> list[int]:
    return [1, 2, 3]


def update(device: int) -> int:
    raise Permanent(f"device {device} does not start")


def count(update: list[int]) -> int:
    return len(update)


class RollOut(Workflow):
    """A map that is held as soon as more devices have failed than it tolerates."""

    flow = (each(devices, over="", do=update, into=count, item="device", tolerate=1),)


rolled_out = knowing(RollOut)


@pytest.mark.usefixtures("rolled_out")
def test_s3_3_a_map_that_waits_for_people_has_failed_as_in_the_list(
    page_of: Read,
) -> None:
    instance = started(RollOut).instance
    assert instance.status == "failed"

    moment = process_moment(instance)
    [of_map] = [
        row
        for row in run_page(moment, step_states_of(moment), VisitFilters()).rows
        if row.run.kind == StepKind.MAP
    ]

    [visit] = panel(instance, "update").visits
    assert (of_map.status, visit.row.status) == ("failed", "failed")
    assert "Running" not in words(card(page_of(instance, "?step=update")))


@pytest.mark.usefixtures("rolled_out")
def test_s3_3_a_map_says_how_many_of_its_elements_are_done(page_of: Read) -> None:
    text = words(card(page_of(started(RollOut).instance, "?step=update")))
    # The second failure is the one that waits for people.
    assert "0 of 3 elements done · 1 failed · show its elements" in text
    assert "Worker" not in text
    assert "no visit of it ended in the last week" in text


def test_s3_3_a_step_of_a_process_manager_has_one_too(page_of: Read) -> None:
    order = place_order(Destination.EXTERNAL, "50 MWh")
    run()
    instance = ProcessInstance.objects.get(pk=order.process_id)

    text = page_of(instance, "?step=AwaitingExternalCreation")

    shown = words(card(text))
    for said in ("visit 1", "Failed", "Job steprun:"):  # no exchange is there
        assert said in shown
    assert 'href="?step=AwaitingExternalCreation"' in text.partition("<svg")[2]
    assert "It was never in this step." in page_of(instance, "?step=Completed")


def test_s3_3_it_costs_so_many_statements_and_no_more(
    operating: Client, django_assert_max_num_queries: Any
) -> None:
    instance = inquiry(pages=50)
    operating.get(f"/processes/{instance.pk}/?step=merge")
    with django_assert_max_num_queries(60):
        operating.get(f"/processes/{instance.pk}/?step=merge")
