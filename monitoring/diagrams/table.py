"""The state transition table of a graph: rows are steps, columns are events and deadlines."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from orchestrator.definition.graph import Disposition, Edge, Graph, Node

Said = Literal["ignored", "rejected", "parked"]


@dataclass(frozen=True)
class Cell:
    """The possible moves of an event in a step: each edge with the label of its target.

    `otherwise` has the dispositions of events that take no edge, each with its guard; without any, events are parked.
    """

    column: str
    moves: tuple[tuple[Edge, str], ...]
    otherwise: tuple[tuple[str, Said], ...] = ()

    @property
    def empty(self) -> bool:
        return not (self.moves or self.otherwise)


@dataclass(frozen=True)
class TransitionTable:
    """Columns, and for each step its cells in the order of the columns. A final step has no row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Node, tuple[Cell, ...]], ...]

    def as_text(self) -> str:
        """Return the table in Markdown, with a legend for its empty cells."""
        lines = [
            [node.label, *("<br>".join(_entries(cell)) for cell in cells)]
            for node, cells in self.rows
        ]
        return f"{_markdown(['step', *self.columns], lines)}\n{LEGEND}\n"


LEGEND = (
    "ignored: logged, changes nothing; rejected: an incident at once. An event whose cell is empty is parked:\n"
    "kept as long as the process lives, offered in a step that lists it, and an incident once its patience is over."
)


def transition_table(graph: Graph) -> TransitionTable:
    """Return the table of a graph: the same edges as the picture, and the events that a step ignores or rejects."""
    said: list[Edge | Disposition] = [*graph.edges, *graph.dispositions]
    columns = tuple(dict.fromkeys(one.event for one in said))
    labels = {node.id: node.label for node in graph.nodes}
    rows = []
    for node in graph.nodes:
        leaving = [edge for edge in graph.edges if edge.source == node.id]
        if leaving or node.kind != "final":
            others = [one for one in graph.dispositions if one.step == node.id]
            cells = (_cell(column, leaving, others, labels) for column in columns)
            rows.append((node, tuple(cells)))
    return TransitionTable(columns, tuple(rows))


def steps_as_text(graph: Graph) -> str:
    """Return a workflow's steps in Markdown, each with its kind and its next steps."""
    labels = {node.id: node.label for node in graph.nodes}
    lines = []
    for node in graph.nodes:
        onward = [
            f"{_way(edge)}→ {labels[edge.target]}"
            for edge in graph.edges
            if edge.source == node.id
        ]
        about = f"{node.kind}: {node.detail}" if node.detail else node.kind
        undo = f", undone by {node.undo}" if node.undo else ""
        lines.append([node.label, about + undo, "<br>".join(onward) or "the end"])
    return _markdown(["step", "kind", "leads to"], lines)


def _way(edge: Edge) -> str:
    said = edge.guard or (f"{edge.kind} {edge.event}" if edge.event else "")
    return f"[{said}] " if said else ""


def _cell(
    column: str,
    leaving: Sequence[Edge],
    others: Sequence[Disposition],
    labels: dict[str, str],
) -> Cell:
    moves = ((edge, labels[edge.target]) for edge in leaving if edge.event == column)
    said = ((one.guard, SAID[one.kind]) for one in others if one.event == column)
    return Cell(column, tuple(moves), tuple(said))


SAID: dict[str, Said] = {"ignore": "ignored", "reject": "rejected", "park": "parked"}


def _entries(cell: Cell) -> list[str]:
    moves = [_move_text(move) for move in cell.moves]
    others = [f"[{guard}] {said}" if guard else said for guard, said in cell.otherwise]
    return [*moves, *others]


def _move_text(move: tuple[Edge, str]) -> str:
    edge, target = move
    guard = f"[{edge.guard}] " if edge.guard else ""
    more = [f"notify {', '.join(edge.notifies)}"] if edge.notifies else []
    more += [f"assign to {edge.owner}"] if edge.owner else []
    more += ["escalate"] if edge.escalates else []
    commands = ", ".join([*edge.actions, *more])
    return f"{guard}{'/ ' + commands + ' ' if commands else ''}→ {target}"


def _markdown(head: list[str], lines: list[list[str]]) -> str:
    every = [head, ["---"] * len(head), *lines]
    return "".join(f"| {' | '.join(map(_cell_text, line))} |\n" for line in every)


def _cell_text(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
