"""Compilation of rows to a plan. `row_rules` and `step_rules` check rows and steps; other modules check the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import isfunction
from itertools import pairwise
from typing import Any, NoReturn

from orchestrator.definition.declarations.transition_rows import TransitionRow
from orchestrator.definition.labels import name_of
from orchestrator.definition.messages import Event
from orchestrator.definition.refusals import refuse, refuse_row
from orchestrator.definition.workflow.plan import (
    Choice,
    Link,
    LinkKind,
    Loop,
    Plan,
    Vertex,
)
from orchestrator.definition.workflow.rows import (
    Case,
    Catch,
    Each,
    FlowRow,
    Fork,
    Join,
    Needs,
    Repeat,
    Route,
    Start,
    Then,
    Undo,
)
from orchestrator.definition.workflow.steps import Policy, Step, StepLike, as_step
from orchestrator.definition.workflow.validation import row_rules, step_rules
from orchestrator.definition.workflow.validation.branching import broken_branching
from orchestrator.definition.workflow.validation.parameters import bind_parameters
from orchestrator.definition.workflow.validation.signatures import read_returns
from orchestrator.definition.workflow.validation.structure import broken_structure


class Compilation:
    """The compilation of one workflow: vertices and links, row by row.

    Args:
        definition: the name of the class, for messages.
        form: its Input.
    """

    def __init__(self, definition: str, form: type[Any]) -> None:
        self.definition, self.form = definition, form
        self.vertices: dict[str, Vertex] = {}
        self.links: list[Link] = []
        self.ways: dict[tuple[str, str], bool] = {}
        """(source, target) of each link but for failures -> whether it is unconditional."""
        self.row: FlowRow | Step | None = None
        """The current row."""
        self._text = ""
        self.started: list[str] = []
        self.ignored: dict[type[Event], None] = {}
        self._gathering: list[Join | Needs] = []

    def of(self, rows: Iterable[FlowRow | StepLike]) -> Plan:
        if isinstance(rows, FlowRow | TransitionRow | Step) or not isinstance(
            rows, Iterable
        ):
            self.invalid("flow holds rows: flow = (then(...), ...)")
        for row in rows:
            self._add(row)
        for gathering in self._gathering:
            self.at(gathering)
            self._gather(gathering)
        self.at(None)
        plan = Plan(
            self.vertices,
            self._entries(),
            tuple(self.links),
            self._results(),
            tuple(self.ignored),
        )
        refuse(self.definition, broken_structure(plan))
        read_returns(self.definition, plan)
        refuse(self.definition, broken_branching(plan))
        bind_parameters(self.definition, plan, self.form)
        return plan

    def _add(self, row: Any) -> None:
        if isfunction(row):
            row = as_step(row)
        self.at(row)
        if isinstance(row, Step):
            self.vertex(row)
        elif type(row) not in KINDS:
            self.invalid("it is not a row")
        else:
            for reason in row_rules.row_mistakes(row):
                self.invalid(reason)
            KINDS[type(row)](self, row)

    def _start(self, row: Start) -> None:
        self.started += [self.vertex(step).name for step in row.steps]

    def _then(self, row: Then) -> None:
        self._sequence(row.steps)

    def _sequence(self, steps: Sequence[StepLike]) -> None:
        for one, following in pairwise(map(self.vertex, steps)):
            self.connect(one, [following])

    def _needs(self, row: Needs) -> None:
        self._gathering.append(row)
        for step in (*row.needed, row.step):
            self.vertex(step)

    def _join(self, row: Join) -> None:
        self._gathering.append(row)
        for step in (*row.steps, row.into):
            target = self.vertex(step)
        if target.join is not None:
            self.invalid(f"{target.name} has a join already")
        target.join = row

    def _gather(self, row: Join | Needs) -> None:
        """Connect the steps of a join, except those that another row, such as a route or a loop, has connected."""
        if isinstance(row, Join):
            into, steps = row.into, row.steps
        else:
            into, steps = row.step, row.needed
        target = self.vertex(into)
        for source in map(self.vertex, steps):
            if (source.name, target.name) not in self.ways:
                self.connect(source, [target])

    def _fork(self, row: Fork) -> None:
        source = self.vertex(row.step)
        if isinstance(row.into, Mapping):
            self._cases(source, row.into, row, exclusive=False)
            return
        always = [step for step in row.into if not isinstance(step, Case)]
        self.connect(source, map(self.vertex, always))
        if cases := [step for step in row.into if isinstance(step, Case)]:
            self._cases(source, cases, row, exclusive=False)

    def _route(self, row: Route) -> None:
        ranked = sorted(row.cases, key=lambda one: -one.priority)
        cases = ranked if row.to is None else row.to
        self._cases(self.vertex(row.step), cases, row, exclusive=True)

    def _cases(
        self,
        source: Vertex,
        cases: Mapping[Any, StepLike] | Sequence[Case],
        row: Fork | Route,
        *,
        exclusive: bool,
    ) -> None:
        """Make a branch for each value of a field, or for each condition, and the default branch."""
        if isinstance(cases, Mapping):
            links = [
                self.link(source, self.vertex(target), "case", value=value)
                for value, target in cases.items()
            ]
        else:
            links = [
                self.link(source, self.vertex(case.to), "case", case=case)
                for case in cases
            ]
        default = None
        if row.otherwise is not None:
            default = self.link(source, self.vertex(row.otherwise), "default")
            links.append(default)
        self.choose(source, links, on=row.on, exclusive=exclusive, default=default)

    def _each(self, row: Each) -> None:
        source, done = self.vertex(row.step), self.vertex(row.do)
        if done.each is not None:
            self.invalid(f"{done.name} is used by two maps; give one another name")
        done.each = row
        self.connect(source, [done])
        self.connect(done, [self.vertex(row.into)])

    def _repeat(self, row: Repeat) -> None:
        body = [self.vertex(step) for step in row.steps]
        for vertex in body:
            if vertex.loop is not None:
                self.invalid(f"{vertex.name} is in two loops; make the inner one a run")
        self._sequence(row.steps)
        first, last = body[0], body[-1]
        loop = Loop(
            tuple(vertex.name for vertex in body),
            row.until,
            row.at_most,
            self.link(last, first, "repeat"),
            self.link(last, self.vertex(row.then), "case"),
            self.link(last, self.vertex(row.otherwise), "default")
            if row.otherwise is not None
            else None,
            self.said,
        )
        for vertex in body:
            vertex.loop = loop

    def _catch(self, row: Catch) -> None:
        group = tuple(self.vertex(step).name for step in row.steps)
        target = self.vertex(row.to)
        target.catches = True
        for name in group:
            source = self.vertices[name]
            source.exceptions.append(
                self.link(source, target, "error", error=row.error, group=group)
            )

    def _undo(self, row: Undo) -> None:
        vertex = self.vertex(row.step)
        if vertex.undo is not None:
            self.invalid(f"{vertex.name} is undone twice")
        vertex.undo = as_step(row.by)
        self._check(vertex.undo)

    def _ignore(self, row: TransitionRow) -> None:
        if row.event is not None:
            self.ignored[row.event] = None

    # Vertices and links

    def at(self, row: FlowRow | Step | None) -> None:
        """Set the current row."""
        self.row, self._text = row, ""

    @property
    def said(self) -> str:
        """The text of the current row."""
        self._text = self._text or str(self.row)
        return self._text

    def vertex(self, value: StepLike) -> Vertex:
        """Return the vertex of a step, made at its first mention. A step with a policy replaces a bare function."""
        name = value.name if isinstance(value, Step) else name_of(value)
        known = self.vertices.get(name)
        if known is None:
            return self._new(as_step(value))
        if known.step is not value and known.step.function is not value:
            step = as_step(value)
            if not _same(known.step, step):
                self.invalid(f"two steps are called {name}; give one another name")
            if _bare(known.step):
                self._check(step)
                known.step = step
        return known

    def _new(self, step: Step) -> Vertex:
        self._check(step)
        made = self.vertices[step.name] = Vertex(step, row=self.row)
        if step.late is not None:
            if reason := step_rules.why_no_step(step.late):
                self.invalid(reason)
            late = self.vertex(step.late)
            made.exceptions.append(self.link(made, late, "deadline"))
        return made

    def _check(self, step: Step) -> None:
        for reason in step_rules.step_mistakes(step):
            self.invalid(f"{step.name}: {reason}")

    def link(
        self, source: Vertex, target: Vertex, kind: LinkKind = "flow", **more: Any
    ) -> Link:
        number = f"e{len(self.links)}"
        link = Link(number, source.name, target.name, kind, row=self.row, **more)
        self.links.append(link)
        if kind != "repeat":
            target.ways_in += 1
        if kind in ("flow", "case", "default"):
            always = self.ways.setdefault((source.name, target.name), kind == "flow")
            if always != (kind == "flow"):
                self.invalid(
                    f"{source.name} leads to {target.name} both always and on a condition"
                )
        return link

    def invalid(self, reason: str) -> NoReturn:
        refuse_row(self.definition, self.row, reason)

    def choose(self, vertex: Vertex, links: Sequence[Link], **more: Any) -> None:
        vertex.choices.append(Choice(tuple(links), row=self.said, **more))

    def connect(self, source: Vertex, targets: Iterable[Vertex]) -> None:
        """Make unconditional links, unless another row has made them."""
        links = [
            self.link(source, target)
            for target in targets
            if not self.ways.get((source.name, target.name))
        ]
        if links:
            self.choose(source, links)

    # The whole

    def _entries(self) -> tuple[str, ...]:
        if self.started:
            return tuple(dict.fromkeys(self.started))
        return tuple(name for name, v in self.vertices.items() if v.ways_in == 0)

    def _results(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for vertex in self.vertices.values():
            name = vertex.step.result_name
            if name in found:
                self.invalid(f"{found[name]} and {vertex.name} both give {name}")
            found[name] = vertex.name
        return found


def _same(one: Step, other: Step) -> bool:
    """Return whether two steps are the same step: same function, and at most one of them has a policy."""
    if one.function is None or one.function is not other.function:
        return False
    return _bare(one) or _bare(other)


def _bare(step: Step) -> bool:
    plain = not (step.gives or step.args or step.optional)
    return plain and step.policy == Policy()


KINDS: dict[type[FlowRow | TransitionRow], Callable[[Compilation, Any], None]] = {
    Start: Compilation._start,
    Then: Compilation._then,
    Needs: Compilation._needs,
    Join: Compilation._join,
    Fork: Compilation._fork,
    Route: Compilation._route,
    Each: Compilation._each,
    Repeat: Compilation._repeat,
    Catch: Compilation._catch,
    Undo: Compilation._undo,
    TransitionRow: Compilation._ignore,
}
