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
from tests.services.reading import between

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("broad")]
HOME = f"/definitions/{Broad.name}/"

NAMES = [one.name for one in MANY]


@pytest.fixture(scope="module")
def broad() -> Iterator[None]:
    yield from known(Broad)


@pytest.fixture(autouse=True)
def process(broad: None) -> ProcessInstance:
    return finished(Broad, 1)


def box(text: str) -> str:
    """Return the address that the box leads to."""
    (found,) = re.findall(r'<a href="([^"]*group=[^"]*)"', text)
    return unescape(found)


def steps_in(text: str, table: str) -> set[str]:
    part = between(text, f'id="{table}"', "</section>")
    return set(re.findall(r"<code>(\w+)</code>", part))


def test_the_box_of_a_definition_leads_to_rows_of_its_steps(viewing: Client) -> None:
    def steps(query: str) -> set[str]:
        return steps_in(viewing.read(HOME + query), "all-steps")

    place = box(viewing.read(HOME))

    assert place.endswith("#all-steps")
    assert steps(place) == set(NAMES)
    assert steps("") == {"begin", *NAMES, "close"}
    # Searching stays within the box, and one that is unknown narrows nothing.
    assert steps(f"{place.partition('#')[0]}&search=e") == set()
    assert "begin" in steps("?group=siblings:nothing")


def test_the_box_of_an_older_version_stays_with_it(viewing: Client) -> None:
    text = viewing.read(f"{HOME}?version=1")

    assert box(text).startswith("?version=1&group=")
    assert '<a href="?version=1&amp;step=begin&amp;doing=here"' in text


def test_the_box_of_a_process_leads_to_the_runs_of_its_steps(
    process: ProcessInstance, viewing: Client
) -> None:
    home = f"/processes/{process.pk}/"

    place = box(viewing.read(home))
    shown = viewing.read(home + place)

    assert place.endswith("#runs")
    assert set() < steps_in(shown, "runs") <= set(NAMES)
    [older] = re.findall(r'href="(\?[^"]*runs=\d+)#runs"', shown)
    assert steps_in(viewing.read(home + unescape(older)), "runs") <= set(NAMES)
