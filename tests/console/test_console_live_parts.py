"""What an open page is sent fits the page, for every page of the console."""

import re
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from orchestrator.models import Incident, ProcessInstance
from tests.services.cases import cases, words
from tests.services.client import Client
from tests.services.placing import placed
from tests.services.reading import BY_SCRIPT

pytestmark = pytest.mark.django_db

PART = re.compile(
    r'<hx-partial hx-target="#([\w-]+)" hx-swap="(\w+)">(.*?)</hx-partial>', re.DOTALL
)
PAGES = tuple(
    words(
        """/ /definitions/order-listing/ /definitions/order-listing/versions/ /processes/
        /processes/{order}/ /processes/{order}/messages/ /processes/{order}/repair/
        /processes/{order}/secrets/ /views/ /tokens/ /waits/ /stalled/ /decisions/
        /events/ /events/send/ /failures/ /failures/{cause}/"""
    )
)


@pytest.fixture
def order() -> str:
    return str(placed().pk)


def escalation(order: str) -> dict[str, Any]:
    """What an operator's form says."""
    revision = ProcessInstance.objects.get(pk=order).revision
    return {"key": uuid4(), "reason": "late", "revision": revision}


@cases("address", *PAGES)
def test_every_part_that_is_sent_has_its_place_in_the_page(
    address: str, order: str, operating: Client
) -> None:
    cause = Incident.objects.latest("pk").fingerprint
    place = address.format(order=order, cause=cause)

    whole = operating.read(place)
    sent = operating.read(f"{place}?since=0", headers=BY_SCRIPT)

    parts = PART.findall(sent)
    assert PART.sub("", sent) == ""
    assert len(parts) > 1
    for target, swap, html in parts:
        assert whole.count(f'id="{target}"') == 1
        assert html.count(f'id="{target}"') == swap.startswith("outer")


def test_every_page_has_live_parts_and_no_second_file_for_them() -> None:
    pages = Path(settings.BASE_DIR, "templates/monitoring")

    assert sorted(path.parent.name for path in pages.glob("*/page.html")) == words(
        """api audit begin_operation compared decisions definition events failure_group failures
        find home instance instances messages operation operations repair revealed
        saved_views send_event stalled tokens versions waits"""
    )
    assert [
        str(path)
        for path in pages.rglob("*.html")
        if "<hx-partial" in path.read_text() and path.name != "answer.html"
    ] == []


def test_a_message_for_the_next_page_is_not_taken_by_an_open_one(
    order: str, operating: Client
) -> None:
    operating.post(f"/processes/{order}/escalate/", escalation(order))

    sent = operating.get(f"/processes/{order}/?since=0", headers=BY_SCRIPT)
    shown = operating.read(f"/processes/{order}/")

    assert b"Escalated." not in sent.content
    assert "Escalated." in shown


def test_the_answer_to_a_button_renews_the_page(order: str, operating: Client) -> None:
    form = escalation(order)

    answer = operating.post(f"/processes/{order}/escalate/", form, headers=BY_SCRIPT)

    said, part = answer.content.decode().split('<hx-partial hx-target="#nav"')
    assert "Escalated." in said
    assert f'data-revision="{form["revision"] + 1}"' in part
