"""A sketch of a definition before its layout: parts, and lines between them.

In a process manager, parts are steps and lines are transitions. In a workflow, a part is a step, a group of steps, a
gate where branches part or meet, or one of the two terminals.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from monitoring.diagrams import words
from monitoring.diagrams.folding import (
    WAYS,
    Groups,
    chain_levels,
    fold,
    group_all,
    group_by_level,
)
from orchestrator.containers import group_by_key
from orchestrator.definition.graph import Edge, Graph, Node

FOLDED_ABOVE = 60
"""Steps of a workflow above which repetitions are folded."""

WITH_GATES = 120
"""Parts of a picture above which branches are drawn without gates."""

Gate = Literal["all", "some", "one"]
Shape = (
    Literal["step", "map", "wait", "ask", "sleep", "run", "group", "start", "end"]
    | Literal["final"]
    | Gate
)

GATES = get_args(Gate)

WIDTH = {"node": 18, "edge": 36}
"""Characters in a line of a label; wide (East Asian) characters count twice."""

START, END = "terminal:start", "terminal:end"
"""The ids of the parts where a workflow begins and ends; no step can have such a name."""

COMMANDS = 12
"""Lines for the commands of one transition at most."""


@dataclass(frozen=True)
class Part:
    """Something with a place. `members` are the steps it stands for; a gate or terminal stands for `edges` instead.

    A process manager's steps have the shapes "start", "step" and "final".

    `beside` is the text of a gate at its outgoing line: the branches that it waits for.
    """

    id: str
    shape: Shape
    label: str = ""
    detail: tuple[str, ...] = ()
    beside: str = ""
    undo: bool = False
    members: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()

    @property
    def is_step(self) -> bool:
        return bool(self.members)


@dataclass(frozen=True)
class Line:
    """A line between two parts; `edges` are the definition's edges that it stands for."""

    id: str
    source: str
    target: str
    kind: str
    label: tuple[str, ...] = ()
    edges: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sketch:
    """All parts and lines. `folded` says that some parts stand for several steps, `whole` how many steps there are."""

    parts: tuple[Part, ...]
    lines: tuple[Line, ...]
    whole: int
    folded: bool = False
    of_workflow: bool = True

    @property
    def weight(self) -> int:
        """A measure of how long its layout takes."""
        return len(self.parts) + len(self.lines)

    def steps(self) -> Iterator[Part]:
        """Return the parts that stand for steps."""
        return (part for part in self.parts if part.is_step)

    def loops(self) -> list[list[int]]:
        """Return the indices of lines from a part to itself, for parts with several."""
        found = group_by_key(
            (line.source, index)
            for index, line in enumerate(self.lines)
            if line.source == line.target and line.label
        )
        return [some for some in found.values() if len(some) > 1]

    def part_names(self) -> dict[str, str]:
        """Return the name of each part in DOT, by its id: n0 in a process manager, p0 in a workflow."""
        letter = "p" if self.of_workflow else "n"
        return {part.id: f"{letter}{index}" for index, part in enumerate(self.parts)}

    def line_names(self) -> list[str]:
        """Return the names of the lines in DOT: e0 in a process manager, l0 in a workflow."""
        letter = "l" if self.of_workflow else "e"
        return [f"{letter}{index}" for index in range(len(self.lines))]


def best_sketch(graph: Graph, *, gates: bool = True) -> Sketch:
    """Return the most detailed sketch that people can still read: a large definition has its repetitions folded.

    Args:
        graph: the definition.
        gates: whether a workflow that is not too large has gates.
    """
    if graph.kind != "workflow":
        return _manager_sketch(graph)
    groups = fold(graph) if len(graph.nodes) > FOLDED_ABOVE else {}
    parts = len(graph.nodes) - sum(len(some) - 1 for some in groups.values())
    return sketch_of(graph, groups, gates=gates and parts <= WITH_GATES)


def level_sketch(graph: Graph) -> Sketch:
    """Return a sketch of any workflow that is quick to make: one part for each level of steps."""
    groups = group_by_level(graph)
    return sketch_of(chain_levels(graph, groups), groups, gates=False)


def one_part_sketch(graph: Graph) -> Sketch:
    """Return the sketch of a workflow as a single part, without a look at its graph."""
    return sketch_of(graph, group_all(graph), gates=False)


def _manager_sketch(graph: Graph) -> Sketch:
    """Return the sketch of a process manager: every step and every transition as it is."""
    parts = (
        Part(node.id, node.kind, node.label, members=(node.id,)) for node in graph.nodes
    )
    lines = (
        Line(edge.id, edge.source, edge.target, edge.kind, _label_of(edge), (edge.id,))
        for edge in graph.edges
    )
    whole = len(graph.nodes)
    return Sketch(tuple(parts), tuple(lines), whole, of_workflow=False)


