"""A laid-out definition, and what of it can be painted: classes, badges and titles."""

import re
from collections.abc import Callable
from copy import deepcopy
from xml.etree import ElementTree as ET

from monitoring.diagrams.dot import dot_source
from monitoring.diagrams.folding import as_one, by_level, chained, folded
from monitoring.diagrams.layout import laid_out
from monitoring.diagrams.painting import link, paint
from monitoring.diagrams.paper import paper
from monitoring.diagrams.sketch import Part, Sketch
from monitoring.diagrams.sketch_dot import sketch_dot
from monitoring.diagrams.sketch_svg import sketch_picture
from monitoring.diagrams.state import DiagramState
from monitoring.diagrams.svg import clean
from monitoring.diagrams.workflow_sketch import sketch_of
from orchestrator.definition.graph import Graph

FOLDED_ABOVE = 60
"""Steps of a workflow above which what repeats is drawn as one."""

WITH_GATES = 120
"""Parts of a picture above which branches are drawn without gates."""

FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Svg(str):
    """Markup that `Drawing` built from allowed elements and escaped texts; templates take it as it is."""

    def __html__(self) -> str:
        return str(self)


class Drawing:
    """The picture of one graph. Laid out once; each rendering only sets classes, numbers and titles.

    A workflow's picture is made from a sketch, whose parts may stand for several steps. `pending` says that a better
    picture is being laid out, `levels` that this one shows levels of steps because there are too many to draw,
    `failed` that Graphviz could not draw it: the picture is empty.

    Args:
        graph: what is drawn.
        sketch: what of a workflow is drawn; the best sketch when left out.
        lay_out: lays DOT out as SVG.

    Raises:
        LayoutFailed: Graphviz could not draw it.
    """

    def __init__(
        self,
        graph: Graph,
        sketch: Sketch | None = None,
        lay_out: Callable[[str], str] = laid_out,
    ) -> None:
        self.pending = self.levels = self.failed = False
        self.sketch = sketch
        if graph.kind == "workflow":
            self.sketch = sketch or plan(graph)
            self.dot = sketch_dot(self.sketch)
            self._picture = sketch_picture(lay_out(self.dot), self.sketch)
        else:
            self.dot = dot_source(graph)
            self._picture = clean(lay_out(self.dot), graph)

    def svg(
        self,
        state: DiagramState | None = None,
        *,
        label: str = "",
        linked: bool = False,
        table: str = "",
        query: str = "",
    ) -> Svg:
        """The picture for a page.

        Args:
            state: what to paint; nothing when left out.
            label: what the picture is called for people who cannot see it.
            linked: nodes become links that set `?step=`.
            table: the id of the page's table of steps; parts that stand for several become links to theirs in it.
            query: parameters of the page that the links keep.
        """
        picture = deepcopy(self._picture)
        picture.set("role", "group" if linked else "img")
        picture.set("aria-label", label)
        paint(picture, state or DiagramState())
        if linked:
            link(picture, table, query)
        return Svg(_markup(picture))

    def group(self, name: str) -> Part | None:
        """The part of that id that stands for several steps, if there is one."""
        parts = self.sketch.steps() if self.sketch and name else ()
        return next((p for p in parts if p.id == name and p.shape == "group"), None)

    def standalone(self, state: DiagramState | None = None) -> str:
        """The picture as a file of its own, in colours that print."""
        picture = deepcopy(self._picture)
        picture.set("xmlns", "http://www.w3.org/2000/svg")
        paint(picture, state or DiagramState())
        style = ET.Element("style")
        style.text = paper()
        picture.insert(0, style)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + _markup(picture)


class Undrawn(Drawing):
    """Stands for the picture of a graph that Graphviz cannot draw, so that the rest of a page can be shown."""

    def __init__(self, graph: Graph, sketch: Sketch | None = None) -> None:
        self.pending = self.levels = False
        self.failed = True
        self.dot = ""
        self.sketch = sketch or (plan(graph) if graph.kind == "workflow" else None)
        self._picture = ET.Element("svg", {"viewBox": "0 0 1 1", "class": "picture"})


def plan(graph: Graph) -> Sketch:
    """The sketch that shows most of a workflow and can still be read: what repeats is folded when there is much."""
    groups = folded(graph) if len(graph.nodes) > FOLDED_ABOVE else {}
    parts = len(graph.nodes) - sum(len(some) - 1 for some in groups.values())
    return sketch_of(graph, groups, gates=parts <= WITH_GATES)


def level_plan(graph: Graph) -> Sketch:
    """The sketch that shows any workflow quickly: one part for each level of steps."""
    groups = by_level(graph)
    return sketch_of(chained(graph, groups), groups, gates=False)


def placeholder(graph: Graph) -> Sketch:
    """The sketch of a workflow of which nothing has been looked at yet."""
    return sketch_of(graph, as_one(graph), gates=False)


def _markup(picture: ET.Element) -> str:
    """The picture as text; characters that XML cannot hold are replaced."""
    return FORBIDDEN.sub(
        "\N{REPLACEMENT CHARACTER}", ET.tostring(picture, encoding="unicode")
    )
