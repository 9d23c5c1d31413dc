"""Pictures of workflows: every pattern has a mark of its own, and what is drawn is what was declared."""

import re
from collections.abc import Iterator
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from monitoring.diagrams import DiagramState, Drawing, NodeState
from orchestrator.definition.graph import Edge, Graph, Node
from tests.browser.samples import HARMFUL

TAGS = {
    "svg",
    "g",
    "path",
    "polyline",
    "polygon",
    "text",
    "title",
    "circle",
    "rect",
    "a",
}
ATTRIBUTES = {
    "viewBox", "class", "width", "height", "transform", "id", "data-node", "data-edge", "data-len", "data-across",
    "d", "points", "x", "y", "cx", "cy", "r", "rx", "text-anchor", "font-size", "role", "aria-label", "href",
}  # fmt: skip


def workflow(nodes: list[Node], edges: list[tuple[str, str, str, str]]) -> Graph:
    """A workflow of these nodes; an edge is source, target, kind and label."""
    made = tuple(
        Edge(f"e{index}", source, target, kind, label if kind in EVENTS else "", "" if kind in EVENTS else label)  # type: ignore[arg-type]
        for index, (source, target, kind, label) in enumerate(edges)
    )  # fmt: skip
    return Graph("drawn", 1, "workflow", tuple(nodes), made)


EVENTS = ("error", "deadline")


def step(name: str, **more: object) -> Node:
    return Node(name, name.capitalize(), more.pop("kind", "step"), **more)  # type: ignore[arg-type]


def every_pattern() -> Graph:
    nodes = [
        step("split", entry=True),
        step("frames", kind="map", detail="each of frames, 4 at once"),
        step("sound", undo="forget"),
        step("merge", join="2 of 3", split="one"),
        step("ask", kind="ask", detail="yes or no"),
        step("wait", kind="wait", detail="for Approved, at most 2 days"),
        step("child", kind="run", detail="billing"),
        step("repair"),
        step("late"),
        step("finer", split="one"),
    ]
    return workflow(
        nodes,
        [
            ("split", "frames", "flow", ""),
            ("split", "sound", "flow", ""),
            ("frames", "merge", "flow", ""),
            ("sound", "merge", "flow", ""),
            ("frames", "repair", "error", "CorruptVideo"),
            ("merge", "ask", "case", "is urgent (10)"),
            ("merge", "finer", "default", ""),
            ("finer", "finer", "repeat", "until sure, at most 4 times"),
            ("finer", "wait", "case", "sure"),
            ("wait", "late", "deadline", "after 2 days"),
            ("wait", "child", "flow", ""),
            ("ask", "child", "flow", ""),
        ],
    )


@pytest.fixture(scope="module")
def picture() -> ET.Element:
    return ET.fromstring(Drawing(every_pattern()).svg())  # noqa: S314


def part(picture: ET.Element, name: str) -> ET.Element:
    found = picture.find(f".//g[@data-node='{name}']")
    assert found is not None
    return found


def line(picture: ET.Element, kind: str) -> ET.Element:
    groups = (g for g in picture.iter("g") if kind in g.get("class", "").split())
    return next(groups)


def signs(element: ET.Element) -> list[str]:
    return [
        p.get("class", "")
        for p in element.findall("path")
        if "sign" in p.get("class", "")
    ]


def words(element: ET.Element) -> str:
    return " ".join(text.text or "" for text in element.findall("text"))


# Marks


def test_a_process_begins_at_a_dot_and_ends_at_a_ring(picture: ET.Element) -> None:
    dot, ring = line(picture, "of-start"), line(picture, "of-end")

    assert len(dot.findall("circle")) == 1
    assert len(ring.findall("circle")) == 2


@pytest.mark.parametrize(
    ("gate", "kind"),
    [
        ("split:split", "of-all"),
        ("join:merge", "of-all"),
        ("split:merge", "of-one"),
        ("split:finer", "of-one"),
    ],
)
def test_branches_part_and_meet_at_gates(
    gate: str, kind: str, picture: ET.Element
) -> None:
    group = picture.find(f".//g[@data-edge='{gate}']")

    assert group is not None
    assert kind in group.get("class", "").split()
    assert group.find("path[@class='glyph']") is not None


def test_gates_of_different_kinds_have_different_signs() -> None:
    drawn = {
        kind: Drawing(
            workflow(
                [step("a", split=split, entry=True), step("b"), step("c")],
                [("a", "b", way, "x"), ("a", "c", way, "y")],
            )
        ).svg()
        for kind, split, way in (("all", "", "flow"), ("some", "some", "case"), ("one", "one", "case"))
    }  # fmt: skip
    glyphs = {
        kind: re.search(rf'gate of-{kind}".*?class="glyph" d="([^"]+)"', svg)
        for kind, svg in drawn.items()
    }

    assert len({found.group(1) for found in glyphs.values() if found}) == 3


def test_a_join_that_does_not_wait_for_all_says_so(picture: ET.Element) -> None:
    gate = picture.find(".//g[@data-edge='join:merge']/title")
    onward = picture.find(".//g[@data-edge='into:merge']")

    assert gate is not None
    assert gate.text == "all branches: 2 of 3"
    assert onward is not None
    assert words(onward) == "2 of 3"