def _label_of(edge: Edge) -> tuple[str, ...]:
    """Return the label of a transition in UML order: event, [guard], / command, each on lines of its own.

    Of many commands it names the first, and the number of the others.
    """
    commands = [
        *edge.actions,
        *([words.notify_text(edge.notifies)] if edge.notifies else []),
        *([words.assign_text(edge.owner)] if edge.owner else []),
        *([words.escalate_text()] if edge.escalates else []),
    ]
    if len(commands) > COMMANDS:
        commands[COMMANDS - 1 :] = [words.more_text(len(commands) - COMMANDS + 1)]
    lines = wrap_label(words.phrase(edge.event), "edge")
    if edge.guard:
        lines += wrap_label(f"[{edge.guard}]", "edge")
    for index, command in enumerate(commands):
        lines += wrap_label(f"{'/ ' if index == 0 else '   '}{command}", "edge")
    return tuple(lines)


def sketch_of(graph: Graph, groups: Groups | None = None, gates: bool = True) -> Sketch:
    """Return the sketch of a workflow.

    Args:
        graph: the workflow.
        groups: steps that are drawn as one part.
        gates: whether to draw them; large pictures are clearer without.
    """
    return _WorkflowSketch(graph, groups or {}, gates).sketch()


class _WorkflowSketch:
    def __init__(self, graph: Graph, groups: Groups, gates: bool) -> None:
        self.graph, self.groups, self.gates = graph, groups, gates
        self.nodes = {node.id: node for node in graph.nodes}
        self.owner = {node.id: node.id for node in graph.nodes}
        self.owner |= {one: name for name, some in groups.items() for one in some}
        self.bundles = list(self._bundles())
        self.leaving = _lines_by(self.bundles, "source")
        self.entering = _lines_by(self.bundles, "target")

    def sketch(self) -> Sketch:
        parts = [self._part(name) for name in dict.fromkeys(self.owner.values())]
        extra = [*self._splits(), *self._joins()]
        gates = {part.id for part in extra}
        lines = [self._rerouted(line, gates) for line in self.bundles]
        for part in extra:
            side, _, name = part.id.partition(":")
            ends = (name, part.id) if side == "split" else (part.id, name)
            link = "from" if side == "split" else "into"
            said = (part.beside,) if part.beside else ()
            lines.append(Line(f"{link}:{name}", *ends, "flow", said, part.edges))
        around, outer = self._terminals(parts)
        every = (*around[:1], *parts, *extra, *around[1:])
        return Sketch(every, (*lines, *outer), len(self.graph.nodes), bool(self.groups))

    def _bundles(self) -> Iterator[Line]:
        """Yield lines between parts; edges between the same two groups become one line."""
        found: dict[tuple[str, str, str], list[Edge]] = defaultdict(list)
        for edge in self.graph.edges:
            source, target = self.owner[edge.source], self.owner[edge.target]
            if source != target or edge.source == edge.target:
                grouped = source in self.groups or target in self.groups
                found[source, target, "" if grouped else edge.id].append(edge)
        for (source, target, _), edges in found.items():
            kinds = {edge.kind for edge in edges}
            kind = kinds.pop() if len(kinds) == 1 else "flow"
            said = words.line_text(edges[0]) if len(edges) == 1 else ""
            label = tuple(wrap_label(said, "edge")) if said else ()
            ids = tuple(edge.id for edge in edges)
            yield Line(ids[0], source, target, kind, label, ids)

    def _part(self, name: str) -> Part:
        if name in self.groups:
            return _group_part(name, [self.nodes[one] for one in self.groups[name]])
        node = self.nodes[name]
        detail = [words.detail_of(node)] if node.detail else []
        if node.undo:
            detail.append(words.undo_text(node.undo))
        return Part(
            name,
            node.kind,
            node.label,
            tuple(detail),
            undo=bool(node.undo),
            members=(name,),
        )

    def _splits(self) -> Iterator[Part]:
        for name, lines in self.leaving.items():
            ways = [line for line in lines if line.kind in WAYS]
            loops = [line for line in lines if line.kind == "repeat"]
            if self.gates and (len(ways) > 1 or (ways and loops)):
                kind: Shape = "one" if loops else self._split_kind(name, ways)
                edges = _edges_of([*ways, *loops])
                yield Part(f"split:{name}", kind, edges=edges)

    def _split_kind(self, name: str, ways: Sequence[Line]) -> Shape:
        if all(line.kind == "flow" for line in ways):
            return "all"
        said = self.nodes[name].split if name in self.nodes else ""
        mixed = any(line.kind == "flow" for line in ways)
        return said or ("some" if mixed else "one")

    def _joins(self) -> Iterator[Part]:
        for name, lines in self.entering.items():
            ways = [line for line in lines if line.kind in WAYS]
            if self.gates and len(ways) > 1:
                join = self.nodes[name].join if name in self.nodes else ""
                kind, said = self._meeting(ways), words.join_text(join)
                yield Part(f"join:{name}", kind, beside=said, edges=_edges_of(ways))

    def _meeting(self, ways: Sequence[Line]) -> Shape:
        """Return the kind of a join: that of the split, if all its branches come from one split."""
        parted = {self._parting(line) for line in ways}
        if len(parted) > 1 or "" in parted:
            return "all"
        name = parted.pop()
        return self._split_kind(
            name, [line for line in self.leaving[name] if line.kind in WAYS]
        )

    def _parting(self, line: Line) -> str:
        """Return the part where the branch that ends with this line began; "" when it has several beginnings."""
        for _ in self.owner:
            leaving = [one for one in self.leaving[line.source] if one.kind in WAYS]
            if len(leaving) > 1:
                return line.source
            before = self.entering.get(line.source, [])
            if len(before) != 1 or before[0].kind == "repeat":
                return ""
            line = before[0]
        return ""

    def _rerouted(self, line: Line, gates: set[str]) -> Line:
        source, target = line.source, line.target
        if line.kind in (*WAYS, "repeat") and f"split:{source}" in gates:
            source = f"split:{source}"
        if line.kind in WAYS and f"join:{target}" in gates:
            target = f"join:{target}"
        return Line(line.id, source, target, line.kind, line.label, line.edges)

    def _terminals(self, parts: Sequence[Part]) -> tuple[list[Part], list[Line]]:
        began = [
            Line(f"enter:{part.id}", START, part.id, "flow", edges=ways)
            for part in parts
            if (ways := self._entries(part))
        ]
        ended = [
            Line(f"leave:{part.id}", part.id, END, "flow", edges=ways)
            for part in parts
            if not self._goes_on(part)
            for ways in [tuple(f"leave:{one}" for one in part.members)]
        ]
        terminals = [
            Part(START, "start", edges=_edges_of(began)),
            Part(END, "end", edges=_edges_of(ended)),
        ]
        return terminals, [*began, *ended]

    def _entries(self, part: Part) -> tuple[str, ...]:
        entries = (one for one in part.members if self.nodes[one].entry)
        return tuple(f"enter:{one}" for one in entries)

    def _goes_on(self, part: Part) -> bool:
        lines = self.leaving.get(part.id, [])
        return any(line.kind in (*WAYS, "repeat") for line in lines)


