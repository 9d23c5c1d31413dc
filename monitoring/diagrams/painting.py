"""The state of a diagram, and how it is painted on the picture: classes, badges, bars and titles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import quote
from xml.etree import ElementTree as ET

HEAT = "is-heat-"
"""The prefix of a step's heat, 1 to 5, on a map that compares steps."""

UNVISITED = "is-unvisited"
"""The class of a step on a map without visits."""


@dataclass(frozen=True)
class NodeState:
    """The state of a node: status classes, texts at its corners ("" for none), progress and tooltip.

    `part` and `lost` are the done and the failed share, between 0 and 1; None shows no bar. `numbers` are the texts of
    a map's own badges by their names, and `said` the tooltips of these.
    """

    classes: tuple[str, ...] = ()
    count: str = ""
    bad: str = ""
    title: str = ""
    note: str = ""
    failed: str = ""
    part: float | None = None
    lost: float = 0.0
    numbers: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, str] = field(default_factory=dict)

    @property
    def badges(self) -> dict[str, str]:
        """The text of each badge by the badge's class."""
        return {
            "count": self.count,
            "bad": self.bad,
            "note": self.note,
            "lost": self.failed,
            **self.numbers,
        }

    def to_json(self) -> dict[str, object]:
        said: dict[str, object] = {
            "classes": self.classes,
            "title": self.title,
            **{name: text for name, text in self.badges.items() if text},
        }
        if self.part is not None:
            said["bar"] = [round(self.part, 4), round(self.lost, 4)]
        if self.said:
            said["said"] = dict(self.said)
        return said


@dataclass(frozen=True)
class DiagramState:
    """The state of a diagram, by node id and edge id; pages get it as JSON too."""

    nodes: Mapping[str, NodeState] = field(default_factory=dict)
    edges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def marked(self, names: Iterable[str], mark: str) -> DiagramState:
        """Return the same with one class more on some of its nodes."""
        marked = {
            name: replace(self.nodes[name], classes=(*self.nodes[name].classes, mark))
            for name in names
            if name in self.nodes
        }
        return DiagramState({**self.nodes, **marked}, self.edges)

    def to_json(self) -> dict[str, object]:
        return {
            "nodes": {key: node.to_json() for key, node in self.nodes.items()},
            "edges": dict(self.edges),
        }


def paint(picture: ET.Element, state: DiagramState) -> None:
    """Paint every node and edge that the state names."""
    for group in picture.iter("g"):
        node = state.nodes.get(group.get("data-node", ""))
        if node is not None:
            _paint_node(group, node)
        beside = state.nodes.get(group.get("data-badges", ""))
        if beside is not None:
            _paint_badges(group, beside)
        edge = state.edges.get(group.get("data-edge", ""))
        if edge is not None:
            group.set("class", " ".join([group.get("class", ""), *edge]))


def link_steps(
    picture: ET.Element, table: str = "", query: str = "", narrowed: str = ""
) -> None:
    """Make every step a link that sets `?step=`, and a part that stands for several one that sets `?group=`.

    Args:
        picture: the whole picture.
        table: the id of the table of steps, which a group leads to; without it groups are no links.
        query: parameters that every link keeps.
        narrowed: further parameters of the links of steps that are not final.
    """
    canvas = picture.find("g")
    for index, group in enumerate(list(canvas) if canvas is not None else []):
        name = quote(group.get("data-node", ""))
        several = "kind-group" in group.get("class", "").split()
        if canvas is not None and name and (table or not several):
            kept = f"{query}&" if query else ""
            final = "kind-final" in group.get("class", "").split()
            more = f"&{narrowed}" if narrowed and not final else ""
            end = f"group={name}#{table}" if several else f"step={name}{more}"
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
            _write_badge(part, node.badges.get(names[-1], ""))
        elif "bar" in names:
            _paint_bar(part, node)


def _paint_badges(group: ET.Element, node: NodeState) -> None:
    """Write the numbers of a node into its badges on a map, with their titles."""
    for badge in group.iter("g"):
        title = badge.find("title")
        if title is not None:
            name = badge.get("class", "").split()[-1]
            _write_badge(badge, node.numbers.get(name, ""))
            title.text = node.said.get(name, "")


def _write_badge(badge: ET.Element, said: str) -> None:
    text = badge.find("text")
    if text is not None:
        badge.set("data-len", str(len(said)))
        text.text = said


def _paint_bar(bar: ET.Element, node: NodeState) -> None:
    if node.part is None:
        return
    across = float(bar.get("data-across", "0"))
    bar.set("class", "bar is-shown")
    _, part, lost = bar.findall("rect")
    part.set("width", f"{across * node.part:.2f}")
    lost.set("width", f"{across * node.lost:.2f}")
    lost.set("x", f"{across * node.part:.2f}")
