"""A compiled workflow: vertices with the links between them.

The engine resolves every link exactly once, as taken or as dead, and decides a vertex when its links are resolved:
dead-path elimination, after Leymann and Roller, Production Workflow (2000). So a branch that was not taken never blocks
a join. A plan may have tens of thousands of links. Slots, without frozen classes, quarter the time to make them.
"""

from __future__ import annotations

import types
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NoReturn

from orchestrator.definition import topology
from orchestrator.definition.annotations import MISSING
from orchestrator.definition.declarations.guards import Stored
from orchestrator.definition.messages import Event
from orchestrator.definition.workflow.conditions import holds, name_condition
from orchestrator.definition.workflow.rows import (
    Case,
    Each,
    ErrorTypes,
    FlowRow,
    Join,
    ResultPredicate,
)
from orchestrator.definition.workflow.rows import name as step_name
from orchestrator.definition.workflow.steps import Policy, Step
from orchestrator.exceptions import HandlerMissing, NoCase

LinkKind = Literal["flow", "case", "default", "repeat", "error", "deadline"]


@dataclass(eq=False, slots=True)
class Link:
    """A link from one vertex to another.

    `value` or `case` is the condition of a case. `error` are the errors that take an error link, `group` the vertices
    of its `catch`. `row` is the row that declares the link.
    """

    id: str
    source: str
    target: str
    kind: LinkKind = "flow"
    value: Any = None
    case: Case | None = None
    error: ErrorTypes | None = None
    group: tuple[str, ...] = ()
    row: FlowRow | Step | None = None

    @property
    def exceptional(self) -> bool:
        """Whether it replaces all other links of its source after a failure or a missed deadline."""
        return self.kind in ("error", "deadline")


@dataclass(eq=False, slots=True)
class Choice:
    """One row's choice among the links of a vertex, by its result.

    Without cases it takes all links. `on` names the compared field of the result. An `exclusive` choice takes the first
    link that fits.
    """

    links: tuple[Link, ...]
    on: str | None = None
    exclusive: bool = False
    default: Link | None = None
    row: str = ""

    @property
    def conditional(self) -> bool:
        """Whether the result decides which links are taken."""
        return any(link.kind == "case" for link in self.links)

    def taken(self, result: Any, step: str, form: Any) -> list[Link]:
        """Return the links that a result takes.

        Args:
            result: the result of the step.
            step: the name of the step, for the message.
            form: the type of the result.

        Raises:
            NoCase: no link of an exclusive choice fits.
            Exception: a predicate failed.
        """
        if not self.conditional:
            return list(self.links)
        found = []  # by no generator, which would raise another error for a StopIteration
        for link in self.links:
            if self._fits(link, result, form):
                found.append(link)
                if self.exclusive:
                    break  # it evaluates no further conditions
        if found:
            return found
        if self.default is not None:
            return [self.default]
        if self.exclusive:
            self.refuse(result, step, self.row)
        return []

    def refuse(self, result: Any, step: str, rows: str) -> NoReturn:
        """Refuse a result that takes no link of these rows.

        Raises:
            NoCase: always.
        """
        said = f": {self.on} = {self._value(result)!r:.200}" if self.on else ""
        raise NoCase(
            f"{rows}: no case fits what {step} gave{said}, and there is no otherwise"
        )

    def _fits(self, link: Link, result: Any, form: Any) -> bool:
        if link.kind != "case":
            return False
        if link.case is not None:
            return holds(link.case.predicate, result, form)
        try:
            value = self._value(result)
            several = isinstance(value, frozenset | set | list | tuple)
            if several and not self.exclusive:
                return link.value in value
            return bool(link.value == value)
        except BaseException as error:  # of the classes of the result and its field
            name_condition(error, self.row)
            raise

    def _value(self, result: Any) -> Any:
        """The compared field; the result itself if the name is empty."""
        return getattr(result, self.on, None) if self.on else result


