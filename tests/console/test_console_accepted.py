"""S3.2: what a process manager accepts now, what each leads to, and what happens by itself, with its due time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from examples.order_listing.messages import Destination
from examples.order_listing.orders import place_order
from monitoring.queries.instance.page import instance_page
from orchestrator import start_process
from orchestrator.engine.operations import ActionRequest, pause
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.apps.ladder.processes import Question, QuestionAsked
from tests.services.client import Client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("questions")]

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def questions() -> Iterator[None]:
    with registered(Question):
        yield


def question(*, urgent: bool = False) -> ProcessInstance:
    receipt = start_process(Question, QuestionAsked("which one?", urgent))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def now_part(client: Client, reader: User, process: object) -> str:
    client.force_login(reader)
    page = client.read(f"/processes/{process}/")
    return page.partition('id="now"')[2].partition("</section>")[0]


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>|\s+", " ", html)).split())


def test_s3_2_each_accepted_event_says_what_it_leads_to_and_leads_to_its_form(
    client: Client, operator: User
) -> None:
    order = place_order(Destination.EXTERNAL, "50 MWh")
    run()

    text = now_part(client, operator, order.process_id)

    said = words(text)
    assert "awaitingexternallisting" in said.replace(" ", "").casefold()
    assert "/ ListOnExternal" in said
    links = re.findall(r'href="(/events/send/[^"]+)"', text)
    assert unescape(links[0]) == (
        f"/events/send/?type=ExternalOrderCreated&process={order.process_id}"
    )
    form = client.read(unescape(links[0]))
    assert f'value="{order.process_id}"' in form
    assert "field-external_id" in form


def test_s3_2_who_may_not_send_sees_the_button_with_the_reason(
    client: Client, viewer: User
) -> None:
    order = place_order(Destination.EXTERNAL, "50 MWh")
    run()
    text = now_part(client, viewer, order.process_id)
    assert "/events/send/" not in text
    assert 'aria-disabled="true"' in text
    assert "Your account may not do this." in text


def test_s3_2_all_deadlines_of_the_step_stand_there_with_their_times(
    client: Client, operator: User
) -> None:
    asked = question()

    page = instance_page(asked.pk, operator)

    assert page.entered is not None
    assert [timeout.at for timeout in page.timeouts] == [
        page.entered + number * HOUR for number in (1, 2, 3, 4)
    ]
    said = words(now_part(client, operator, asked.pk))
    for part in (
        "after 1 hour",
        "notify clerk",
        "notify clerk, duty",
        "then escalated",
        "[urgent = yes]",
        "notify boss",
        "Answered",
    ):
        assert part.casefold() in said.casefold(), part


def test_s3_2_one_that_has_passed_is_overdue_and_the_others_are_left(
    client: Client, operator: User
) -> None:
    asked = question()
    pass_time(HOUR)

    page = instance_page(asked.pk, operator)

    assert len(page.timeouts) == 3
    assert page.passed_at is not None
    text = now_part(client, operator, asked.pk)
    assert "Overdue since" in words(text).partition("What happens by itself")[2]
    assert "c-retry" in text.partition("What happens by itself")[2]


def test_s3_2_while_it_rests_no_time_is_said_and_at_its_end_nothing(
    client: Client, operator: User
) -> None:
    asked = question()
    request = ActionRequest(operator, uuid4(), "holiday", asked.revision)
    pause(asked.pk, request=request)
    assert {one.at for one in instance_page(asked.pk, operator).timeouts} == {None}

    other = place_order(Destination.INTERNAL, "50 MWh")
    run()
    ended = instance_page(other.process_id, operator)
    assert (ended.timeouts, ended.passed_at, ended.accepted) == ((), None, [])
    text = now_part(client, operator, other.process_id)
    assert "Send event" not in text


def test_s3_2_code_that_is_gone_leaves_the_deadlines_without_times(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = question()
    monkeypatch.setattr(Question, "version", 9)
    from orchestrator import registry

    monkeypatch.setitem(registry.definitions, ("question", 9), Question)
    monkeypatch.delitem(registry.definitions, ("question", 1))
    try:
        shown = instance_page(asked.pk, operator).timeouts
        assert [timeout.at for timeout in shown] == [None] * 4
    finally:
        monkeypatch.undo()


def test_s3_2_it_costs_the_same_with_a_long_history(
    operating: Client, django_assert_max_num_queries: object
) -> None:
    order = place_order(Destination.EXTERNAL, "50 MWh")
    run()
    operating.get(f"/processes/{order.process_id}/")
    with django_assert_max_num_queries(40):  # type: ignore[operator]
        operating.get(f"/processes/{order.process_id}/")
