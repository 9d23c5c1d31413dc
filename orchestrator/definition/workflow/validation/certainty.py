"""The results that may exist when a step starts, and those that certainly exist.

This module computes the condition under which each step starts, and so recognizes branches that come together again.
A condition is a set of atoms, one of which must hold. An atom is a branch that was taken under another condition. If
one of several branches is always taken, all of them together equal the condition before them. The idea is that of the
program structure tree (Johnson, Pearson and Pingali, 1994), on graphs that need not be well nested.

Sets of steps are the bits of whole numbers, so that a graph of 10,000 steps takes well under a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from operator import and_, or_

from orchestrator.definition.annotations import (
    element_type,
    field_type,
    possible_values,
)
from orchestrator.definition.workflow.plan import Choice, Link, Plan, Vertex

Atoms = frozenset[int]

ALWAYS: Atoms = frozenset([0])


class Conditions:
    """The atoms of one graph."""

    def __init__(self) -> None:
        self._under: list[Atoms] = [frozenset()]
        """Each atom's condition under which its branch can be taken at all."""
        self._level = [0]
        self._choice = [0]
        """Each atom's choice."""
        self._size = [0]
        """Each choice's number of branches, if one of them is always taken; else 0."""

    def branches(self, under: Atoms, count: int, *, complete: bool) -> list[Atoms]:
        """Return new conditions, one for each branch; `complete` if at least one branch is always taken."""
        if count == 1 and complete:
            return [under]
        first, level = len(self._under), 1 + max(self._level[atom] for atom in under)
        self._under += [under] * count
        self._level += [level] * count
        self._choice += [len(self._size)] * count
        self._size.append(count if complete else 0)
        return [frozenset([atom]) for atom in range(first, first + count)]

    def either(self, conditions: Iterable[Atoms]) -> Atoms:
        """Return the condition that holds when one of these conditions holds, in its simplest form."""
        distinct = set(conditions)
        if len(distinct) == 1:
            return distinct.pop()
        atoms = self._closed(distinct)
        if 0 in atoms:
            return ALWAYS
        lowest = min(self._level[atom] for atom in atoms)
        return frozenset(x for x in atoms if not self._implied(x, atoms, lowest))

    def _closed(self, conditions: Iterable[Atoms]) -> set[int]:
        """All atoms, with complete choices replaced by the condition before them."""
        atoms: set[int] = set()
        seen: dict[int, list[int]] = {}
        waiting = [atom for condition in conditions for atom in condition]
        while waiting:
            atom = waiting.pop()
            if atom in atoms:
                continue
            atoms.add(atom)
            others = seen.setdefault(self._choice[atom], [])
            others.append(atom)
            if len(others) == self._size[self._choice[atom]]:
                atoms.difference_update(others)
                waiting += self._under[atom]
        return atoms

    def _implied(self, atom: int, atoms: set[int], lowest: int) -> bool:
        """Whether the branch is taken only when another of these atoms holds."""
        under = self._under[atom]
        while under:
            if under <= atoms:
                return True
            (first, *more) = under
            if more or self._level[first] < lowest:
                return False
            under = self._under[first]
        return False


