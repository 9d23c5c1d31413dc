"""Puts a state on a picture: classes, badges, bars and titles; nothing moves."""

from urllib.parse import quote
from xml.etree import ElementTree as ET

from monitoring.diagrams.state import DiagramState, NodeState


def paint(picture: ET.Element, state: DiagramState) -> None:
    """Paints every node and edge that the state names."""
    for group in picture.iter("g"):
        node = state.nodes.get(group.get("data-node", ""))
        if node is not None:
            _paint_node(group, node)
        edge = state.edges.get(group.get("data-edge", ""))
        if edge is not None:
            group.set("class", " ".join([group.get("class", ""), *edge]))


def link(picture: ET.Element, table: str = "", query: str = "") -> None:
    """Makes every step a link that sets `?step=`, and a part that stands for several one that sets `?group=`.

    Args:
        picture: the whole picture.
        table: the id of the table of steps, which a group leads to; without it groups are no links.
        query: parameters that every link keeps.
    """
    canvas = picture.find("g")
    for index, group in enumerate(list(canvas) if canvas is not None else []):
        name = quote(group.get("data-node", ""))
        several = "kind-group" in group.get("class", "").split()
        if canvas is not None and name and (table or not several):
            kept = f"{query}&" if query else ""
            end = f"group={name}#{table}" if several else f"step={name}"
            anchor = ET.Element("a", {"href": f"?{kept}{end}"})
            anchor.append(group)
            canvas[index] = anchor


def _paint_node(group: ET.Element, node: NodeState) -> None:
    group.set("class", " ".join([group.get("class", ""), *node.classes]))
    title = group.find("title")
    if node.title and title is not None:
        title.text = node.title
    for part in group.findall("g"):
        names = part.get("class", "").split()
        if "badge" in names:
            _write(part, node.badges.get(names[-1], ""))
        elif "bar" in names:
            _stretch(part, node)


def _write(badge: ET.Element, said: str) -> None:
    text = badge.find("text")
    if text is not None:
        badge.set("data-len", str(len(said)))
        text.text = said


def _stretch(bar: ET.Element, node: NodeState) -> None:
    if node.part is None:
        return
    across = float(bar.get("data-across", "0"))
    bar.set("class", "bar is-shown")
    _, part, lost = bar.findall("rect")
    part.set("width", f"{across * node.part:.2f}")
    lost.set("width", f"{across * node.lost:.2f}")
    lost.set("x", f"{across * node.part:.2f}")
