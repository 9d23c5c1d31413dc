"""A sketch as DOT: generated ids, every text through one quoting function, no colours."""

import unicodedata
from collections.abc import Mapping, Sequence

import graphviz  # type: ignore[import-untyped]  # it brings no types

from monitoring.diagrams.painting import HEAT, UNVISITED, NodeState
from monitoring.diagrams.sketch import GATES, Line, Part, Sketch, wrap_label

GRAPH = {
    "rankdir": "TB",
    "nodesep": "0.5",
    "ranksep": "0.62",
    "pad": "0.3",
    "fontname": "Helvetica",
}
NODE = {
    "shape": "box",
    "style": "rounded",
    "margin": "0.26,0.15",
    "fontname": "Helvetica",
    "fontsize": "13",
}
EDGE = {"fontname": "Helvetica", "fontsize": "10.5", "arrowsize": "0.8"}
DENSE = {"ranksep": "0.4", "nodesep": "0.42"}
"""Workflows have many steps, and their labels are short."""

BLANK = "\N{NO-BREAK SPACE}"

CLOCK_ROOM = BLANK * 4
"""Keeps the place where a deadline's clock, or the sign of another kind of line, is drawn."""

ICON_ROOM = BLANK * 6
"""Keeps the place left of a label where the icon of its kind is drawn."""

WITH_ICON = ("wait", "ask", "sleep")
WITH_SIGN = ("map", "run", "group")
WITH_CLOCK = ("deadline", "error", "repeat")


def dot_source(
    sketch: Sketch,
    states: Mapping[str, NodeState] | None = None,
    ways: Sequence[tuple[str, str]] = (),
    caption: Sequence[str] = (),
) -> str:
    """Return DOT of a definition, in which only labels carry texts.

    Args:
        sketch: the sketch to draw.
        states: the state of parts on a map, by their ids: numbers, heat, and whether a process visited them.
        ways: undeclared moves between two parts.
        caption: lines below the picture.
    """
    dense = sketch.of_workflow
    drawing = graphviz.Digraph(
        "definition",
        graph_attr=GRAPH | DENSE if dense else GRAPH,
        node_attr=NODE | {"margin": "0.2,0.12"} if dense else NODE,
        edge_attr=EDGE,
    )
    names = sketch.part_names()
    describe = _workflow_step if dense else _manager_step
    for part in sketch.parts:
        state = (states or {}).get(part.id, NodeState())
        drawing.node(names[part.id], id=names[part.id], **describe(part, state))
    _add_lines(drawing, sketch, names)
    for source, target in ways:
        if source in names and target in names:
            drawing.edge(
                names[source], names[target], style="dashed", constraint="false"
            )
    if caption:
        drawing.attr(label=quote_label(list(caption), "\\l"), labelloc="b")
    return str(drawing.source)


def _add_lines(
    drawing: graphviz.Digraph, sketch: Sketch, names: Mapping[str, str]
) -> None:
    """Add the lines; the loops of a part are one edge, with their labels below each other."""
    together = {some[0]: some for some in sketch.loops()}
    beside = {index for some in together.values() for index in some[1:]}
    named = zip(sketch.lines, sketch.line_names(), strict=True)
    for index, (line, name) in enumerate(named):
        if index in beside:
            continue
        weight = {"flow": "3", "case": "3", "default": "3"}.get(line.kind, "1")
        more = {"weight": weight} if sketch.of_workflow else {}
        drawn = [sketch.lines[one] for one in together.get(index, [index])]
        label = quote_label(stack_labels(drawn), "\\l") if line.label else ""
        ends = names[line.source], names[line.target]
        drawing.edge(*ends, label=label, id=name, **more)


def part_lines(part: Part) -> tuple[list[str], list[str]]:
    """Return the label's lines and those of the detail below it."""
    detail = [line for text in part.detail for line in _three_lines(text, "edge")]
    return _three_lines(part.label, "node"), detail


def has_signs(part: Part) -> bool:
    """Whether the part has a row of signs at its lower edge."""
    return part.shape in WITH_SIGN or part.undo


def stack_labels(lines: Sequence[Line]) -> list[str]:
    """Return the labels of several lines, one below the other: Graphviz draws the loops of a part into each other."""
    found: list[str] = []
    for line in lines:
        found += [*([BLANK] if found else []), *_label_lines(line)]
    return found


def _label_lines(line: Line) -> list[str]:
    """Return the lines of a label; the first leaves room for a sign where the kind of line has one."""
    room = CLOCK_ROOM if line.kind in WITH_CLOCK else ""
    return [f"{room}{line.label[0]}", *line.label[1:]]


def _manager_step(part: Part, state: NodeState) -> dict[str, str]:
    label = quote_label([*wrap_label(part.label, "node"), *_numbers(state)])
    outline = "2" if part.shape == "final" else "1"
    return {"label": label, "peripheries": outline, **_outline(state)}


def _workflow_step(part: Part, state: NodeState) -> dict[str, str]:
    if part.shape in GATES:
        return {"shape": "diamond", "style": "", **_size("0.42")}
    if not part.is_step:
        return {"shape": "circle", **_size("0.24" if part.shape == "start" else "0.3")}
    label, detail = part_lines(part)
    lines = [*label, *detail, *([BLANK] if has_signs(part) else [])]
    if part.shape in WITH_ICON:
        lines = [f"{ICON_ROOM}{line}" for line in lines]
    return {"label": quote_label([*lines, *_numbers(state)]), **_outline(state)}


def _numbers(state: NodeState) -> list[str]:
    """Return the line below a label with the numbers of the map; none where there are no numbers."""
    text = "  ".join(filter(None, state.numbers.values()))
    return [text] if text else []


def _outline(state: NodeState) -> dict[str, str]:
    """Return the outline of a step: thicker the higher its heat, dashed where no process was seen."""
    level = next((int(one[-1]) for one in state.classes if one.startswith(HEAT)), 0)
    drawn = {"penwidth": str(level)} if level > 1 else {}
    dashed = UNVISITED in state.classes
    return drawn | ({"style": "rounded,dashed"} if dashed else {})


def _size(size: str) -> dict[str, str]:
    return {"width": size, "height": size, "label": "", "fixedsize": "true"}


def quote_label(lines: list[str], end: str = "\\n") -> str:
    """Return lines as a DOT label without markup, escapes, entities and control characters.

    No line is empty, since Graphviz can crash when it frees an empty one.
    """
    safe = (
        str(graphviz.escape(_replace_unprintable(line) or BLANK)).replace("&", "&amp;")
        for line in lines
    )
    text = end.join(safe) + (end if end == "\\l" else "")
    return graphviz.nohtml(text)  # type: ignore[no-any-return]


def _three_lines(text: str, kind: str) -> list[str]:
    """Return the text in at most three lines."""
    lines = [line.strip() for line in wrap_label(text, kind)]
    return lines if len(lines) <= 3 else [*lines[:2], f"{lines[2][:-1]}…"]


def _replace_unprintable(text: str) -> str:
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if _is_unprintable(char) else char for char in text
    )


def _is_unprintable(char: str) -> bool:
    # Cs: lone surrogates; Cc: control characters; both would break the XML of the picture.
    return unicodedata.category(char) in {"Cc", "Cs"} or char in "\ufffe\uffff"
