"""A diagram in text, for terminals: each part on a line, with the targets of its lines below."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from monitoring.diagrams.painting import NodeState
from monitoring.diagrams.sketch import (
    Line,
    Part,
    Sketch,
    best_sketch,
    level_sketch,
    one_part_sketch,
)
from orchestrator.containers import group_by_key
from orchestrator.definition.graph import Graph

MOST = 150
"""Parts above which a workflow is drawn by levels."""
WAYS_OUT = 12
"""Lines out of one part that are drawn; the text has the number of the others."""

MARKS = {
    "is-done": "✓",
    "is-completed": "✓",
    "is-skipped": "✓",
    "is-undone": "↶",
    "is-running": "●",
    "is-ready": "●",
    "is-waiting": "●",
    "is-retrying": "↻",
    "is-paused": "‖",
    "is-failed": "✗",
    "is-handled": "✗",
    "is-cancelled": "-",
    "is-not_taken": "-",
}
"""The sign before a part that has a status."""
AHEAD = "○"


@dataclass(frozen=True)
class TextLine:
    """A line of the drawing, with the status that colours it; `current` where the process is now."""

    text: str
    status: str = ""
    current: bool = False
    indent: int = 0


def text_sketch(graph: Graph) -> Sketch:
    """Return the sketch of a definition for text: of a large workflow its levels, of a very large one a single part."""
    found = best_sketch(graph, gates=False)
    if not found.of_workflow or found.weight <= 3 * MOST:
        return found
    found = level_sketch(graph)
    return found if found.weight <= 3 * MOST else one_part_sketch(graph)


def text_lines(sketch: Sketch, states: Mapping[str, NodeState]) -> Iterator[TextLine]:
    """Yield the lines of a sketch.

    Args:
        sketch: the sketch to draw.
        states: the states of its parts; empty for a definition by itself.
    """
    leaving = group_by_key((line.source, line) for line in sketch.lines)
    labels = {part.id: part.label for part in sketch.parts}
    for part in sketch.steps():
        yield _head(part, states.get(part.id))
        ways = [line for line in leaving[part.id] if labels.get(line.target)]
        shown = ways[:WAYS_OUT]
        for place, line in enumerate(shown):
            last = place == len(ways) - 1
            yield TextLine(
                f"{'└' if last else '├'}─{_text(line)}▶ {labels[line.target]}", indent=2
            )
        if len(ways) > len(shown):
            yield TextLine(f"└─▶ and {len(ways) - len(shown)} more", indent=2)


def _head(part: Part, state: NodeState | None) -> TextLine:
    more = f" ({', '.join(part.detail)})" if part.detail else ""
    if state is None:
        return TextLine(f"{AHEAD} {part.label}{more}")
    classes = [one for one in state.classes if one in MARKS]
    status = classes[0].removeprefix("is-") if classes else ""
    said = state.title.removeprefix(f"{part.label}: ").removeprefix(part.label)
    told = f" · {said}" if said and (classes or state.part) else ""
    current = "is-current" in state.classes
    mark = MARKS.get(classes[0], AHEAD) if classes else AHEAD
    here = " ◀ now" if current else ""
    return TextLine(f"{mark} {part.label}{more}{told}{here}", status, current)


def _text(line: Line) -> str:
    words = " ".join(" ".join(line.label).split())
    if line.kind in ("error", "deadline", "repeat") and not words:
        words = line.kind
    return f" {words} ─" if words else "─"
