"""A graph as DOT: generated ids, every text through one quoting function, no colours."""

import textwrap
import unicodedata

import graphviz  # type: ignore[import-untyped]  # it brings no types

from monitoring.diagrams import words
from orchestrator.definition.graph import Edge, Graph, Node

LINE = {"node": 18, "edge": 36}
"""Characters in a line of a label; wide (East Asian) characters count twice."""


def dot_source(graph: Graph) -> str:
    """DOT of a definition: node n0 is the first node, edge e0 the first edge; only labels carry texts."""
    drawing = graphviz.Digraph(
        "definition", graph_attr=GRAPH, node_attr=NODE, edge_attr=EDGE
    )
    names = {node.id: f"n{index}" for index, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        drawing.node(
            names[node.id],
            label=_node_label(node),
            id=names[node.id],
            peripheries="2" if node.kind == "final" else "1",
        )
    for index, edge in enumerate(graph.edges):
        drawing.edge(
            names[edge.source],
            names[edge.target],
            label=quoted(edge_lines(edge), "\\l"),
            id=f"e{index}",
        )
    return str(drawing.source)


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


def edge_lines(edge: Edge) -> list[str]:
    """The label of an edge in UML order: event, [guard], / command, each on lines of its own."""
    commands = [*edge.commands, *([words.escalate()] if edge.escalates else [])]
    lines = wrapped(edge.event, "edge")
    if edge.guard:
        lines += wrapped(f"[{edge.guard}]", "edge")
    for index, command in enumerate(commands):
        lines += wrapped(f"{'/ ' if index == 0 else '   '}{command}", "edge")
    return [f"{CLOCK_ROOM}{lines[0]}", *lines[1:]] if edge.kind == "deadline" else lines


BLANK = "\N{NO-BREAK SPACE}"

CLOCK_ROOM = BLANK * 4
"""Keeps the place where a deadline's clock is drawn."""


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


def wrapped(text: str, kind: str) -> list[str]:
    """The text in lines that fit a node or an edge label; an unbroken word is cut."""
    limit = LINE[kind] // (2 if any(map(_wide, text)) else 1)
    indent = text[: len(text) - len(text.lstrip())]
    return textwrap.wrap(
        text, limit, subsequent_indent=indent + "  " if indent or kind == "edge" else ""
    ) or [""]


def _node_label(node: Node) -> str:
    return quoted(wrapped(node.label, "node"))


def _printable(text: str) -> str:
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if _unprintable(char) else char for char in text
    )


def _unprintable(char: str) -> bool:
    # Cs: lone surrogates; Cc: control characters; both would break the XML of the picture.
    return unicodedata.category(char) in {"Cc", "Cs", "Cn"} or char in "\ufffe\uffff"


def _wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"