class Certainty:
    """The results before each step.

    Args:
        plan: a plan without cycles.
        asked: the vertices whose results matter.
    """

    def __init__(self, plan: Plan, asked: Iterable[str]) -> None:
        self.plan = plan
        self.bits = {name: 1 << index for index, name in enumerate(asked)}
        self.before: dict[str, int] = {}
        self.certain: dict[str, int] = {}
        self.starving: dict[str, int] = {}
        """The certain results in case that a join that needs every branch lacks some, and fails."""
        self.starts: dict[str, Atoms] = {}
        """The condition under which each vertex starts."""
        self._taken: dict[str, Atoms] = {}
        """The condition under which each link is taken, by its id."""
        self._conditions = Conditions()
        self._exceptions = any(v.exceptions for v in plan.vertices.values())
        """Whether the graph has a link for a failure or a missed deadline. Most graphs have none."""
        for name in plan.order:
            self._visit(plan[name])

    def can_have(self, name: str, result: str) -> bool:
        """Return whether the result may exist when the vertex starts."""
        return bool(self.before[name] & self.bits[result])

    def must_have(self, name: str, result: str) -> bool:
        """Return whether the result certainly exists when the vertex starts."""
        return bool(self.certain[name] & self.bits[result])

    def _visit(self, vertex: Vertex) -> None:
        incoming = self.plan.incoming[vertex.name]
        self.before[vertex.name] = self._before(vertex, incoming)
        ways = self._ways(incoming)
        start = self._conditions.either(ways) if ways else ALWAYS
        self.certain[vertex.name] = self._certain(vertex, incoming, ways, start)
        if self._may_be_passed_over(vertex, ways, start):
            (start,) = self._conditions.branches(start, 1, complete=False)
        self.starts[vertex.name] = start
        always = self._leave(vertex, start) == ALWAYS
        vertex.certain = always and not vertex.step.optional

    def _before(self, vertex: Vertex, incoming: Sequence[Link]) -> int:
        found = 0
        for link in incoming:
            found |= self.before[link.source] | self.bits.get(link.source, 0)
        if vertex.loop is not None:
            for name in vertex.loop.steps:
                found |= self.bits.get(name, 0)
        return found

    def _certain(
        self,
        vertex: Vertex,
        incoming: Sequence[Link],
        ways: Sequence[Atoms],
        start: Atoms,
    ) -> int:
        """The results that every incoming link brings. A join of all links also has those of an unconditional link."""
        if not incoming:
            return 0
        brought = [self._brought(link) for link in incoming]
        found = reduce(and_, brought)
        if vertex.needed == len(incoming):
            self.starving[vertex.name] = found
            return reduce(or_, brought)
        if vertex.needed is None:
            for one, condition in zip(brought, ways, strict=True):
                if condition == start:
                    found |= one
        return found

    def _brought(self, link: Link) -> int:
        found = self.certain[link.source]
        if link.exceptional:
            return self.starving.get(link.source, found)
        return found | self.bits.get(link.source, 0)

    def _ways(self, incoming: Sequence[Link]) -> list[Atoms]:
        """The conditions of the incoming links. The links of a caught group are taken together."""
        if self._closes_a_group(incoming):
            return [self.starts[link.source] for link in incoming]
        return [self._taken[link.id] for link in incoming]

    def _may_be_passed_over(
        self, vertex: Vertex, ways: Sequence[Atoms], start: Atoms
    ) -> bool:
        """Whether the vertex may not start although a link to it was taken.

        A join that needs a number of branches may get too few. And a failure in a caught group takes back the arrivals
        at the vertices in the group and after it.
        """
        if vertex.ways_in < 2:
            return False
        counted = vertex.join is not None and vertex.needed is not None
        starves = counted and any(way != start for way in ways)
        grouped = any(len(link.group) > 1 for link in vertex.exceptions)
        return starves or grouped or bool(self._closed(self.plan.incoming[vertex.name]))

    def _closed(self, incoming: Sequence[Link]) -> set[tuple[str, ...]]:
        """The caught groups whose branches come together here."""
        if not self._exceptions:
            return set()
        groups = {
            x.group for link in incoming for x in self.plan[link.source].exceptions
        }
        return {x for x in groups if self.plan.closes(incoming[0].target, x)}

    def _closes_a_group(self, incoming: Sequence[Link]) -> bool:
        """Whether the vertex comes after a caught group, and so starts only if no step of the group has failed.

        `advance` takes back the arrivals from before the failure. The steps must also begin together: a step that
        begins later would arrive after the failure.
        """
        closed = self._closed(incoming)
        return bool(closed) and all(
            x.group in closed and self._begin_together(x.group)
            for link in incoming
            for x in self.plan[link.source].exceptions
        )

    def _begin_together(self, group: Collection[str]) -> bool:
        """Whether one step starts all of the group, or the process begins with all of it."""
        incoming = [self.plan.incoming[name] for name in group]
        before = {link.source for links in incoming for link in links}
        outside = before.difference(group)
        return not outside or (len(outside) == 1 and all(incoming))

    def _leave(self, vertex: Vertex, start: Atoms) -> Atoms:
        """Store the conditions of all outgoing links; return the condition under which the step is done."""
        done = self._leave_by_failure(vertex, start)
        for choice in vertex.choices:
            self._take(choice.links, self._chosen(vertex, choice, done))
        if vertex.loop is not None and vertex.ends_loop:
            exits = vertex.loop.exits
            branches = self._conditions.branches
            self._take(exits, branches(done, len(exits), complete=True))
        return done

    def _leave_by_failure(self, vertex: Vertex, start: Atoms) -> Atoms:
        exceptions = vertex.exceptions
        alone = all(len(link.group) <= 1 for link in exceptions)
        count = 1 + len(exceptions)
        done, *failed = self._conditions.branches(start, count, complete=alone)
        self._take(exceptions, failed)
        return done

    def _chosen(self, vertex: Vertex, choice: Choice, done: Atoms) -> list[Atoms]:
        if not choice.conditional:
            return [done] * len(choice.links)
        alone = (
            len(vertex.choices) == 1
        )  # an only choice takes a link, or the step fails
        complete = choice.exclusive or choice.default is not None or alone
        complete = complete or covers(vertex, choice)
        count = len(choice.links)
        return self._conditions.branches(done, count, complete=complete)

    def _take(self, links: Sequence[Link], conditions: Sequence[Atoms]) -> None:
        for link, condition in zip(links, conditions, strict=True):
            self._taken[link.id] = condition


def covers(vertex: Vertex, choice: Choice) -> bool:
    """Return whether each possible value of the field has a branch."""
    if choice.on is None:
        return False
    given = vertex.result_type
    hint = field_type(given, choice.on) if choice.on else given
    if element_type(hint) is not None:
        return False  # a list may be empty
    possible = possible_values(hint)
    return bool(possible) and {link.value for link in choice.links} >= set(possible)
