"""S3.2: what a process manager accepts now, what each leads to, and what happens by itself, with its due time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User

from examples.order_listing.messages import Destination
from monitoring.process.page import instance_page
from orchestrator import registry, start_process
from orchestrator.engine.operations import pause
from orchestrator.models import ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.apps.ladder.processes import Question, QuestionAsked
from tests.services.asking import asked
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import between, plain

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("questions")]

HOUR = timedelta(hours=1)


@pytest.fixture(scope="module")
def questions() -> Iterator[None]:
    with registered(Question):
        yield


def question() -> ProcessInstance:
    receipt = start_process(Question, QuestionAsked("which one?", False))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def now_part(client: Client, process: ProcessInstance) -> str:
    page = client.read(f"/processes/{process.pk}/")
    return between(page, 'id="now"', "</section>")


def said(html: str) -> str:
    """The words of a part, whose tags stand between them."""
    return unescape(plain(html.replace("<", " <"))).casefold()


def test_s3_2_each_accepted_event_says_what_it_leads_to_and_leads_to_its_form(
    operating: Client,
) -> None:
    order = placed(Destination.EXTERNAL)

    text = now_part(operating, order)

    assert "awaitingexternallisting" in said(text).replace(" ", "")
    assert "/ listonexternal" in said(text)
    link = unescape(re.findall(r'href="(/events/send/[^"]+)"', text)[0])
    assert link == f"/events/send/?type=ExternalOrderCreated&process={order.pk}"
    form = operating.read(link)
    assert f'value="{order.pk}"' in form
    assert "field-external_id" in form


def test_s3_2_who_may_not_send_sees_the_button_with_the_reason(viewing: Client) -> None:
    text = now_part(viewing, placed(Destination.EXTERNAL))
    assert "/events/send/" not in text
    assert 'aria-disabled="true"' in text
    assert "Your account may not do this." in text


def test_s3_2_all_deadlines_of_the_step_stand_there_with_their_times(
    operating: Client, operator: User
) -> None:
    asked = question()

    page = instance_page(asked.pk, operator)

    assert page.entered is not None
    times = [page.entered + number * HOUR for number in (1, 2, 3, 4)]
    assert [timeout.at for timeout in page.timeouts] == times
    text = said(now_part(operating, asked))
    for part in (
        "after 1 hour",
        "notify clerk",
        "notify clerk, duty",
        "then escalated",
        "[urgent = yes]",
        "notify boss",
        "answered",
    ):
        assert part in text, part


def test_s3_2_one_that_has_passed_is_overdue_and_the_others_are_left(
    operating: Client, operator: User
) -> None:
    asked = question()
    pass_time(HOUR)

    page = instance_page(asked.pk, operator)

    assert len(page.timeouts) == 3
    assert page.passed_at is not None
    text = now_part(operating, asked).partition("What happens by itself")[2]
    assert "overdue since" in said(text)
    assert "c-retry" in text


def test_s3_2_while_it_rests_no_time_is_said_and_at_its_end_nothing(
    operating: Client, operator: User
) -> None:
    resting, ended = question(), placed(Destination.INTERNAL)
    pause(resting.pk, request=asked())

    assert {one.at for one in instance_page(resting.pk, operator).timeouts} == {None}
    page = instance_page(ended.pk, operator)
    assert (page.timeouts, page.passed_at, page.accepted) == ((), None, [])
    assert "Send event" not in now_part(operating, ended)


def test_s3_2_code_that_is_gone_leaves_the_deadlines_without_times(
    operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = question()
    with monkeypatch.context() as patch:
        patch.setattr(Question, "version", 9)
        patch.setitem(registry.definitions, ("question", 9), Question)
        patch.delitem(registry.definitions, ("question", 1))
        shown = instance_page(asked.pk, operator).timeouts

    assert [timeout.at for timeout in shown] == [None] * 4
