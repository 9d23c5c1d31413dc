"""The drawings of this process. Each is laid out once; large ones in the background, after a simpler picture."""

import logging
from threading import Lock, Thread
from typing import NamedTuple

from django.utils.translation import get_language, override

from monitoring.diagrams.drawing import Drawing, EmptyDrawing
from monitoring.diagrams.layout import LayoutFailed, lay_out_large
from monitoring.diagrams.sketch import (
    Sketch,
    best_sketch,
    level_sketch,
    one_part_sketch,
)
from orchestrator.containers import LruCache
from orchestrator.definition.graph import Graph

logger = logging.getLogger(__name__)

CACHED = 200
"""Drawings that a process keeps."""

AT_ONCE = 250
"""Parts and lines of a picture that is laid out while the page waits: about a tenth of a second."""

AT_MOST = 2_000
"""Parts and lines of the largest picture; people cannot read a larger one."""

LOOKED_AT_ONCE = 1_000
"""Steps of a graph that is looked at while the page waits."""


class Key(NamedTuple):
    """The key of a drawing; each language has its own, since the words differ in width."""

    fingerprint: str
    language: str


_drawings = LruCache[Key, Drawing](CACHED)
_lock = Lock()
_layouts = Lock()
"""One large layout at a time."""


def drawing_of(graph: Graph, fingerprint: str = "") -> Drawing:
    """Return the drawing of a graph, laid out once for each fingerprint and language while the process lives."""
    key = Key(fingerprint or graph.fingerprint(), get_language() or "")
    if (known := _drawings.get(key)) is not None:
        return known
    if graph.kind != "workflow":
        return _keep(key, _draw(graph))
    if len(graph.nodes) > LOOKED_AT_ONCE:
        return _improve(key, graph, _draw(graph, one_part_sketch(graph)), None)
    sketch = best_sketch(graph)
    if sketch.weight <= AT_ONCE:
        return _keep(key, _draw(graph, sketch))
    if sketch.weight > AT_MOST:
        return _keep(key, _draw_levels(graph))
    return _improve(key, graph, _draw_levels(graph), sketch)


def _draw(graph: Graph, sketch: Sketch | None = None) -> Drawing:
    """Return the drawing, or an empty one when Graphviz fails, so that a page can show the rest."""
    try:
        return Drawing(graph, sketch)
    except LayoutFailed as failure:
        logger.error("A diagram is missing on its pages: %s", failure)
        return EmptyDrawing(graph, sketch)


def _draw_levels(graph: Graph) -> Drawing:
    drawing = _draw(graph, level_sketch(graph))
    drawing.levels = True
    return drawing


def _improve(key: Key, graph: Graph, simple: Drawing, sketch: Sketch | None) -> Drawing:
    """Keep a simple drawing, and start a thread that makes a better one."""
    simple.pending = True
    kept = _keep(key, simple, replace=False)
    if kept is simple:
        Thread(target=_lay_out, args=(key, graph, sketch), daemon=True).start()
    return kept


def _lay_out(key: Key, graph: Graph, sketch: Sketch | None) -> None:
    """Replace the simple picture by the full one, or by one of levels if that is too large or takes too long."""
    with _layouts, override(key.language or None):
        sketch = sketch or best_sketch(graph)
        if sketch.weight > AT_MOST:
            _keep(key, _draw_levels(graph))
            return
        try:
            _keep(key, Drawing(graph, sketch, lay_out_large))
        except Exception as failure:  # noqa: BLE001  the thread has no caller that could log it
            logger.warning("A large diagram could not be laid out: %r", failure)
            _keep(key, _draw_levels(graph))


def _keep(key: Key, drawing: Drawing, replace: bool = True) -> Drawing:
    """Keep a drawing and return it; without `replace`, return the one that another page has kept."""
    with _lock:
        known = None if replace else _drawings.get(key)
        if known is None:
            _drawings.keep(key, drawing)
        return known or drawing
