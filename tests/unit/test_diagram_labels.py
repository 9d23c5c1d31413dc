"""What a join waits for can be read: its label lies on no line."""

import re
from collections.abc import Iterator
from itertools import pairwise
from xml.etree import ElementTree as ET

from monitoring.diagrams import Drawing
from monitoring.diagrams.sketch import best_sketch
from orchestrator.definition import Workflow
from orchestrator.definition.graph import Edge, Graph, Node
from tests.apps.patterns import patterns as p
from tests.apps.patterns import starving
from tests.services.cases import cases

Point = tuple[float, float]
NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")
STEPS = 40
"""Points between the ends of a curve that are looked at."""


def points(path: str) -> list[Point]:
    numbers = [float(number) for number in NUMBERS.findall(path)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def along(path: str) -> Iterator[Point]:
    """Return points on a path of Bézier curves, as Graphviz draws its lines."""
    corners = points(path)
    for start in range(0, len(corners) - 1, 3):
        a, b, c, d = corners[start : start + 4]
        for step in range(STEPS + 1):
            t, u = step / STEPS, 1 - step / STEPS
            weights = (u**3, 3 * u * u * t, 3 * u * t * t, t**3)
            x, y = (
                sum(w * q[axis] for w, q in zip(weights, (a, b, c, d), strict=True))
                for axis in (0, 1)
            )
            yield x, y


def room(text: ET.Element) -> tuple[float, float, float, float]:
    """Return what a label covers: left, top, right, bottom."""
    wide = 5.3 * len(text.text or "")
    x, y = float(text.get("x", "0")), float(text.get("y", "0"))
    anchor = text.get("text-anchor", "start")
    left = x if anchor == "start" else x - wide / (2 if anchor == "middle" else 1)
    return left, y - 8.5, left + wide, y + 1.5


def crossed(picture: ET.Element, text: ET.Element) -> list[str]:
    left, top, right, bottom = room(text)
    found = []
    for group in picture.iter("g"):
        if "move" in group.get("class", "").split():
            path = next(one for one in group.iter("path"))
            on_it = any(
                left < (x + x2) / 2 < right and top < (y + y2) / 2 < bottom
                for (x, y), (x2, y2) in pairwise(along(path.get("d", "")))
            )
            found += [group.get("data-edge", "")] if on_it else []
    return found


@cases(
    "definition, label",
    (p.AnyOf, "any"),
    (p.TwoOfThree, "2 of 3"),
    (p.TwoThatFail, "2 of 3"),
    (p.RestCancelled, "any"),
    (starving.Unanimous, "every"),
    (p.FailFast, "fail fast"),
)
def test_a_joins_label_lies_on_no_line(definition: type[Workflow], label: str) -> None:
    picture = ET.fromstring(Drawing(definition.graph()).svg())  # noqa: S314  it is ours

    (text,) = [one for one in picture.iter("text") if one.text == label]

    assert crossed(picture, text) == []


@cases("number", 12, 200)
def test_of_very_many_commands_a_label_names_the_first(number: int) -> None:
    nodes = (Node("a", "A", "start"), Node("b", "B", "final"))
    commands = tuple(f"Print{n}" for n in range(number))
    edge = Edge("e", "a", "b", "event", "Closed", commands=commands)
    [line] = best_sketch(Graph("printing", 1, "process manager", nodes, (edge,))).lines

    assert len(line.label) == 1 + 12
    assert line.label[-1].strip() == ("Print11" if number == 12 else "189 more")
