"""The consequences of a settled step: started steps, arrivals at joins, branches not taken, tolerated failures.

Pure functions; `read_joins` gives them the arrivals at joins. Each link is resolved once, as taken or as dead. If all
links to a step are dead, the step is not taken, and its own links are dead. A join that needs fewer branches continues
without a failed one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from orchestrator.definition.workflow.plan import Link, Loop, Plan, Vertex

Ending = Literal["done", "failed", "late", "cancelled"]
"""How a visit was settled."""


@dataclass(frozen=True)
class Arrivals:
    """The number of resolved links to a vertex, the number of taken ones, and whether the vertex has started.

    `failed` counts the links that are dead because of a failure that the join tolerates.
    """

    arrived: int = 0
    taken: int = 0
    fired: bool = False
    failed: int = 0


ReadJoins = Callable[[Sequence[str]], Mapping[str, Arrivals]]
"""Reads the arrivals at joins by their names. A join without arrivals may be missing."""


@dataclass(frozen=True)
class Settled:
    """A visit of a step that has ended.

    The outcome `failed` is a final failure: it takes the error link `caught`, or the process tolerates it. The outcome
    `late` takes the link of a deadline.
    """

    step: str
    visit: int = 1
    outcome: Ending = "done"
    result: Any = None
    caught: Link | None = None


@dataclass
class Advance:
    """The consequences of a settled step. The engine carries them out in the commit that settles the step."""

    entered: list[tuple[str, int]] = field(default_factory=list)
    joins: dict[str, Arrivals] = field(default_factory=dict)
    not_taken: list[str] = field(default_factory=list)
    given_up: list[str] = field(default_factory=list)
    """Steps whose open visits are cancelled because no join waits for them any more."""
    caught: tuple[str, ...] = ()
    """The other steps of a `catch`. Their open visits are cancelled, and then their links are dead."""
    taken: list[str] = field(default_factory=list)
    """The ids of the taken links. A replay finds in them the link that a failure took."""


def advance(
    plan: Plan, settled: Settled, read_joins: ReadJoins, *, past: bool = False
) -> Advance:
    """Return the consequences of a settled visit.

    Args:
        plan: the compiled workflow.
        settled: the settled visit.
        read_joins: reads the arrivals at joins so far.
        past: whether this is a replay: the first release let a fork take no link where no other link followed.

    Raises:
        NoCase: no case fits the result, and there is no default.
        Exception: a predicate failed.
    """
    return _Propagation(plan, read_joins, past=past).from_step(settled)


def initial_advance(plan: Plan) -> Advance:
    """Return the steps that a process begins with."""
    return Advance(entered=[(name, 1) for name in plan.entries])


def error_link(plan: Plan, step: str, error: BaseException) -> Link | None:
    """Return the error link that a failure of this step takes: the first whose type fits; None without any."""
    for link in plan[step].exceptions:
        if link.error is not None and isinstance(error, link.error):
            return link
    return None


def is_starved(target: Vertex, now: Arrivals) -> bool:
    """Return whether a join lacks branches: too few of them were taken, or too many have failed.

    This is known when all links to the join are resolved. Its step then starts in order to fail. A join without any
    taken link and any failure before it is on a branch that was not taken.
    """
    return now.taken + now.failed > 0 and now.taken < (target.needed or 0)


class _Propagation:
    """The resolution of links, from a settled step to joins that wait and steps that start."""

    def __init__(self, plan: Plan, read_joins: ReadJoins, *, past: bool) -> None:
        self.plan = plan
        self.past = past
        self.read_joins = read_joins
        self.known: dict[str, Arrivals] = {}
        self.found = Advance()
        self.failed: set[str] = set()
        """The ids of the links that are dead because of a tolerated failure."""

    def from_step(self, settled: Settled) -> Advance:
        vertex = self.plan[settled.step]
        if settled.outcome in ("failed", "late"):
            links = self._exceptional(vertex, settled)
        elif settled.outcome == "cancelled":
            links = self._dead(vertex, settled.visit)
        else:
            links = self._regular(vertex, settled)
        self._resolve(links, settled.visit)
        return self.found

    # The links of the settled step

    def _regular(self, vertex: Vertex, settled: Settled) -> list[tuple[Link, bool]]:
        loop = vertex.loop
        if loop is None:
            exceptions = [(link, False) for link in vertex.exceptions]
            return self._chosen(vertex, settled.result) + exceptions
        if not vertex.ends_loop:
            # Its error and deadline links stay open until the process leaves the loop.
            return self._chosen(vertex, settled.result)
        way = loop.onward(settled.result, settled.visit, vertex.result_type)
        if way is loop.back:
            self.found.taken.append(way.id)
            self.found.entered.append((way.target, settled.visit + 1))
            return []
        return self._leaving(loop, way)

    def _chosen(self, vertex: Vertex, result: Any) -> list[tuple[Link, bool]]:
        """The links for a result, with whether they are taken: at least one, if there are any."""
        if not vertex.decides:
            return [(link, True) for link in vertex.regular]
        given = (result, vertex.name, vertex.result_type)
        found = [(one, set(one.taken(*given))) for one in vertex.choices]
        if found and not self.past and not any(taken for _, taken in found):
            rows = "; ".join(choice.row for choice in vertex.choices)
            vertex.choices[0].refuse(result, vertex.name, rows)
        return [
            (link, link in taken) for choice, taken in found for link in choice.links
        ]

    def _exceptional(self, vertex: Vertex, settled: Settled) -> list[tuple[Link, bool]]:
        """The links after an error or a missed deadline: the fitting exceptional link is taken, all others are dead."""
        found = settled.caught if settled.outcome == "failed" else vertex.late
        if found is not None:
            self.found.taken.append(found.id)
        if found is not None and len(found.group) > 1:
            self.found.caught = tuple(n for n in found.group if n != vertex.name)
            self._take_back([*self.found.caught, *self.plan.closed_by(found.group)])
        links = self._dead(vertex, settled.visit, but=found)
        if found is None:
            self._fail(links)
        return links

    def _fail(self, links: Iterable[tuple[Link, bool]]) -> None:
        """Note that these links are dead because of a failure."""
        self.failed.update(link.id for link, _ in links if not link.exceptional)

    def _leaving(self, loop: Loop, way: Link | None) -> list[tuple[Link, bool]]:
        """All links out of a loop, of which only this one is taken."""
        links = list(loop.exits)
        for name in loop.steps:
            links += self.plan[name].exceptions
        return [(link, link is way) for link in links]

    def _dead(
        self, vertex: Vertex, visit: int, but: Link | None = None
    ) -> list[tuple[Link, bool]]:
        """All links as dead, `but` one. The process leaves a loop, and passes over its steps that it never reached."""
        loop = vertex.loop
        if loop is None:
            return [(link, link is but) for link in vertex.links]
        if visit == 1:
            place = loop.steps.index(vertex.name)
            self.found.not_taken += loop.steps[place + 1 :]
        return self._leaving(loop, but)

    def _take_back(self, names: Iterable[str]) -> None:
        """Uncount the taken links at joins that still wait, since their branches are given up together."""
        joins = [name for name in names if self.plan[name].ways_in > 1]
        self._ask(joins)
        for name in joins:
            now = self.known[name]
            if now.taken and not now.fired:
                self._note(name, Arrivals(now.arrived))

    # The targets of the links

    def _resolve(self, links: Iterable[tuple[Link, bool]], visit: int) -> None:
        waiting = list(links)
        while waiting:
            self._ask(link.target for link, _ in waiting)
            following: list[tuple[Link, bool]] = []
            for link, taken in waiting:
                following += self._arrive(link, taken, visit)
            waiting = following

    def _ask(self, targets: Iterable[str]) -> None:
        names = set(targets)
        joins = {name for name in names if self.plan[name].ways_in > 1}
        for name in names & self.plan.cancelling.keys():
            joins.update(self.plan.cancelling[name])
        joins -= self.known.keys()
        if joins:
            found = self.read_joins(sorted(joins))
            self.known |= {name: found.get(name, Arrivals()) for name in joins}

    def _arrive(self, link: Link, taken: bool, visit: int) -> list[tuple[Link, bool]]:
        target = self.plan[link.target]
        taken = taken and not self._given_up(link.target)
        if taken and not link.exceptional:
            self.found.taken.append(link.id)
        if target.ways_in == 1:
            if taken:
                visit = self._visit(link, target, visit)
                self.found.entered.append((target.name, visit))
                return []
            return self._pass_over(target, failed=link.id in self.failed)
        before = self.known[target.name]
        now = Arrivals(
            before.arrived + 1,
            before.taken + taken,
            before.fired,
            before.failed + (link.id in self.failed),
        )
        outcome = None if before.fired else _decided(target, now)
        self._note(target.name, now)
        if outcome:
            self._fire(target, now)
        return self._pass_over(target) if outcome is False else []

    def _given_up(self, name: str) -> bool:
        """Whether a join that has started no longer waits for this vertex, so that the vertex must not start."""
        joins = self.plan.cancelling.get(name, ())
        return any(self.known[join].fired for join in joins)

    def _note(self, name: str, now: Arrivals) -> None:
        self.known[name] = self.found.joins[name] = now

    def _fire(self, target: Vertex, now: Arrivals) -> None:
        """Start a vertex that has the links it needs."""
        self._note(target.name, replace(now, fired=True))
        self.found.entered.append((target.name, 1))
        if target.join is not None and target.join.rest == "cancel":
            given_up = sorted(self.plan.region(target.name))
            self.found.given_up += given_up
            self._take_back(given_up)

    def _visit(self, link: Link, target: Vertex, visit: int) -> int:
        """The number of the target's visit: inside a loop that of the step before it, elsewhere 1."""
        loop = target.loop
        return visit if loop is not None and link.source in loop.steps else 1

    def _pass_over(
        self, vertex: Vertex, *, failed: bool = False
    ) -> list[tuple[Link, bool]]:
        """Mark a step on a branch that was not taken, or that failed before it; return its dead links."""
        self.found.not_taken.append(vertex.name)
        links = self._dead(vertex, 1)
        if failed:
            self._fail(links)
        return links


