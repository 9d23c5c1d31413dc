"""Words of a diagram are not broken, and several lines that lead back to their step lie beside each other."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from monitoring.diagrams import Drawing
from monitoring.diagrams.sketch import WIDTH, wrapped
from orchestrator.definition import Event, ProcessManager, after, during, when


@pytest.mark.parametrize(
    ("text", "kind", "lines"),
    [
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
    ],
)
def test_lines_end_where_words_do(
    text: str, kind: str, lines: list[str] | None
) -> None:
    found = wrapped(text, kind)

    assert lines is None or found == lines
    assert "".join("".join(found).split()) == "".join(text.split())


@pytest.mark.parametrize("text", ["x" * 100, "\u6f22" * 100, "aB" * 60, "a " * 60])
@pytest.mark.parametrize("kind", WIDTH)
def test_no_line_is_too_wide(text: str, kind: str) -> None:
    for line in wrapped(text, kind):
        wide = sum(2 if char > "\u2e80" else 1 for char in line)
        assert wide <= WIDTH[kind]


class Ordered(Event):
    parcel: str


class Scanned(Event):
    parcel: str


class AskedFor(Event):
    parcel: str


class Corrected(Event):
    parcel: str


class Delivered(Event):
    parcel: str


class Busy(ProcessManager):
    """Stays where it is for four reasons."""

    name = "busy-parcel"

    class Step(StrEnum):
        NEW = "New"
        UNDER_WAY = "UnderWay"
        DONE = "Done"

    @dataclass(frozen=True)
    class Data:
        parcel: str

    correlation = "parcel"
    transitions = (
        during(Step.NEW, when(Ordered).go_to(Step.UNDER_WAY)),
        during(
            Step.UNDER_WAY,
            when(Scanned).go_to(Step.UNDER_WAY),
            when(AskedFor).go_to(Step.UNDER_WAY),
            when(Corrected).go_to(Step.UNDER_WAY),
            after(timedelta(days=2)).escalate().go_to(Step.UNDER_WAY),
            when(Delivered).go_to(Step.DONE),
        ),
    )


def test_lines_that_lead_back_to_their_step_have_places_of_their_own() -> None:
    graph = Busy.graph()
    back = [edge.id for edge in graph.edges if edge.source == edge.target]
    picture = ET.fromstring(Drawing(graph).svg())  # noqa: S314  it is ours
    groups = {group.get("data-edge"): group for group in picture.iter("g")}

    rooms = []
    for name in back:
        group = groups[name]
        heights = [float(text.get("y", "0")) for text in group.findall("text")]
        rooms.append((min(heights) - 8, max(heights) + 2))
        assert group.find("path") is not None
        assert group.find("polygon") is not None
    assert len(back) == 4
    for (_, bottom), (top, _) in pairwise(sorted(rooms)):
        assert bottom < top
    words = ["".join(groups[name].itertext()) for name in back]
    for word, said in zip(
        ("Scanned", "AskedFor", "Corrected", "escalate"), words, strict=True
    ):
        assert word in said
