"""From a workflow's graph to its sketch: gates where branches part or meet, a start dot, an end ring."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from monitoring.diagrams import words
from monitoring.diagrams.dot import wrapped
from monitoring.diagrams.sketch import Line, Part, Shape, Sketch
from orchestrator.definition.graph import Edge, Graph, Node

WAYS = ("flow", "case", "default")
"""Kinds of edges that branches part and meet along; the others leave and enter a step directly."""

Groups = Mapping[str, tuple[str, ...]]
"""Group id -> the steps that it stands for."""


def sketch_of(graph: Graph, groups: Groups | None = None, gates: bool = True) -> Sketch:
    """The sketch of a workflow.

    Args:
        graph: the workflow.
        groups: steps that are drawn as one part.
        gates: whether to draw them; large pictures are clearer without.
    """
    return _Sketching(graph, groups or {}, gates).sketch()


class _Sketching:
    def __init__(self, graph: Graph, groups: Groups, gates: bool) -> None:
        self.graph, self.groups, self.gates = graph, groups, gates
        self.nodes = {node.id: node for node in graph.nodes}
        self.owner = {node.id: node.id for node in graph.nodes}
        self.owner |= {one: name for name, some in groups.items() for one in some}
        self.bundles = list(self._bundles())
        self.leaving = _by(self.bundles, "source")
        self.entering = _by(self.bundles, "target")

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
        """Edges as lines between parts; those between the same two groups are one line."""
        found: dict[tuple[str, str, str], list[Edge]] = defaultdict(list)
        for edge in self.graph.edges:
            source, target = self.owner[edge.source], self.owner[edge.target]
            if source != target or edge.source == edge.target:
                grouped = source in self.groups or target in self.groups
                found[source, target, "" if grouped else edge.id].append(edge)
        for (source, target, _), edges in found.items():
            kinds = {edge.kind for edge in edges}
            kind = kinds.pop() if len(kinds) == 1 else "flow"
            label = tuple(line_label(edges[0])) if len(edges) == 1 else ()
            ids = tuple(edge.id for edge in edges)
            yield Line(ids[0], source, target, kind, label, ids)

    def _part(self, name: str) -> Part:
        if name in self.groups:
            return _group_part(name, [self.nodes[one] for one in self.groups[name]])
        node = self.nodes[name]
        shape: Shape = node.kind if node.kind in SHAPES else "step"  # type: ignore[assignment]  # checked by `in`
        detail = [node.detail] if node.detail else []
        if node.undo:
            detail.append(words.undone_by(node.undo))
        return Part(
            name,
            shape,
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
                edges = _edges([*ways, *loops])
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
                kind, said = self._meeting(ways), words.needed(join)
                yield Part(f"join:{name}", kind, beside=said, edges=_edges(ways))

    def _meeting(self, ways: Sequence[Line]) -> Shape:
        """What a meeting of branches waits for: as they parted, when all of them parted at the same place."""
        parted = {self._parting(line) for line in ways}
        if len(parted) > 1 or "" in parted:
            return "all"
        name = parted.pop()
        return self._split_kind(
            name, [line for line in self.leaving[name] if line.kind in WAYS]
        )

    def _parting(self, line: Line) -> str:
        """The part where the branch that ends with this line began; "" when it has several beginnings."""
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
            Line(f"enter:{part.id}", "start", part.id, "flow", edges=ways)
            for part in parts
            if (ways := self._entries(part))
        ]
        ended = [
            Line(f"leave:{part.id}", part.id, "end", "flow", edges=ways)
            for part in parts
            if not self._goes_on(part)
            for ways in [tuple(f"leave:{one}" for one in part.members)]
        ]
        terminals = [
            Part("start", "start", edges=_edges(began)),
            Part("end", "end", edges=_edges(ended)),
        ]
        return terminals, [*began, *ended]

    def _entries(self, part: Part) -> tuple[str, ...]:
        entries = (one for one in part.members if self.nodes[one].entry)
        return tuple(f"enter:{one}" for one in entries)

    def _goes_on(self, part: Part) -> bool:
        lines = self.leaving.get(part.id, [])
        return any(line.kind in (*WAYS, "repeat") for line in lines)


SHAPES = ("step", "map", "wait", "ask", "run")


def line_label(edge: Edge) -> list[str]:
    """The label of a workflow's edge."""
    text = words.line_text(edge)
    return wrapped(text, "edge") if text else []


def _group_part(name: str, members: Sequence[Node]) -> Part:
    ids = tuple(node.id for node in members)
    kind, _, rest = name.partition(":")
    span = f"{members[0].label} … {members[-1].label}"
    label = words.levels(rest) if kind == "levels" else span
    detail = words.how_many(len(ids), kind)
    return Part(name, "group", label, (detail,), members=ids)


def _by(lines: Sequence[Line], end: str) -> dict[str, list[Line]]:
    found: dict[str, list[Line]] = defaultdict(list)
    for line in lines:
        found[getattr(line, end)].append(line)
    return dict(found)


def _edges(lines: Sequence[Line]) -> tuple[str, ...]:
    return tuple(edge for line in lines for edge in line.edges)
