"""What the graph must be: every step can be reached, nothing leads back but loops, and rows do not cross each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from orchestrator.definition.workflow.order import cycle, named, ordered
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.refusal import refuse
from orchestrator.definition.workflow.rows import name


def check_structure(definition: str, plan: Plan) -> list[str]:
    """Checks how the vertices are connected; returns them in an order in which each comes after all that lead to it.

    Raises:
        InvalidDefinition: naming the row and the reason.
    """
    return _Structure(definition, plan).check()


class _Structure:
    def __init__(self, definition: str, plan: Plan) -> None:
        self.definition, self.plan = definition, plan

    def check(self) -> list[str]:
        if not self.plan.vertices:
            self.refuse(None, "the flow has no steps")
        order = ordered(self.plan)
        found = cycle(self.plan, order)
        if found:
            self.refuse(
                found[-1].row,
                f"steps wait for each other: {named(found)}; write repeat(...) for a loop",
            )
        for vertex in self.plan.vertices.values():
            for rule in RULES:
                rule(self, vertex)
        self._check_reach()
        return order

    def refuse(self, row: object, reason: str) -> NoReturn:
        refuse(self.definition, row, reason)

    def _check_reach(self) -> None:
        """Every step must follow, over any number of others, from one that starts."""
        for entry in self.plan.entries:
            if self.plan[entry].ways_in:
                (link, *_) = self.plan.incoming[entry]
                reason = f"{entry} starts, so {link.source} cannot lead to it"
                self.refuse(link.row, reason)
        reached = set(self.plan.entries)
        waiting = list(reached)
        while waiting:
            targets = {link.target for link in self.plan[waiting.pop()].links}
            waiting += targets - reached
            reached |= targets
        for vertex in self.plan.vertices.values():
            if vertex.name not in reached:
                self.refuse(vertex.row, f"nothing leads from start to {vertex.name}")

    def _check_join(self, vertex: Vertex) -> None:
        row = vertex.join
        if row is None:
            return
        joined = set(map(name, row.steps))
        for link in self.plan.incoming[vertex.name]:
            if link.source not in joined:
                self.refuse(
                    link.row,
                    f"{link.source} leads to {vertex.name} beside its join: name it in the join",
                )
        if row.wait_for != "all" and len(joined) < vertex.ways_in:
            self.refuse(row, "a step that leads to it in two ways cannot be counted")

    def _check_map(self, vertex: Vertex) -> None:
        row = vertex.each
        if row is None:
            return
        if vertex.step.kind not in ("step", "run"):
            self.refuse(
                row,
                f"{vertex.name} cannot wait for each element: let do=run(...) run a workflow that waits",
            )
        for link in self.plan.incoming[vertex.name]:
            if link.kind != "flow" or link.source != name(row.step):
                self.refuse(
                    link.row,
                    f"{vertex.name} runs for each element, so nothing else may lead to it",
                )

    def _check_loop(self, vertex: Vertex) -> None:
        loop = vertex.loop
        if loop is None:
            return
        place = loop.steps.index(vertex.name)
        following = loop.steps[place + 1 : place + 2]
        for link in (link for choice in vertex.choices for link in choice.links):
            if link.kind != "flow" or (link.target,) != following:
                self.refuse(
                    link.row, f"{vertex.name} is repeated, so it cannot lead elsewhere"
                )
        before = loop.steps[max(place - 1, 0) : place]
        for link in self.plan.incoming[vertex.name]:
            if place and (link.source,) != before:
                self.refuse(
                    link.row,
                    f"{vertex.name} is repeated after {before[0]}, so {link.source} cannot lead to it",
                )
        for link in vertex.exceptions:
            if link.target in loop.steps:
                self.refuse(link.row, f"{link.target} is in the loop that is left")

    def _check_catch(self, vertex: Vertex) -> None:
        if not vertex.catches:
            return
        for link in self.plan.incoming[vertex.name]:
            if link.kind != "error":
                self.refuse(
                    link.row,
                    f"{vertex.name} catches failures, so {link.source} cannot lead to it too",
                )

    def _check_errors(self, vertex: Vertex) -> None:
        """No error route stands behind a wider one."""
        before: list[type[BaseException]] = []
        for link in vertex.exceptions:
            if link.error is None:
                continue
            if issubclass(link.error, tuple(before)):
                self.refuse(
                    link.row,
                    f"a failure of {vertex.name} with {link.error.__name__} is caught by a row before it",
                )
            before.append(link.error)


RULES: tuple[Callable[[_Structure, Vertex], None], ...] = (
    _Structure._check_join,
    _Structure._check_map,
    _Structure._check_loop,
    _Structure._check_catch,
    _Structure._check_errors,
)