def _group_part(name: str, members: Sequence[Node]) -> Part:
    ids = tuple(node.id for node in members)
    kind, _, rest = name.partition(":")
    span = f"{members[0].label} … {members[-1].label}"
    label = words.levels_label(rest) if kind == "levels" else span
    detail = words.group_text(len(ids), kind)
    return Part(name, "group", label, (detail,), members=ids)


def _lines_by(lines: Sequence[Line], end: str) -> dict[str, list[Line]]:
    return dict(group_by_key((getattr(line, end), line) for line in lines))


def _edges_of(lines: Sequence[Line]) -> tuple[str, ...]:
    return tuple(edge for line in lines for edge in line.edges)


def wrap_label(text: str, kind: str) -> list[str]:
    """Return the text in lines that fit a node or an edge label.

    A word longer than a line is split at the words within it, and else between characters. Texts without spaces are
    split between characters, but not within a word in katakana or letters.
    """
    limit = WIDTH[kind]
    first = text[: len(text) - len(text.lstrip())]
    after = first + ("  " if first or kind == "edge" else "")
    lines, line = [], first
    for piece in _pieces(text.lstrip(), limit - len(after)):
        shown = piece.rstrip()
        if line.strip() and _width(line + shown) > limit:
            lines.append(line.rstrip())
            line = after
        line += piece
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


WORDS = re.compile(
    r"[\u30a0-\u30ff\uff66-\uff9f]+\s*"  # katakana
    r"|[\u3400-\u9fff\uf900-\ufaff]{1,4}[\u3040-\u309f]*[\u3001\u3002\uff09\u300d]*\s*"  # a few kanji, as they end
    r"|[\u2e80-\u303f\u3040-\u309f\u3100-\u33ff\uff00-\uff65\uffa0-\uffef]+\s*"
    r"|[^\s\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef]+\s*"
)
"""Pieces of a text, after each of which a line may end."""

HUMPS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[_./:-])(?=\w)")
"""The beginnings of the words within a name."""


def _pieces(text: str, limit: int) -> Iterator[str]:
    """Yield the text in pieces that fit a line."""
    for word in WORDS.findall(text):
        if _width(word.rstrip()) <= limit:
            yield word
            continue
        for part in HUMPS.split(word):
            most = limit // 2 if any(map(_wide, part)) else limit
            yield from (part[at : at + most] for at in range(0, len(part), most))


def _width(text: str) -> int:
    return sum(2 if _wide(char) else 1 for char in text)


def _wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"
