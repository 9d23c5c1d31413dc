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
from tests.services.cases import cases
from tests.services.cases import words as words_of

TAGS = {*words_of("svg g path polyline polygon text title circle rect a")}
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
    drawn = [path.get("class", "") for path in element.findall("path")]
    return [name for name in drawn if "sign" in name]


def words(element: ET.Element) -> str:
    return " ".join(text.text or "" for text in element.findall("text"))


# Marks


def test_a_process_begins_at_a_dot_and_ends_at_a_ring(picture: ET.Element) -> None:
    dot, ring = line(picture, "of-start"), line(picture, "of-end")

    assert len(dot.findall("circle")) == 1
    assert len(ring.findall("circle")) == 2


@cases(
    "gate, kind",
    ("split:split", "of-all"),
    ("join:merge", "of-all"),
    ("split:merge", "of-one"),
    ("split:finer", "of-one"),
)
def test_branches_meet_at_gates(gate: str, kind: str, picture: ET.Element) -> None:
    group = picture.find(f".//g[@data-edge='{gate}']")

    assert group is not None
    assert kind in group.get("class", "").split()
    assert group.find("path[@class='glyph']") is not None


def test_gates_of_different_kinds_have_different_signs() -> None:
    glyphs = set()
    for kind, way in (("all", "flow"), ("some", "case"), ("one", "case")):
        split = kind.replace("all", "")
        nodes = [step("a", split=split, entry=True), step("b"), step("c")]
        drawn = Drawing(workflow(nodes, [("a", "b", way, "x"), ("a", "c", way, "y")]))
        sign = rf'gate of-{kind}".*?class="glyph" d="([^"]+)"'
        glyphs |= set(re.findall(sign, drawn.svg())[:1])

    assert len(glyphs) == 3


def test_a_join_that_does_not_wait_for_all_says_so(picture: ET.Element) -> None:
    gate = picture.find(".//g[@data-edge='join:merge']/title")
    onward = picture.find(".//g[@data-edge='into:merge']")

    assert gate is not None
    assert gate.text == "all branches: 2 of 3"
    assert onward is not None
    assert words(onward) == "2 of 3"


@cases(
    "name, behind, rim, sign, said",
    # a stack of sheets
    ("frames", 2, 0, "of-map", "each of frames, 4 at once"),
    # a framed box with a plus
    ("child", 0, 2, "of-run", ""),
    # what can be undone says by what
    ("sound", 0, 0, "of-undo", "undone by forget"),
)
def test_a_map_a_sub_process_and_what_can_be_undone_have_marks(
    name: str, behind: int, rim: int, sign: str, said: str, picture: ET.Element
) -> None:
    found = part(picture, name)

    assert len(found.findall("polyline[@class='behind']")) == behind
    assert len(found.findall("polyline[@class='rim']")) == rim
    assert signs(found) == [f"glyph sign {sign}"]
    assert said in words(found)


def test_waiting_for_events_and_people_have_two_icons(picture: ET.Element) -> None:
    icons = [
        [p.get("d") for p in part(picture, name).findall("path[@class='glyph']")]
        for name in ("wait", "ask")
    ]

    assert [len(found) for found in icons] == [1, 1]
    assert icons[0] != icons[1]


@cases(
    "kind, label",
    ("is-error", "CorruptVideo"),
    ("is-deadline", "after 2 days"),
    ("is-repeat", "until sure, at most 4 times"),
)
def test_special_edges_have_a_sign(kind: str, label: str, picture: ET.Element) -> None:
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


def test_steps_named_start_and_end_are_apart_from_a_workflows_own_two() -> None:
    graph = workflow(
        [step("end", entry=True), step("start")], [("end", "start", "flow", "")]
    )

    drawing = Drawing(graph)

    assert len(drawing.sketch.part_names()) == 4
    ends = [(one.source, one.target) for one in drawing.sketch.lines]
    assert len({part for pair in ends for part in pair}) == 4


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
    ways = [(name, "b", "case"), (name, "c", "case"), ("c", "d", "error")]
    labelled = [(*way, guard) for way in (*ways, ("b", "c", "deadline"))]
    graph = workflow(nodes, [*labelled, ("b", "d", "flow", "")])

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
    texts = ("2\N{MULTIPLICATION SIGN}", "1", "Frames", "97/100", "3")
    frames = NodeState(("is-running",), *texts, 0.94, 0.03)
    done = dict.fromkeys(["e0", "split:split"], ("is-done",))
    state = DiagramState({"frames": frames}, done)

    plain, painted = drawing.svg(), drawing.svg(state)

    places = r' (?:d|points|y|transform|viewBox|cx|cy)="[^"]*"'
    assert re.findall(places, plain) == re.findall(places, painted)
    assert plain != painted


def test_a_map_shows_what_is_done_and_what_failed_side_by_side() -> None:
    state = DiagramState({"frames": NodeState(("is-running",), part=0.5, lost=0.25)})

    drawn = ET.fromstring(Drawing(every_pattern()).svg(state))  # noqa: S314

    bar = part(drawn, "frames").find("g[@class='bar is-shown']")
    assert bar is not None
    whole, done, lost = (float(r.get("width", "0")) for r in bar.findall("rect"))
    begins = float(bar.findall("rect")[2].get("x", "0"))
    parts = [done / whole, lost / whole, begins / whole]
    assert parts == pytest.approx([0.5, 0.25, 0.5], abs=0.005)


def boxes(picture: ET.Element) -> Iterator[list[float]]:
    for group in picture.iter("g"):
        if group.get("data-node"):
            path = group.find("path")
            assert path is not None
            yield [float(n) for n in re.findall(r"-?\d+\.\d+", path.get("d", ""))[:2]]


def test_no_two_steps_are_at_the_same_place(picture: ET.Element) -> None:
    places = [tuple(place) for place in boxes(picture)]

    assert len(places) == len(set(places)) == 10
