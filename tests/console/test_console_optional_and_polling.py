"""What the page of a process shows of optional steps and of steps that poll."""

import re
from collections.abc import Iterator
from datetime import timedelta
from html import unescape

import pytest
from django.utils import translation

from monitoring.base.translation import translate
from orchestrator import Poll
from orchestrator.definition import Workflow, step, then
from orchestrator.models import Incident
from orchestrator.testing import Process, pass_time, registered, started
from tests.services.client import Client, Read

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]


def look_outside() -> int:
    raise ValueError("a storm")


def await_delivery(look_outside: int | None) -> int:
    raise Poll(timedelta(hours=1), timedelta(days=1), "still on the ship")


def await_silently() -> int:
    raise Poll(timedelta(hours=1), timedelta(hours=1, minutes=30))


class Silent(Workflow):
    """A step that polls, and does not say why."""

    flow = (step(await_silently),)


class Voyage(Workflow):
    """An optional step that fails, and one that polls."""

    flow = (then(step(look_outside, retries=0, optional=True), await_delivery),)


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    with registered(Voyage, Silent):
        yield


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def shown(page_of: Read, process: Process, step: str = "") -> str:
    return words(page_of(process.instance, f"?step={step}"))


def test_the_failure_of_an_optional_step_stays_to_be_seen(page_of: Read) -> None:
    process = started(Voyage)
    page = shown(page_of, process, "look_outside")

    assert "optional" in page
    assert "ValueError: a storm" in page
    assert process.incidents == []


def test_a_step_that_polls_says_why_and_when_it_is_called_again(page_of: Read) -> None:
    page = shown(page_of, started(Voyage))

    assert "Goes on in" in page
    assert "still on the ship" in page


NOT_DONE, TOLD = "The step is not done yet.", "ステップはまだ完了していません。"


def test_a_step_that_polls_without_a_message_is_told_in_the_readers_language(
    operating: Client,
) -> None:
    address = f"/processes/{started(Silent).id}/"
    assert NOT_DONE in operating.read(address)

    page = operating.read(address, headers={"Accept-Language": "ja"})
    assert TOLD in page
    assert NOT_DONE not in page


def test_its_failure_when_its_time_is_over_is_told_in_the_readers_language() -> None:
    process = started(Silent)
    pass_time(hours=2)
    assert process.incidents == [
        "TimedOut: not done after 5400 seconds: The step is not done yet."
    ]

    with translation.override("ja"):
        told = translate(Incident.objects.get().said)
    assert TOLD in told
    assert NOT_DONE not in told
