"""Graphviz's SVG made fit for a page: a new tree of allowed elements and attributes, painted by CSS classes alone."""

import re
from collections.abc import Iterable, Iterator
from xml.etree import ElementTree as ET

from monitoring.diagrams.box import Box
from monitoring.diagrams.dot import CLOCK_ROOM, edge_lines
from monitoring.diagrams.marks import badge, clock, mark
from orchestrator.definition.graph import Edge, Graph, Node

SVG = "{http://www.w3.org/2000/svg}"
SHAPES = {"path", "polygon", "polyline", "ellipse"}
ALLOWED = {
    "path": ("d",),
    "polygon": ("points",),
    "polyline": ("points",),
    "ellipse": ("cx", "cy", "rx", "ry"),
    "text": ("x", "y", "text-anchor", "font-size"),
}


def clean(raw: str, graph: Graph) -> ET.Element:
    """A picture of the graph with stable ids: nodes `n_<slug>`, edges `e_<n>`; no colours, no styles, no links.

    Every node has a place for a status mark and for two badges, so that nothing moves when they appear.
    """
    source = ET.fromstring(raw)  # noqa: S314  Graphviz wrote it, in a process of ours
    groups = {group.get("id"): group for group in source.iter(f"{SVG}g")}
    picture, canvas = canvas_of(source)
    for index, edge in enumerate(graph.edges):
        canvas.append(_edge(groups[f"e{index}"], edge, index))
    names = slugs_of(node.id for node in graph.nodes)
    for index, (node, name) in enumerate(zip(graph.nodes, names, strict=True)):
        canvas.append(_node(groups[f"n{index}"], node, name))
    return picture


def canvas_of(source: ET.Element) -> tuple[ET.Element, ET.Element]:
    """An empty picture as large as Graphviz's, and the group in it that everything is drawn in."""
    picture = ET.Element(
        "svg", {"viewBox": source.get("viewBox", ""), "class": "picture"}
    )
    picture.set("width", _pixels(source.get("width", "")))
    picture.set("height", _pixels(source.get("height", "")))
    found = (g for g in source.iter(f"{SVG}g") if g.get("id") == "graph0")
    drawn = next(found, source)
    place = {"class": "graph", "transform": drawn.get("transform", "")}
    return picture, ET.SubElement(picture, "g", place)


def slugs_of(ids: Iterable[str]) -> Iterator[str]:
    """A readable id for each node, unique in the picture."""
    used = set[str]()
    for index, given in enumerate(ids):
        name = re.sub(r"\W+", "_", given, flags=re.ASCII).strip("_") or str(index)
        if name in used:
            name = f"{name}_{index}"
        used.add(name)
        yield f"n_{name}"


def _edge(source: ET.Element, edge: Edge, index: int) -> ET.Element:
    kind = "move is-deadline" if edge.kind == "deadline" else "move"
    group = ET.Element("g", {"id": f"e_{index}", "class": kind, "data-edge": edge.id})
    ET.SubElement(group, "title").text = " ".join(
        line.strip() for line in edge_lines(edge)
    )
    group.extend(shapes(source))
    for line in group.findall("text"):
        line.set(
            "x", f"{float(line.get('x', '0')) + 4:.2f}"
        )  # off the line it stands beside
    first = group.find("text")
    if edge.kind == "deadline" and first is not None and first.text:
        first.text = first.text.replace("\u00a0", " ").strip()
        x = float(first.get("x", "0"))
        group.append(clock(x, float(first.get("y", "0"))))
        first.set("x", f"{x + 3.2 * len(CLOCK_ROOM):.2f}")
    return group


def _node(source: ET.Element, node: Node, name: str) -> ET.Element:
    group = ET.Element(
        "g", {"id": name, "class": f"step kind-{node.kind}", "data-node": node.id}
    )
    ET.SubElement(group, "title").text = node.label
    group.extend(shapes(source))
    for rim in group.findall("path")[1:]:
        rim.set("class", "rim")
    box = box_of(source)
    group.append(mark(box.left, box.top))
    group.append(badge("bad", box.left, box.top))
    group.append(badge("count", box.right, box.top))
    return group


def shapes(source: ET.Element) -> Iterator[ET.Element]:
    """What Graphviz drew of one node or edge: allowed elements with allowed attributes."""
    for element in source.iter():
        name = element.tag.removeprefix(SVG)
        if name in ALLOWED:
            kept = {
                key: element.get(key, "") for key in ALLOWED[name] if element.get(key)
            }
            shape = ET.Element(name, kept)
            shape.text = element.text if name == "text" else None
            yield shape


def box_of(group: ET.Element) -> Box:
    """The place of a node, from the outline that Graphviz drew."""
    outlines = [shape for shape in shapes(group) if shape.tag != "text"]
    if outlines and outlines[0].tag == "ellipse":
        x, y, rx, ry = (
            float(outlines[0].get(a, "0")) for a in ("cx", "cy", "rx", "ry")
        )
        return Box(x - rx, y - ry, x + rx, y + ry)
    text = " ".join(shape.get("d") or shape.get("points") or "" for shape in outlines)
    numbers = [float(one) for one in re.findall(r"-?\d+(?:\.\d+)?", text)] or [0.0, 0.0]
    across, down = numbers[::2], numbers[1::2]
    return Box(min(across), min(down), max(across), max(down))


def _pixels(points: str) -> str:
    """Graphviz sizes are points; on the page one of them is drawn as 1.15 pixels."""
    return f"{float(points.removesuffix('pt') or 0) * 1.15:.0f}"
