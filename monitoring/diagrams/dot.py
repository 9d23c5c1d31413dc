"""A sketch as DOT: generated ids, every text through one quoting function, no colours."""

import unicodedata
from collections.abc import Mapping, Sequence

import graphviz  # type: ignore[import-untyped]  # it brings no types

from monitoring.diagrams.painting import HEAT, UNVISITED, NodeState
from monitoring.diagrams.sketch import GATES, Line, Part, Sketch, wrapped

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
    """DOT of a definition, in which only labels carry texts.

    Args:
        sketch: what is drawn.
        states: what a map says of parts, by their ids: their numbers, heat, and whether a process visited them.
        ways: between two parts, and not declared.
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
    describe = _of_workflow_step if dense else _of_manager_step
    for part in sketch.parts:
        state = (states or {}).get(part.id, NodeState())
        drawing.node(names[part.id], id=names[part.id], **describe(part, state))
    together = {some[0]: some for some in sketch.loops()}
    beside = {index for some in together.values() for index in some[1:]}
    named = zip(sketch.lines, sketch.line_names(), strict=True)
    for index, (line, name) in enumerate(named):
        if index in beside:
            continue
        weight = {"flow": "3", "case": "3", "default": "3"}.get(line.kind, "1")
        more = {"weight": weight} if dense else {}
        drawn = [sketch.lines[one] for one in together.get(index, [index])]
        label = quoted(stacked(drawn), "\\l") if line.label else ""
        ends = names[line.source], names[line.target]
        drawing.edge(*ends, label=label, id=name, **more)
    for source, target in ways:
        if source in names and target in names:
            drawing.edge(
                names[source], names[target], style="dashed", constraint="false"
            )
    if caption:
        drawing.attr(label=quoted(list(caption), "\\l"), labelloc="b")
    return str(drawing.source)


def part_lines(part: Part) -> tuple[list[str], list[str]]:
    """The label's lines and those of the detail below it."""
    detail = [line for text in part.detail for line in _cut(text, "edge")]
    return _cut(part.label, "node"), detail


def has_signs(part: Part) -> bool:
    """Whether the part has a row of signs at its lower edge."""
    return part.shape in WITH_SIGN or part.undo


def stacked(lines: Sequence[Line]) -> list[str]:
    """The labels of several lines, one below the other: Graphviz draws the loops of a part into each other."""
    found: list[str] = []
    for line in lines:
        found += [*([BLANK] if found else []), *_with_room(line)]
    return found


def _with_room(line: Line) -> list[str]:
    """The lines of a label; the first leaves room for a sign where the kind of line has one."""
    room = CLOCK_ROOM if line.kind in WITH_CLOCK else ""
    return [f"{room}{line.label[0]}", *line.label[1:]]


def _of_manager_step(part: Part, state: NodeState) -> dict[str, str]:
    label = quoted([*wrapped(part.label, "node"), *_numbers(state)])
    outline = "2" if part.shape == "final" else "1"
    return {"label": label, "peripheries": outline, **_outline(state)}


def _of_workflow_step(part: Part, state: NodeState) -> dict[str, str]:
    if part.shape in GATES:
        return {"shape": "diamond", "style": "", **_fixed("0.42")}
    if not part.is_step:
        return {"shape": "circle", **_fixed("0.24" if part.shape == "start" else "0.3")}
    label, detail = part_lines(part)
    lines = [*label, *detail, *([BLANK] if has_signs(part) else [])]
    if part.shape in WITH_ICON:
        lines = [f"{ICON_ROOM}{line}" for line in lines]
    return {"label": quoted([*lines, *_numbers(state)]), **_outline(state)}


def _numbers(state: NodeState) -> list[str]:
    """The line below a label with the numbers of the map; none where there are no numbers."""
    text = "  ".join(filter(None, state.numbers.values()))
    return [text] if text else []


def _outline(state: NodeState) -> dict[str, str]:
    """The outline of a step: thicker the higher its heat, dashed where no process was seen."""
    level = next((int(one[-1]) for one in state.classes if one.startswith(HEAT)), 0)
    drawn = {"penwidth": str(level)} if level > 1 else {}
    dashed = UNVISITED in state.classes
    return drawn | ({"style": "rounded,dashed"} if dashed else {})


def _fixed(size: str) -> dict[str, str]:
    return {"width": size, "height": size, "label": "", "fixedsize": "true"}


def quoted(lines: list[str], end: str = "\\n") -> str:
    """Lines as a DOT label that cannot leave its quotes: no markup, no escapes, no entities, no control characters.

    No line is empty: when Graphviz frees an empty one it may follow a pointer that nothing was written to, and crash.
    """
    safe = (
        str(graphviz.escape(_printable(line) or BLANK)).replace("&", "&amp;")
        for line in lines
    )
    text = end.join(safe) + (end if end == "\\l" else "")
    return graphviz.nohtml(text)  # type: ignore[no-any-return]


def _cut(text: str, kind: str) -> list[str]:
    """The text in at most three lines."""
    lines = [line.strip() for line in wrapped(text, kind)]
    return lines if len(lines) <= 3 else [*lines[:2], f"{lines[2][:-1]}…"]


def _printable(text: str) -> str:
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if _unprintable(char) else char for char in text
    )


def _unprintable(char: str) -> bool:
    # Cs: lone surrogates; Cc: control characters; both would break the XML of the picture.
    return unicodedata.category(char) in {"Cc", "Cs", "Cn"} or char in "\ufffe\uffff"