@dataclass(eq=False, slots=True)
class Loop:
    """A repeated sequence. The link `back` begins another round; all other links leave the loop."""

    steps: tuple[str, ...]
    until: ResultPredicate
    at_most: int
    back: Link
    then: Link
    otherwise: Link | None
    row: str = ""

    @property
    def exits(self) -> list[Link]:
        """The links that leave the loop after its last step."""
        return [self.then, *([self.otherwise] if self.otherwise is not None else [])]

    def onward(self, result: Any, visit: int, form: Any) -> Link:
        """Return the link that the last step takes.

        Raises:
            NoCase: the last round did not meet the condition, and there is no `otherwise`.
            Exception: the predicate failed.
        """
        if holds(self.until, result, form):
            return self.then
        if visit < self.at_most:
            return self.back
        if self.otherwise is None:
            raise NoCase(f"{self.row}: still not so after {visit} visits")
        return self.otherwise


ArgumentSource = Literal[
    "result", "input", "whole_input", "context", "error", "item", "constant"
]


@dataclass(frozen=True)
class Binding:
    """A parameter and the source of its value; `name` is the vertex or the field of the input.

    `default` is the value if the vertex has no result, and the value of a constant.
    """

    parameter: str
    source: ArgumentSource
    name: str = ""
    default: Any = MISSING


@dataclass(eq=False)
class Vertex:
    """A step with its place in the graph.

    `ways_in` counts the links to it, without those back into loops. `row` is the first row that names it. `returns` is
    the result type of its function or sub-process. A `certain` vertex has its result in every process: no branch,
    failure or deadline passes it over.
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
    guard_bindings: tuple[Binding, ...] = ()
    """The sources of values that an event's fields must equal, by the fields' names."""
    catches: bool = False
    row: FlowRow | Step | None = None
    certain: bool = False

    @property
    def name(self) -> str:
        return self.step.name

    @property
    def needed(self) -> int | None:
        """The number of taken links that a join needs; None for all that were taken."""
        wait_for = self.join.wait_for if self.join is not None else "all"
        if wait_for == "all":
            return 1 if self.catches else None
        if wait_for == "every":
            return self.ways_in
        return 1 if wait_for == "any" else wait_for

    @property
    def result_type(self) -> Any:
        """The type of the step's result for later steps."""
        if self.step.kind == "wait":
            return self.step.event
        if self.step.kind == "ask":
            return self.step.choices
        return types.GenericAlias(list, self.returns) if self.each else self.returns

    @cached_property
    def undo_policy(self) -> Policy:
        """The policy of the step's undo function. A transactional step is undone in a transaction."""
        policy = self.undo.policy if self.undo is not None else Policy()
        if self.step.policy.transactional:
            return replace(policy, transactional=True)
        return policy

    @property
    def late(self) -> Link | None:
        """The link for a missed deadline, if there is one."""
        return next((x for x in self.exceptions if x.kind == "deadline"), None)

    @cached_property
    def decides(self) -> bool:
        """Whether its result decides on its links."""
        return self.ends_loop or any(choice.conditional for choice in self.choices)

    @property
    def ends_loop(self) -> bool:
        """Whether it is the last step of a loop."""
        return self.loop is not None and self.loop.steps[-1] == self.name

    @cached_property
    def links(self) -> tuple[Link, ...]:
        """Every link that leaves this vertex, except a loop's link back."""
        return (*self.regular, *self.exceptions)

    @cached_property
    def regular(self) -> tuple[Link, ...]:
        """The links for the case that the step is done."""
        chosen = [link for choice in self.choices for link in choice.links]
        if self.loop is not None and self.ends_loop:
            chosen += self.loop.exits
        return tuple(chosen)


