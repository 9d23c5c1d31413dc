"""The drawings of this process. Each is laid out once; large ones in the background, after a simpler picture."""

import logging
from threading import Lock, Thread
from typing import NamedTuple

from django.utils.translation import get_language, override

from monitoring.diagrams.drawing import Drawing, Undrawn
from monitoring.diagrams.layout import LayoutFailed, laid_out_apart
from monitoring.diagrams.sketch import Sketch, level_plan, placeholder, plan
from orchestrator.collecting import LruCache
from orchestrator.definition.graph import Graph

logger = logging.getLogger(__name__)

CACHED = 200
"""Drawings that a process keeps."""

AT_ONCE = 250
"""Parts and lines of a picture that is laid out while the page waits: about a tenth of a second."""

AT_MOST = 2_000
"""Parts and lines of a picture that is laid out at all; more cannot be read, nor moved smoothly."""

LOOKED_AT_ONCE = 1_000
"""Steps of a graph that is looked at while the page waits."""


class Key(NamedTuple):
    """Words take room, and so each language has a picture of its own."""

    fingerprint: str
    language: str


_drawings = LruCache[Key, Drawing](CACHED)
_lock = Lock()
_layouts = Lock()
"""One large layout at a time."""


def drawing_of(graph: Graph, fingerprint: str = "") -> Drawing:
    """The drawing of a graph, laid out at most once for each fingerprint and language while the process lives."""
    key = Key(fingerprint or graph.fingerprint(), get_language() or "")
    if (known := _drawings.get(key)) is not None:
        return known
    if graph.kind != "workflow":
        return _kept(key, _drawn(graph))
    if len(graph.nodes) > LOOKED_AT_ONCE:
        return _later(key, graph, _drawn(graph, placeholder(graph)), None)
    sketch = plan(graph)
    if sketch.weight <= AT_ONCE:
        return _kept(key, _drawn(graph, sketch))
    if sketch.weight > AT_MOST:
        return _kept(key, _by_level(graph))
    return _later(key, graph, _by_level(graph), sketch)


def _drawn(graph: Graph, sketch: Sketch | None = None) -> Drawing:
    """The drawing, or an empty one when Graphviz fails, so that a page can show the rest."""
    try:
        return Drawing(graph, sketch)
    except LayoutFailed as failure:
        logger.error("A diagram is missing on its pages: %s", failure)
        return Undrawn(graph, sketch)


def _by_level(graph: Graph) -> Drawing:
    drawing = _drawn(graph, level_plan(graph))
    drawing.levels = True
    return drawing


def _later(key: Key, graph: Graph, simple: Drawing, sketch: Sketch | None) -> Drawing:
    """Keeps a simple drawing and has a better one made in the background."""
    simple.pending = True
    kept = _kept(key, simple, replace=False)
    if kept is simple:
        Thread(target=_lay_out, args=(key, graph, sketch), daemon=True).start()
    return kept


def _lay_out(key: Key, graph: Graph, sketch: Sketch | None) -> None:
    """Replaces the simple picture by the full one; by one of levels when that is too large or takes too long."""
    with _layouts, override(key.language or None):
        sketch = sketch or plan(graph)
        if sketch.weight > AT_MOST:
            _kept(key, _by_level(graph))
            return
        try:
            _kept(key, Drawing(graph, sketch, laid_out_apart))
        except Exception as failure:  # noqa: BLE001  the thread has no caller that could log it
            logger.warning("A large diagram could not be laid out: %r", failure)
            _kept(key, _by_level(graph))


def _kept(key: Key, drawing: Drawing, replace: bool = True) -> Drawing:
    """Keeps a drawing; without `replace` the one that another page has put there meanwhile."""
    with _lock:
        known = None if replace else _drawings.get(key)
        if known is None:
            _drawings.keep(key, drawing)
        return known or drawing
