"""A laid-out definition, on which classes, badges and titles are painted."""

import re
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from monitoring.diagrams.dot import dot_source
from monitoring.diagrams.export_style import export_style
from monitoring.diagrams.layout import lay_out_small
from monitoring.diagrams.map_layer import Way, add_badges, add_caption, add_ways
from monitoring.diagrams.painting import DiagramState, link_steps, paint
from monitoring.diagrams.shapes import Box
from monitoring.diagrams.sketch import Part, Sketch, best_sketch
from monitoring.diagrams.svg import picture_of
from orchestrator.definition.graph import Graph

FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Svg(str):
    """Markup that `Drawing` built from allowed elements and escaped texts; templates take it as it is."""

    def __html__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class MapLayer:
    """The layer of a definition's map above its picture.

    Args:
        links: further parameters of the link of each badge, by its name; "here" for the link of the step.
        ways: undeclared moves between two parts.
        caption: lines below the picture in a file.
    """

    links: Mapping[str, str] = field(default_factory=dict)
    ways: Sequence[Way] = ()
    caption: Sequence[str] = ()


class Drawing:
    """The picture of one graph. Graphviz lays it out once; each rendering only sets classes, numbers and titles.

    Its sketch may have parts for several steps of a workflow. `pending` says that a better picture is being laid out,
    `levels` that this one shows levels because there are too many steps to draw, `failed` that Graphviz failed and the
    picture is empty.

    Args:
        graph: the graph to draw.
        sketch: the sketch of the graph; by default the best.
        lay_out: makes SVG of DOT.

    Raises:
        LayoutFailed: Graphviz could not draw it.
    """

    pending = levels = failed = False

    def __init__(
        self,
        graph: Graph,
        sketch: Sketch | None = None,
        lay_out: Callable[[str], str] = lay_out_small,
    ) -> None:
        self.sketch = sketch or best_sketch(graph)
        self.dot = dot_source(self.sketch)
        raw = lay_out(self.dot)
        self._boxes: Mapping[str, Box]
        self._picture, self._boxes = picture_of(raw, self.sketch)

    def svg(
        self,
        state: DiagramState | None = None,
        *,
        label: str = "",
        linked: bool = False,
        table: str = "",
        query: str = "",
        layer: MapLayer | None = None,
        named: bool = True,
    ) -> Svg:
        """Return the picture for a page.

        Args:
            state: the state to paint; by default none.
            label: the name of the picture for people who cannot see it.
            linked: nodes become links that set `?step=`.
            table: the id of the page's table of steps; parts that stand for several become links to theirs in it.
            query: parameters of the page that the links keep.
            layer: the layer above it; by default none.
            named: whether its elements have ids; False for a second picture on the same page.
        """
        picture = deepcopy(self._picture)
        picture.set("role", "group" if linked else "img")
        picture.set("aria-label", label)
        if linked:
            links = layer.links if layer is not None else {}
            link_steps(picture, table, query, links.get("here", ""))
        self._lay(picture, layer, query)
        paint(picture, state or DiagramState())
        if not named:
            for element in picture.iter():
                element.attrib.pop("id", None)
        return Svg(_markup(picture))

    def group(self, name: str) -> Part | None:
        """Return the part of that id that stands for several steps, if there is one."""
        parts = (part for part in self.sketch.parts if part.shape == "group")
        return next((part for part in parts if part.id == name), None)

    def standalone(
        self,
        state: DiagramState | None = None,
        layer: MapLayer | None = None,
        title: str = "",
    ) -> str:
        """Return the picture as a file of its own, in colours that print.

        Args:
            state: the state to paint; by default none.
            layer: the layer above it; by default none.
            title: a title in words; by default none.
        """
        picture = deepcopy(self._picture)
        picture.set("xmlns", "http://www.w3.org/2000/svg")
        self._lay(picture, layer)
        paint(picture, state or DiagramState())
        if layer is not None:
            add_caption(picture, layer.caption)
        style = ET.Element("style")
        style.text = export_style()
        picture.insert(0, style)
        if title:
            said = ET.Element("title")
            said.text = title
            picture.insert(0, said)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + _markup(picture)

    def dot_with(self, state: DiagramState, layer: MapLayer) -> str:
        """Return the DOT of a map: numbers in the labels, thicker outlines, undeclared moves."""
        return dot_source(self.sketch, state.nodes, layer.ways, layer.caption)

    def _lay(
        self, picture: ET.Element, layer: MapLayer | None, query: str | None = None
    ) -> None:
        canvas = picture.find("g")
        if layer is not None and canvas is not None:
            add_ways(canvas, self._boxes, layer.ways)
            links = layer.links if query is not None else None
            add_badges(canvas, self.sketch, self._boxes, links, query or "")


class EmptyDrawing(Drawing):
    """An empty picture for a graph that Graphviz cannot draw, so that a page can show the rest."""

    failed = True

    def __init__(self, graph: Graph, sketch: Sketch | None = None) -> None:
        self.dot = ""
        self.sketch = sketch or best_sketch(graph)
        self._picture = ET.Element("svg", {"viewBox": "0 0 1 1", "class": "picture"})
        self._boxes = {}


def _markup(picture: ET.Element) -> str:
    """Return the picture as text; characters that XML cannot hold are replaced."""
    return FORBIDDEN.sub(
        "\N{REPLACEMENT CHARACTER}", ET.tostring(picture, encoding="unicode")
    )