def _decided(target: Vertex, now: Arrivals) -> bool | None:
    """Return whether a vertex with several incoming links starts (True), is passed over (False) or waits (None)."""
    everything = now.arrived == target.ways_in
    if target.needed is not None and now.taken >= target.needed:
        return True
    if everything:
        return now.taken > 0 or is_starved(target, now)
    return None


def tolerates_failure(plan: Plan, step: str, read_joins: ReadJoins) -> bool:
    """Return whether a process can continue after a step's failure: all ways from it end in joins that need fewer."""
    waiting, dead = [step], Counter[str]()
    while waiting:
        links = plan[waiting.pop()].regular
        if not links:
            return False
        for link in links:
            target = plan[link.target]
            if target.join is not None and target.needed is not None:
                dead[target.name] += 1
            elif target.ways_in == 1:
                waiting.append(target.name)
            else:
                return False
    joins = read_joins(list(dead))
    return all(
        _still_reachable(plan[name], joins.get(name, Arrivals()), count)
        for name, count in dead.items()
    )


def _still_reachable(target: Vertex, now: Arrivals, dead: int) -> bool:
    """Return whether the join has started, or still can without the dead ways."""
    open_ways = target.ways_in - now.arrived - dead
    return now.fired or now.taken + open_ways >= (target.needed or 0)
