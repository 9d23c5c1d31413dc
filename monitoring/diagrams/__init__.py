"""A definition's graph as DOT, as a picture for pages and files, and as a transition table."""

from monitoring.diagrams.cache import drawing_of
from monitoring.diagrams.drawing import Drawing, MapLayer, Svg
from monitoring.diagrams.painting import DiagramState, NodeState
from monitoring.diagrams.table import (
    Cell,
    TransitionTable,
    steps_as_text,
    transition_table,
)

__all__ = [
    "Cell",
    "DiagramState",
    "Drawing",
    "MapLayer",
    "NodeState",
    "Svg",
    "TransitionTable",
    "drawing_of",
    "steps_as_text",
    "transition_table",
]