@dataclass(eq=False)
class Plan:
    """A compiled workflow."""

    vertices: Mapping[str, Vertex]
    entries: tuple[str, ...]
    links: tuple[Link, ...]
    results: Mapping[str, str]
    """The name of a result -> its vertex."""
    ignored: tuple[type[Event], ...] = ()
    """The events that are ignored once no step waits for them any more."""

    _regions: dict[str, frozenset[str]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Vertex:
        try:
            return self.vertices[name]
        except KeyError:
            raise HandlerMissing(f"the running code has no step {name} now") from None

    def giver(self, source: object) -> str | None:
        """Return the vertex of a value, for a `stored` result name or a step; None if there is none."""
        if isinstance(source, Stored):
            return self.results.get(source.field)
        if isinstance(source, Step) or callable(source):
            found = step_name(source)
            return found if found in self.vertices else None
        return None

    @cached_property
    def undoable(self) -> frozenset[str]:
        """The vertices that can be undone."""
        return frozenset(v.name for v in self.vertices.values() if v.undo is not None)

    @cached_property
    def waits(self) -> bool:
        """Whether a step may wait for an event, a person, a sub-process or a time."""
        kinds = {vertex.step.kind for vertex in self.vertices.values()}
        return not kinds.isdisjoint(("wait", "ask", "run", "sleep"))

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
        """The joins that cancel their branches when one of these fails for good."""
        return tuple(
            vertex.name
            for vertex in self.vertices.values()
            if vertex.join is not None and vertex.join.on_failure == "fail_fast"
        )

    def closed_by(self, group: Sequence[str]) -> list[str]:
        """Return the vertices where the branches of a caught group come together."""
        targets = {link.target for name in group for link in self[name].regular}
        return sorted(t for t in targets if self.closes(t, group))

    def closes(self, name: str, group: Collection[str]) -> bool:
        """Return whether a vertex has several incoming links, all unconditional and from this group."""
        incoming = self.incoming[name]
        return len(incoming) > 1 and all(
            link.kind == "flow" and link.source in group for link in incoming
        )

    @cached_property
    def order(self) -> list[str]:
        """The vertices in topological order, without those of a cycle and their successors."""
        return topology.topological_order(self.following)

    @cached_property
    def following(self) -> Mapping[str, Sequence[str]]:
        """The target of each link, by its source."""
        return {n: [x.target for x in v.links] for n, v in self.vertices.items()}

    @cached_property
    def leading(self) -> Mapping[str, Sequence[str]]:
        """The source of each link, by its target."""
        return {name: [x.source for x in ways] for name, ways in self.incoming.items()}

    @cached_property
    def dominators(self) -> Mapping[str, str]:
        """The immediate dominator of each vertex; "" if there is none."""
        return topology.dominators(self.leading, self.order)

    def region(self, join: str) -> frozenset[str]:
        """Return the vertices that a join cancels when it no longer waits: those that lead only to it."""
        if join not in self._regions:
            self._regions[join] = self._region(join)
        return self._regions[join]

    def _region(self, join: str) -> frozenset[str]:
        found: set[str] = set()
        open_ways: dict[str, int] = {}
        shared = self.dominators[join]
        waiting = [link.source for link in self.incoming[join] if not link.exceptional]
        while waiting:
            name = waiting.pop()
            left = open_ways.get(name, len(self[name].regular)) - 1
            open_ways[name] = left
            if left == 0 and name != shared:
                found.add(name)
                ways = self.incoming[name]
                waiting += [link.source for link in ways if not link.exceptional]
        return frozenset(found)

    @cached_property
    def cancelling(self) -> Mapping[str, tuple[str, ...]]:
        """Vertex -> the joins that cancel it when they start."""
        found: dict[str, tuple[str, ...]] = {}
        for vertex in self.vertices.values():
            if vertex.join is not None and vertex.join.rest == "cancel":
                for name in self.region(vertex.name):
                    found[name] = (*found.get(name, ()), vertex.name)
        return found

    def ends(self) -> list[str]:
        """Return the vertices without regular links. Their results are the process's result."""
        return [name for name, vertex in self.vertices.items() if not vertex.regular]
