"""A workflow's rows compiled: vertices with their ways in and out, what the pure core and the engine read.

Every link is resolved exactly once, as taken or as dead, and a vertex is decided when its links are: dead-path
elimination, after Leymann and Roller, Production Workflow (2000). So a branch that was not taken never blocks a join.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from orchestrator.definition.workflow import regions
from orchestrator.definition.workflow.binding import Binding
from orchestrator.definition.workflow.rows import Case, Each, Join, Predicate, Row
from orchestrator.definition.workflow.steps import Policy, Step

LinkKind = Literal["flow", "case", "default", "repeat", "error", "deadline"]


@dataclass(frozen=True, eq=False)
class Link:
    """A way from one vertex to another.

    `value` or `case` say when a case is taken; `error` which errors take an error link, and `group` which vertices are
    cancelled then. `row` is where it is written.
    """

    id: str
    source: str
    target: str
    kind: LinkKind = "flow"
    value: Any = None
    case: Case | None = None
    error: type[BaseException] | None = None
    group: tuple[str, ...] = ()
    row: Row | Step | None = None

    @property
    def exceptional(self) -> bool:
        """Whether it is taken instead of all others, when its source fails or is late."""
        return self.kind in ("error", "deadline")


@dataclass(frozen=True, eq=False)
class Choice:
    """What one row makes of a vertex's result: which of its links are taken.

    Without cases all are. `on` names the field of the result that is compared; `exclusive` takes the first that fits.
    """

    links: tuple[Link, ...]
    on: str | None = None
    exclusive: bool = False
    default: Link | None = None
    row: str = ""

    @property
    def conditional(self) -> bool:
        """Whether it depends on the result which links are taken."""
        return any(link.kind == "case" for link in self.links)


@dataclass(frozen=True, eq=False)
class Loop:
    """A sequence that is repeated: `back` begins another visit, all other links leave it."""

    steps: tuple[str, ...]
    until: Predicate
    at_most: int
    back: Link
    then: Link
    otherwise: Link | None
    row: str = ""

    @property
    def exits(self) -> list[Link]:
        """The ways on from its last step."""
        return [self.then, *([self.otherwise] if self.otherwise is not None else [])]


@dataclass(eq=False)
class Vertex:
    """A step with its place in the graph.

    `ways_in` counts the links that lead to it, without those of loops; `row` is where it is first named; `returns` is
    the type of what its function or sub-process gives; `certain` tells that no branch, failure or deadline passes it
    over.
    """

    step: Step
    choices: list[Choice] = field(default_factory=list)
    exceptions: list[Link] = field(default_factory=list)
    ways_in: int = 0
    join: Join | None = None
    each: Each | None = None
    loop: Loop | None = None
    bindings: tuple[Binding, ...] = ()
    returns: Any = None
    undo: Step | None = None
    undo_bindings: tuple[Binding, ...] = ()
    catches: bool = False
    row: Row | Step | None = None
    certain: bool = False

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def needed(self) -> int | None:
        """How many taken links are enough; None for all that were taken."""
        if self.join is None or self.join.wait_for == "all":
            return 1 if self.catches else None
        return 1 if self.join.wait_for == "any" else self.join.wait_for

    @property
    def result_type(self) -> Any:
        """The type in which later steps get this step's result."""
        if self.step.kind == "wait":
            return self.step.event
        if self.step.kind == "ask":
            return self.step.choices
        return types.GenericAlias(list, self.returns) if self.each else self.returns

    @cached_property
    def undo_policy(self) -> Policy:
        """How what undoes the step is run; what was done in a transaction is undone in one."""
        policy = self.undo.policy if self.undo is not None else Policy()
        if self.step.policy.transactional:
            return replace(policy, transactional=True)
        return policy

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Every link that leaves this vertex, but for a loop's way back."""
        return (*self.regular, *self.exceptions)

    @cached_property
    def regular(self) -> tuple[Link, ...]:
        """The links that leave it when it is done."""
        chosen = [link for choice in self.choices for link in choice.links]
        if self.loop is not None and self.loop.steps[-1] == self.name:
            chosen += self.loop.exits
        return tuple(chosen)


@dataclass(eq=False)
class Plan:
    """A compiled workflow."""

    vertices: Mapping[str, Vertex]
    entries: tuple[str, ...]
    links: tuple[Link, ...]
    results: Mapping[str, str]
    """The name of a result -> the vertex that gives it."""

    def __getitem__(self, name: str) -> Vertex:
        return self.vertices[name]

    @cached_property
    def undoable(self) -> frozenset[str]:
        """The vertices that have something to undo them."""
        return frozenset(v.name for v in self.vertices.values() if v.undo is not None)

    @cached_property
    def waits(self) -> bool:
        """Whether a step may wait for something outside."""
        kinds = {vertex.step.kind for vertex in self.vertices.values()}
        return not kinds.isdisjoint(("wait", "ask", "run"))

    @cached_property
    def incoming(self) -> Mapping[str, Sequence[Link]]:
        """The links that lead to each vertex, without those of loops."""
        found: dict[str, list[Link]] = {name: [] for name in self.vertices}
        for link in self.links:
            if link.kind != "repeat":
                found[link.target].append(link)
        return found

    @cached_property
    def failing_fast(self) -> tuple[str, ...]:
        """The joins whose branches are cancelled when one of them fails for good."""
        return tuple(
            vertex.name
            for vertex in self.vertices.values()
            if vertex.join is not None and vertex.join.on_failure == "fail_fast"
        )

    def closed_by(self, group: Sequence[str]) -> list[str]:
        """The vertices to which only these lead, and not only one of them: where a caught group comes together."""
        targets = {link.target for name in group for link in self[name].regular}
        return sorted(t for t in targets if self.closes(t, group))

    def closes(self, name: str, group: Collection[str]) -> bool:
        """Whether all ways to a vertex, more than one, always come from these steps."""
        incoming = self.incoming[name]
        return len(incoming) > 1 and all(
            link.kind == "flow" and link.source in group for link in incoming
        )

    def region(self, join: str) -> frozenset[str]:
        """What is given up when a join no longer waits: the vertices of its branches that lead nowhere else."""
        if join not in self._regions:
            self._regions[join] = regions.region(self, join)
        return self._regions[join]

    @cached_property
    def _regions(self) -> dict[str, frozenset[str]]:
        return {}

    @cached_property
    def dominators(self) -> Mapping[str, str]:
        """The last step that every way to each vertex passes through; "" when there is none."""
        return regions.dominators(self)

    @cached_property
    def cancelling(self) -> Mapping[str, tuple[str, ...]]:
        """The joins that give a vertex up when they start, by the vertex."""
        return regions.cancelling(self)

    def ends(self) -> list[str]:
        """The vertices that nothing follows unless they fail: their results are the process's."""
        return [name for name, vertex in self.vertices.items() if not vertex.regular]
