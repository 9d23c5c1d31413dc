"""A sketch as DOT: part p0, p1, ... and line l0, l1, ...; only labels carry texts."""

import graphviz  # type: ignore[import-untyped]  # it brings no types

from monitoring.diagrams.dot import (
    BLANK,
    CLOCK_ROOM,
    EDGE,
    GRAPH,
    NODE,
    quoted,
    wrapped,
)
from monitoring.diagrams.sketch import GATES, TERMINALS, Line, Part, Sketch

ICON_ROOM = BLANK * 6
"""Keeps the place left of a label where the icon of its kind is drawn."""

WITH_ICON = ("wait", "ask")
WITH_SIGN = ("map", "run", "group")
LINES = {"label": 24, "detail": 32}


def sketch_dot(sketch: Sketch) -> str:
    """DOT of a workflow, in which only labels carry texts."""
    drawing = graphviz.Digraph(
        "definition",
        graph_attr={**GRAPH, "ranksep": "0.4", "nodesep": "0.42"},
        node_attr={**NODE, "margin": "0.2,0.12"},
        edge_attr=EDGE,
    )
    names = {part.id: f"p{index}" for index, part in enumerate(sketch.parts)}
    for part in sketch.parts:
        drawing.node(names[part.id], id=names[part.id], **_look(part))
    for index, line in enumerate(sketch.lines):
        weight = {"flow": "3", "case": "3", "default": "3"}.get(line.kind, "1")
        label = quoted(list(labelled(line)), "\\l") if line.label else ""
        ends = names[line.source], names[line.target]
        drawing.edge(*ends, label=label, id=f"l{index}", weight=weight)
    return str(drawing.source)


def labelled(line: Line) -> tuple[str, ...]:
    """The lines of a label; the first leaves room for a sign where the kind of line has one."""
    if line.kind not in ("deadline", "error", "repeat"):
        return line.label
    return (f"{CLOCK_ROOM}{line.label[0]}", *line.label[1:])


def part_lines(part: Part) -> tuple[list[str], list[str]]:
    """The label's lines and those of the detail below it."""
    detail = [line for text in part.detail for line in _cut(text, LINES["detail"])]
    return _cut(part.label, LINES["label"]), detail


def has_signs(part: Part) -> bool:
    """Whether the part has a row of signs at its lower edge."""
    return part.shape in WITH_SIGN or part.undo


def _look(part: Part) -> dict[str, str]:
    if part.shape in GATES:
        look = {"shape": "diamond", "width": "0.42", "height": "0.42", "label": ""}
        return {**look, "style": "", "fixedsize": "true"}
    if part.shape in TERMINALS:
        size = "0.24" if part.shape == "start" else "0.3"
        return {
            "shape": "circle",
            "width": size,
            "height": size,
            "label": "",
            "fixedsize": "true",
        }
    label, detail = part_lines(part)
    lines = [*label, *detail, *([BLANK] if has_signs(part) else [])]
    if part.shape in WITH_ICON:
        lines = [f"{ICON_ROOM}{line}" for line in lines]
    return {"label": quoted(lines)}


def _cut(text: str, limit: int) -> list[str]:
    """The text in at most three lines."""
    lines = wrapped(text, "node" if limit == LINES["label"] else "edge")
    lines = [line.strip() for line in lines]
    return lines if len(lines) <= 3 else [*lines[:2], f"{lines[2][:-1]}…"]
