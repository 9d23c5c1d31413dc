"""Vertices and links, made as rows name them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from orchestrator.definition.invalid import invalid
from orchestrator.definition.words import name_of
from orchestrator.definition.workflow import step_rules
from orchestrator.definition.workflow.plan import Choice, Link, LinkKind, Vertex
from orchestrator.definition.workflow.rows import FlowRow
from orchestrator.definition.workflow.steps import (
    Policy,
    Step,
    StepLike,
    step_of,
)


class Assembly:
    """The vertices and links of one workflow so far.

    Args:
        definition: the name of the class, for messages.
    """

    def __init__(self, definition: str) -> None:
        self.definition = definition
        self.vertices: dict[str, Vertex] = {}
        self.links: list[Link] = []
        self.ways: dict[tuple[str, str], bool] = {}
        """Who leads to whom when all goes well, and whether always."""
        self.row: FlowRow | Step | None = None
        """The row that is being read."""
        self._text = ""

    def at(self, row: FlowRow | Step | None) -> None:
        """Goes on with a row."""
        self.row, self._text = row, ""

    @property
    def said(self) -> str:
        """The row as it reads."""
        self._text = self._text or str(self.row)
        return self._text

    def vertex(self, value: StepLike) -> Vertex:
        """The vertex of a step; the first mention makes it, an object with a policy outranks a bare function."""
        name = value.name if isinstance(value, Step) else name_of(value)
        known = self.vertices.get(name)
        if known is None:
            return self._new(step_of(value))
        if known.step is not value and known.step.function is not value:
            step = step_of(value)
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
            if reason := step_rules.not_a_step(step.late):
                self.invalid(reason)
            late = self.vertex(step.late)
            made.exceptions.append(self.link(made, late, "deadline"))
        return made

    def _check(self, step: Step) -> None:
        for reason in step_rules.reasons(step):
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
        invalid(self.definition, self.row, reason)

    def choose(self, vertex: Vertex, links: Sequence[Link], **more: Any) -> None:
        vertex.choices.append(Choice(tuple(links), row=self.said, **more))

    def connect(self, source: Vertex, targets: Iterable[StepLike]) -> None:
        """Ways that are always taken. One that another row has written already is the same way."""
        links = [
            self.link(source, target)
            for target in map(self.vertex, targets)
            if not self.ways.get((source.name, target.name))
        ]
        if links:
            self.choose(source, links)


def _same(one: Step, other: Step) -> bool:
    """Whether two mentions mean one step: the same function, and at most one of them with a policy of its own."""
    if one.function is None or one.function is not other.function:
        return False
    return _bare(one) or _bare(other)


def _bare(step: Step) -> bool:
    return not step.gives and step.policy == Policy()
