"""A laid-out definition, and what of it can be painted: classes, badges and titles."""

import re
from collections.abc import Callable
from copy import deepcopy
from xml.etree import ElementTree as ET

from monitoring.diagrams.dot import dot_source
from monitoring.diagrams.export_style import export_style
from monitoring.diagrams.layout import laid_out
from monitoring.diagrams.painting import DiagramState, link, paint
from monitoring.diagrams.sketch import Part, Sketch, plan
from monitoring.diagrams.svg import picture_of
from orchestrator.definition.graph import Graph

FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


class Svg(str):
    """Markup that `Drawing` built from allowed elements and escaped texts; templates take it as it is."""

    def __html__(self) -> str:
        return str(self)


class Drawing:
    """The picture of one graph. Laid out once; each rendering only sets classes, numbers and titles.

    It is made from a sketch, whose parts may stand for several steps of a workflow. `pending` says that a better
    picture is being laid out, `levels` that this one shows levels of steps because there are too many to draw,
    `failed` that Graphviz could not draw it: the picture is empty.

    Args:
        graph: what is drawn.
        sketch: what of the graph is drawn; the best sketch when left out.
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
        self.sketch = sketch or plan(graph)
        self.dot = dot_source(self.sketch)
        self._picture = picture_of(lay_out(self.dot), self.sketch)

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
        parts = (part for part in self.sketch.parts if part.shape == "group")
        return next((part for part in parts if part.id == name), None)

    def standalone(self, state: DiagramState | None = None) -> str:
        """The picture as a file of its own, in colours that print."""
        picture = deepcopy(self._picture)
        picture.set("xmlns", "http://www.w3.org/2000/svg")
        paint(picture, state or DiagramState())
        style = ET.Element("style")
        style.text = export_style()
        picture.insert(0, style)
        return '<?xml version="1.0" encoding="UTF-8"?>\n' + _markup(picture)


class Undrawn(Drawing):
    """Stands for the picture of a graph that Graphviz cannot draw, so that the rest of a page can be shown."""

    def __init__(self, graph: Graph, sketch: Sketch | None = None) -> None:
        self.pending = self.levels = False
        self.failed = True
        self.dot = ""
        self.sketch = sketch or plan(graph)
        self._picture = ET.Element("svg", {"viewBox": "0 0 1 1", "class": "picture"})


def _markup(picture: ET.Element) -> str:
    """The picture as text; characters that XML cannot hold are replaced."""
    return FORBIDDEN.sub(
        "\N{REPLACEMENT CHARACTER}", ET.tostring(picture, encoding="unicode")
    )