def test_a_map_is_a_stack_of_sheets(picture: ET.Element) -> None:
    frames = part(picture, "frames")

    assert len(frames.findall("polyline[@class='behind']")) == 2
    assert signs(frames) == ["glyph sign of-map"]
    assert "each of frames, 4 at once" in words(frames)


def test_a_sub_process_is_a_framed_box_with_a_plus(picture: ET.Element) -> None:
    child = part(picture, "child")

    assert len(child.findall("polyline[@class='rim']")) == 2
    assert signs(child) == ["glyph sign of-run"]


def test_waiting_for_an_event_and_for_a_person_have_different_icons(
    picture: ET.Element,
) -> None:
    icons = [
        [p.get("d") for p in part(picture, name).findall("path[@class='glyph']")]
        for name in ("wait", "ask")
    ]

    assert [len(found) for found in icons] == [1, 1]
    assert icons[0] != icons[1]


def test_what_can_be_undone_says_by_what(picture: ET.Element) -> None:
    sound = part(picture, "sound")

    assert signs(sound) == ["glyph sign of-undo"]
    assert "undone by forget" in words(sound)


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("is-error", "CorruptVideo"),
        ("is-deadline", "after 2 days"),
        ("is-repeat", "until sure, at most 4 times"),
    ],
)
def test_exceptional_edges_have_a_sign_before_their_label(
    kind: str, label: str, picture: ET.Element
) -> None:
    group = line(picture, kind)

    assert words(group) == label
    assert group.find("path[@class='clock']") is not None


def test_every_step_and_every_edge_is_drawn_once(picture: ET.Element) -> None:
    graph = every_pattern()
    nodes = [g.get("data-node") for g in picture.iter("g") if g.get("data-node")]
    edges = [g.get("data-edge") for g in picture.iter("g") if g.get("data-edge")]

    assert sorted(filter(None, nodes)) == sorted(node.id for node in graph.nodes)
    assert {edge.id for edge in graph.edges} <= set(edges)
    assert len(edges) == len(set(edges))


# Safety and stability


TEXTS = st.one_of(
    st.sampled_from(HARMFUL),
    st.text(alphabet='\\"<>&;{}[]|\n\r\t\x00lnrGNTEH%:', min_size=1, max_size=30),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(TEXTS, min_size=5, max_size=5))
def test_no_text_becomes_anything_but_text(texts: list[str]) -> None:
    name, detail, undo, join, guard = texts
    nodes = [
        Node(name, name, "step", detail, entry=True, undo=undo),
        Node("b", detail, "wait", detail),
        Node("c", detail, "ask", join),
        Node("d", undo, "map", guard, join=join),
    ]
    graph = workflow(
        nodes,
        [
            (name, "b", "case", guard),
            (name, "c", "case", guard),
            ("b", "d", "flow", ""),
            ("c", "d", "error", guard),
            ("b", "c", "deadline", guard),
        ],
    )

    drawn = ET.fromstring(Drawing(graph).svg(linked=True, label=name))  # noqa: S314

    assert {element.tag for element in drawn.iter()} <= TAGS
    assert {attribute for e in drawn.iter() for attribute in e.attrib} <= ATTRIBUTES
    links = [element.get("href", "") for element in drawn.iter("a")]
    assert all(link.startswith("?step=") for link in links)
    assert len(links) == 4


def test_the_same_graph_gives_the_same_picture() -> None:
    assert Drawing(every_pattern()).svg() == Drawing(every_pattern()).svg()


def test_painting_moves_nothing() -> None:
    drawing = Drawing(every_pattern())
    state = DiagramState(
        {
            "frames": NodeState(
                ("is-running",),
                "2\N{MULTIPLICATION SIGN}",
                "1",
                "Frames",
                "97/100",
                "3",
                0.94,
                0.03,
            )
        },
        {"e0": ("is-done",), "split:split": ("is-done",)},
    )

    plain, painted = drawing.svg(), drawing.svg(state)

    places = r' (?:d|points|y|transform|viewBox|cx|cy)="[^"]*"'
    assert re.findall(places, plain) == re.findall(places, painted)
    assert plain != painted


def test_a_map_shows_what_is_done_and_what_failed_side_by_side() -> None:
    state = DiagramState({"frames": NodeState(("is-running",), part=0.5, lost=0.25)})

    drawn = ET.fromstring(Drawing(every_pattern()).svg(state))  # noqa: S314

    bar = part(drawn, "frames").find("g[@class='bar is-shown']")
    assert bar is not None
    track, done, lost = (dict(rect.attrib) for rect in bar.findall("rect"))
    whole = float(track["width"])
    assert float(done["width"]) == pytest.approx(whole / 2, abs=0.1)
    assert float(lost["width"]) == pytest.approx(whole / 4, abs=0.1)
    assert float(lost["x"]) == pytest.approx(whole / 2, abs=0.1)


def boxes(picture: ET.Element) -> Iterator[list[float]]:
    for group in picture.iter("g"):
        if group.get("data-node"):
            path = group.find("path")
            assert path is not None
            yield [float(n) for n in re.findall(r"-?\d+\.\d+", path.get("d", ""))[:2]]


def test_no_two_steps_are_at_the_same_place(picture: ET.Element) -> None:
    places = [tuple(place) for place in boxes(picture)]

    assert len(places) == len(set(places)) == 10
