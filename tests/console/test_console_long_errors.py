"""A long error is said once, cut after a whole word, and shown whole in place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from html import unescape

import pytest
from django.test import Client

from orchestrator import Permanent, start_process
from orchestrator.definition import Workflow, step
from orchestrator.models import Incident, ProcessInstance
from orchestrator.testing import pass_time, registered, run
from tests.services.cases import cases
from tests.services.client import Read

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

WORDS = " ".join(f"seal-{number}" for number in range(200))
SAID = f"the customs office <Oslo> refused {WORDS} of the parcel"


@dataclass(frozen=True)
class Declaration:
    good: bool


def declare(good: bool) -> None:
    """Fail for good, or for now."""
    raise ConnectionError(SAID) if good else Permanent(SAID)


class Parcels(Workflow):
    """Declares a parcel."""

    name = "parcels-with-long-errors"
    Input = Declaration
    flow = (step(declare),)


@pytest.fixture(scope="module")
def parcels() -> Iterator[None]:
    with registered(Parcels):
        yield


def parcel(good: bool = False) -> ProcessInstance:
    receipt = start_process(Parcels, Declaration(good))
    run()
    return ProcessInstance.objects.get(pk=receipt.process_id)


def texts(html: str) -> str:
    html = re.sub(r"<(script|svg|dialog|pre).*?</\1>", " ", html, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", html)).split())


def folded(html: str) -> list[tuple[str, str]]:
    """The long texts of a page: the beginning that is seen, and what opens."""
    found = re.findall(
        r'<details class="long">\s*<summary>(.*?)</summary>(.*?)</details>',
        html,
        flags=re.DOTALL,
    )
    return [(texts(seen), texts(whole)) for seen, whole in found]


@cases("good", False, True)
@cases("query", "", "?step=declare")
def test_a_long_error_is_said_once_and_shown_whole_in_place(
    good: bool, query: str, page_of: Read
) -> None:
    instance = parcel(good)
    [(seen, whole)] = folded(html := page_of(instance, query))
    assert whole.endswith(SAID)
    beginning, _, rest = seen.partition("…")
    assert whole.startswith(f"{beginning} ")  # after a whole word
    assert rest.split() == ["show", "all", "show", "less"]
    # With the beginning that is seen: nowhere else.
    assert texts(html).count("the customs office") == 2
    for _ in range(5):
        pass_time(timedelta(minutes=6))
    assert len(folded(page_of(instance))) == 1


def test_the_message_of_an_incident_ends_after_a_word() -> None:
    parcel()
    message = Incident.objects.get().message
    assert len(message) <= 500
    assert message.endswith("…")
    assert SAID.split("seal-0")[1].startswith(message.split("seal-0")[1][:-1] + " ")


def test_a_message_that_was_stored_cut_in_a_word_is_the_same_error(
    page_of: Read,
) -> None:
    instance = parcel()
    Incident.objects.update(message=f"Permanent: {SAID}"[:500])
    [(_, whole)] = folded(page_of(instance))
    assert whole.endswith(SAID)


def test_the_list_of_waits_shows_it_whole_in_place(operating: Client) -> None:
    parcel(good=True)
    [(seen, whole)] = folded(operating.get("/waits/").content.decode())
    assert "…" in seen
    assert whole.endswith(SAID)
