"""Names in any script are shown as they are: on pages, in pictures, and in the lines of commands."""

from urllib.parse import quote

import pytest

from examples.order_listing.messages import Destination
from monitoring.command_line.terminal import printable_line
from monitoring.diagrams import Drawing
from orchestrator.definition.graph import Edge, Graph, Node
from tests.services.client import Client
from tests.services.placing import placed

pytestmark = pytest.mark.django_db

NAMES = {
    "Japanese": "東京\u3000支店",
    "no-break space": "Nr.\u00a07",
    "Persian": "می\u200cروم",
    "joined emoji": "👩\u200d💻",
    "an emoji of Unicode 17": "\U0001fac8",
}


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_key_is_shown_and_found_on_pages(name: str, operating: Client) -> None:
    process = placed(Destination.EXTERNAL, key=name)
    placed(Destination.EXTERNAL, key="another")

    assert name in operating.read(f"/processes/{process.pk}/")
    found = operating.read(f"/processes/?q={quote(name)}")
    assert (name in found, "another" in found) == (True, False)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_step_is_drawn_with_its_name(name: str) -> None:
    nodes = (Node(name, name, "start"), Node("Last", "Last", "final"))
    edges = (Edge("e0", name, "Last", "event", "x", "x", ("x", "x")),)

    picture = Drawing(Graph("drawn", 1, "process_manager", nodes, edges)).svg()

    assert "\N{REPLACEMENT CHARACTER}" not in picture
    assert set(name) - {"\u00a0", "\u3000"} <= set(picture)


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_a_command_writes_a_name_as_it_is(name: str) -> None:
    assert printable_line(name) == name


@pytest.mark.parametrize(
    ("steering", "written"),
    [
        ("a\nb", "a b"),
        ("a\x1b[2Jb", "a�[2Jb"),
        ("a\u202eb", "a�b"),
        ("a\u2028b", "a b"),
    ],
    ids=ascii,
)
def test_a_command_writes_nothing_that_steers_the_terminal(
    steering: str, written: str
) -> None:
    assert printable_line(steering) == written
