"""Words of a diagram are not broken, and several lines that lead back to their step lie beside each other."""

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from monitoring.diagrams import Drawing
from monitoring.diagrams.sketch import WIDTH, wrap_label
from orchestrator.definition.graph import Edge, Graph, Node
from tests.services.cases import cases


@cases(
    "text, kind, lines",
    ("", "node", [""]),
    ("Awaiting external creation", "node", ["Awaiting external", "creation"]),
    ("Telecommunications", "node", ["Telecommunications"]),
    ("A very long Incomprehensibilities", "node", None),
    (
        "CustomerAskedForTheirParcelAtTheDepotOfTheirTown",
        "edge",
        ["CustomerAskedForTheirParcelAtThe", "  DepotOfTheirTown"],
    ),
    (
        "   CustomerAskedForTheirParcelAtTheDepotOfTheirTown",
        "edge",
        ["   CustomerAskedForTheirParcelAtThe", "     DepotOfTheirTown"],
    ),
    ("エスカレーション待ち", "node", ["エスカレーション", "待ち"]),
    (
        "外部取引所での作成を待っています。",
        "node",
        ["外部取引所での", "作成を", "待っています。"],
    ),
    ("[destination = both, external]", "edge", ["[destination = both, external]"]),
)
def test_lines_end_with_words(text: str, kind: str, lines: list[str] | None) -> None:
    found = wrap_label(text, kind)

    assert lines is None or found == lines
    assert "".join("".join(found).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["x" * 100, "\u6f22" * 100, "aB" * 60, "a " * 60])
@pytest.mark.parametrize("kind", WIDTH)
def test_no_line_is_too_wide(text: str, kind: str) -> None:
    for line in wrap_label(text, kind):
        wide = sum(2 if char > "\u2e80" else 1 for char in line)
        assert wide <= WIDTH[kind]


BACK = ("Scanned", "AskedFor", "Corrected", "after 2 days")
BUSY = Graph(
    "busy-parcel",
    1,
    "process manager",
    (Node("New", "New", "start"), Node("UnderWay", "Under way", "step")),
    (
        Edge("e0", "New", "UnderWay", "event", "Ordered"),
        *(Edge(said, "UnderWay", "UnderWay", "event", said) for said in BACK),
    ),
)
"""Stays where it is for four reasons."""


def test_lines_that_lead_back_to_their_step_have_places_of_their_own() -> None:
    picture = ET.fromstring(Drawing(BUSY).svg())  # noqa: S314  it is ours
    groups = {group.get("data-edge"): group for group in picture.iter("g")}

    rooms = []
    for said in BACK:
        group = groups[said]
        heights = [float(text.get("y", "0")) for text in group.findall("text")]
        rooms.append((min(heights) - 8, max(heights) + 2))
        assert group.find("path") is not None
        assert group.find("polygon") is not None
        assert said in "".join(group.itertext())
    for (_, bottom), (top, _) in pairwise(sorted(rooms)):
        assert bottom < top
