"""Several steps that are drawn as one: from their box to the table of them."""

import re
from collections.abc import Iterator
from html import unescape

import pytest

from orchestrator.models import ProcessInstance
from tests.apps.patterns.desk import finished
from tests.apps.patterns.ways import MANY, Broad
from tests.apps.process_managers.fixtures import known
from tests.services.client import Client

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broad")]

NAMES = [one.name for one in MANY]


@pytest.fixture(scope="module")
def broad() -> Iterator[None]:
    yield from known(Broad)


@pytest.fixture
def process(viewing: Client) -> ProcessInstance:
    return finished(Broad, 1)


def page(client: Client, address: str) -> str:
    return client.read(address)


def box(text: str) -> str:
    """Return the address that the box leads to."""
    (found,) = re.findall(r'<a href="([^"]*group=[^"]*)"', text)
    return unescape(found)


def steps_in(text: str, table: str) -> set[str]:
    part = text.partition(f'id="{table}"')[2].partition("</section>")[0]
    return set(re.findall(r"<code>(\w+)</code>", part))


def test_the_box_of_a_definition_leads_to_the_rows_of_its_steps(
    process: ProcessInstance, viewing: Client
) -> None:
    home = f"/definitions/{Broad.name}/"

    place = box(page(viewing, home))
    shown = page(viewing, home + place)

    assert place.endswith("#all-steps")
    assert steps_in(shown, "all-steps") == set(NAMES)
    assert steps_in(page(viewing, home), "all-steps") == {"begin", *NAMES, "close"}


def test_searching_stays_within_the_box(
    process: ProcessInstance, viewing: Client
) -> None:
    home = f"/definitions/{Broad.name}/"
    query = box(page(viewing, home)).partition("#")[0]

    shown = page(viewing, f"{home}{query}&search=e")

    assert steps_in(shown, "all-steps") == set()


def test_the_box_of_an_older_version_stays_with_it(
    process: ProcessInstance, viewing: Client
) -> None:
    text = page(viewing, f"/definitions/{Broad.name}/?version=1")

    assert box(text).startswith("?version=1&group=")
    assert '<a href="?version=1&amp;step=begin&amp;doing=here"' in text


def test_the_box_of_a_process_leads_to_the_runs_of_its_steps(
    process: ProcessInstance, viewing: Client
) -> None:
    home = f"/processes/{process.pk}/"

    place = box(page(viewing, home))
    shown = page(viewing, home + place)

    assert place.endswith("#runs")
    runs = steps_in(shown, "runs")
    assert runs
    assert runs <= set(NAMES)
    older = re.search(r'href="(\?[^"]*runs=\d+)#runs"', shown)
    assert older is not None
    assert steps_in(page(viewing, home + unescape(older[1])), "runs") <= set(NAMES)


def test_a_box_that_is_unknown_narrows_nothing(
    process: ProcessInstance, viewing: Client
) -> None:
    shown = page(viewing, f"/definitions/{Broad.name}/?group=siblings:nothing")

    assert "begin" in steps_in(shown, "all-steps")
