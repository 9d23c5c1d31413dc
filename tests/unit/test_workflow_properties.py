"""In any graph, with any results and failures, each step runs once, after its needs, and the process ends."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.definition import (
    Workflow,
    catch,
    fork,
    join,
    needs,
    repeat,
    route,
    step,
)
from orchestrator.definition.workflow.advance import (
    Advance,
    Arrivals,
    error_link,
    is_starved,
    tolerates_failure,
)
from orchestrator.definition.workflow.plan import Plan, Vertex
from orchestrator.definition.workflow.replay import StepVisit, replay_history
from orchestrator.definition.workflow.steps import Step
from orchestrator.definition.workflow.validation.certainty import Certainty
from orchestrator.exceptions import NoCase
from tests.services.sizes import size
from tests.unit.workflows import Process


@dataclass(frozen=True)
class Found:
    """What every step gives: which of its ways are taken."""

    picks: list[int]
    pick: int
    good: bool


def work() -> Found:
    return Found([], 0, True)


def good(found: Found) -> bool:
    return found.good


class Drawing:
    """Random rows: every step but the first has ways in from earlier ones, and each writes its ways out as one row."""

    def __init__(self, dice: Random) -> None:
        self.dice = dice
        self.steps: list[Step] = []
        self.into: dict[Step, list[Step]] = {}
        self.rows: list[Any] = []
        self.catching: set[Step] = set()
        self.twice: set[tuple[Step, Step]] = set()
        for _ in range(dice.randint(1, 14)):
            self._add()
        self.rows[:0] = self.steps
        for one in self.steps:
            self._leave(one)
        for one in self.steps:
            self._gather(one)

    def _add(self) -> None:
        dice = self.dice
        made = step(work, f"s{len(self.steps)}")
        free = [one for one in self.steps if one not in self.catching]
        if free and dice.random() < 0.15:
            group = dice.sample(free, dice.randint(1, min(2, len(free))))
            self.rows.append(catch(*group, error=ValueError, to=made))
            self.catching.update(group)
            self.into[made] = []
        else:
            count = min(len(self.steps), dice.choice([0, 1, 1, 1, 2, 2, 3, 4]))
            self.into[made] = dice.sample(self.steps, count)
        self.steps.append(made)

    def _leave(self, one: Step) -> None:
        targets = [target for target in self.steps if one in self.into[target]]
        kind = self.dice.choice(["always", "always", "some", "one", "loop"])
        numbered = dict(enumerate(targets))
        if not targets or kind == "always":
            return  # the rows of those that need it say it
        if kind == "some":
            other = numbered.pop(len(targets) - 1) if self.dice.random() < 0.5 else None
            if numbered:
                self.rows.append(fork(one, on="picks", into=numbered, otherwise=other))
        elif kind == "one":
            *_, last = targets
            self.twice.add((one, last))
            self.rows.append(route(one, on="pick", to=numbered, otherwise=last))
        elif len(targets) == 1:
            (target,) = targets
            self.twice.add((one, target))
            row = repeat(one, until=good, at_most=3, then=target, otherwise=target)
            self.rows.append(row)

    def _gather(self, one: Step) -> None:
        sources, dice = self.into[one], self.dice
        policy: dict[str, Any] = {}
        if len(sources) > 1 and dice.random() < 0.5:
            number = dice.randint(1, len(sources))
            policy["wait_for"] = dice.choice(["any", "every", number])
            policy["rest"] = dice.choice(["run", "cancel"])
        if policy and self.twice.isdisjoint((source, one) for source in sources):
            self.rows.append(join(*sources, into=one, **policy))
        elif sources:
            self.rows.append(needs(one, sources))


def drawn(dice: Random) -> Plan:
    body = {"__module__": __name__, "flow": Drawing(dice).rows}
    return type("Drawn", (Workflow,), body).plan()  # type: ignore[attr-defined, no-any-return]


class Run(Process):
    """A process that so many workers carry out, each step in a random time and with a random end."""

    def __init__(self, plan: Plan, dice: Random, workers: int) -> None:
        self.dice, self.workers = dice, workers
        self.clock = 0.0
        self.spent: dict[str, float] = {}
        self.over: set[str] = set()
        self.links: list[str] = []
        self.had: dict[str, set[str]] = {}
        """The steps that had a result when each one started, as long as nobody had to pass one over."""
        self.starving: set[str] = set()
        """The joins that have started in order to fail."""
        self.passed_over = False
        """Whether a join that starved was, since nothing else made up for it."""
        self.snapshots: dict[int, tuple[list[StepVisit], dict[str, Any]]] = {}
        self._running: dict[StepVisit, tuple[float, float]] = {}
        super().__init__(plan=plan)
        while self.open:
            self._work()

    def _work(self) -> None:
        for visit in self.open:
            if visit not in self._running and len(self._running) < self.workers:
                until = self.clock + self.dice.randint(1, 10)
                self._running[visit] = (self.clock, until)
        visit = min(self._running, key=lambda one: self._running[one][1])
        self.clock = self._running[visit][1]
        self._finish(visit[0])
        self.snapshots[len(self.history)] = (list(self.open), dict(self.joins))
        for one in [one for one in self._running if one not in self.open]:
            begun, _ = self._running.pop(one)
            spent = self.spent.get(one[0], 0.0) + self.clock - begun
            self.spent[one[0]] = spent

    def _finish(self, name: str) -> None:
        error = ValueError()
        borne = error_link(self.plan, name, error) is not None or tolerates_failure(
            self.plan, name, self.look
        )
        if borne and (name in self.starving or self.dice.random() < 0.4):
            self.fail(name, error)
            return
        self.passed_over |= name in self.starving
        try:
            picks = [n for n in range(5) if self.dice.random() < 0.5]
            self.settle(name, self._found(picks))
        except NoCase:  # a fork of which nothing else leads on
            self.settle(name, self._found([0, 1, 2, 3, 4]))

    def _found(self, picks: list[int]) -> Found:
        return Found(picks, self.dice.randint(0, 4), self.dice.random() < 0.5)

    def _follow(self, found: Advance) -> None:
        if self.history:
            self.over.add(self.history[-1].step)
        self.over.update(found.not_taken)
        self.links += found.taken
        for name, visit in found.entered:
            vertex, now = self.plan[name], found.joins.get(name, Arrivals())
            if is_starved(vertex, now):
                assert now.arrived == vertex.ways_in
                assert now.taken + now.failed > 0
                assert now.taken < (vertex.needed or 0)
                self.starving.add(name)
                continue
            self.over.discard(name) if visit > 1 else self._check(vertex)
            if not self.passed_over:
                self.had.setdefault(name, self.results)
        super()._follow(found)

    @property
    def results(self) -> set[str]:
        return {one.step for one in self.history if one.outcome == "done"}

    def _check(self, vertex: Vertex) -> None:
        """A step starts: all that it needs is over, or as many as it waits for have come."""
        incoming = self.plan.incoming[vertex.name]
        resolved = all(link.source in self.over for link in incoming)
        taken = sum(link.id in self.links for link in incoming)
        assert taken > 0 or not incoming
        if vertex.needed is None:
            assert resolved
        else:
            assert taken >= vertex.needed

    @property
    def loops(self) -> bool:
        return any(vertex.loop for vertex in self.plan.vertices.values())

    def longest_path(self) -> float:
        """The time of the steps on the path that took longest."""
        until: dict[str, float] = {}
        for name in self.plan.vertices:  # they are drawn in an order that fits
            before = [until[link.source] for link in self.plan.incoming[name]]
            until[name] = max(before, default=0.0) + self.spent.get(name, 0.0)
        return max(until.values())


def runs(dice: Random, workers: int) -> Iterator[Run]:
    plan = drawn(dice)
    for _ in range(3):
        yield Run(plan, dice, workers)


anything = settings(
    deadline=None,
    max_examples=size(40, full=240),
    suppress_health_check=[HealthCheck.too_slow],
)
dice = st.integers(0, 2**32).map(Random)
workers = st.sampled_from([1, 2, 4])


def for_any_graph(test: Callable[[int, Random], None]) -> Callable[[], None]:
    """Have a test called for random dice, and so many workers."""
    return anything(given(dice=dice, workers=workers)(test))


@for_any_graph
def test_every_step_has_one_end(workers: int, dice: Random) -> None:
    for run in runs(dice, workers):
        entered = {name for name, _ in run.visits}

        assert len(set(run.visits)) == len(run.visits)
        assert len(set(run.not_taken)) == len(run.not_taken)
        assert entered.isdisjoint(run.not_taken)
        assert entered | set(run.not_taken) == set(run.plan.vertices)


@for_any_graph
def test_it_ends_and_every_way_was_resolved_once(workers: int, dice: Random) -> None:
    for run in runs(dice, workers):
        assert run.loops or len(set(run.links)) == len(run.links)
        for vertex in run.plan.vertices.values():
            if vertex.ways_in > 1:
                now = run.joins[vertex.name]
                assert now.arrived == vertex.ways_in
                assert now.fired == (vertex.name not in run.not_taken)


@for_any_graph
def test_its_history_alone_tells_how_it_stands(workers: int, dice: Random) -> None:
    for run in runs(dice, workers):
        for count, (visits, joins) in run.snapshots.items():
            history = [s for s in run.history[:count] if s.outcome != "cancelled"]
            standing = replay_history(run.plan, history)

            assert list(standing.open.items()) == visits
            assert list(standing.entered) == run.visits[: len(standing.entered)]
            assert standing.joins == joins
            assert standing.stray == []


@for_any_graph
def test_workers_are_idle_only_without_work(workers: int, dice: Random) -> None:
    """Graham's bound for list scheduling (1969): no level of the graph is waited for as a whole."""
    for run in runs(dice, workers):
        work = sum(run.spent.values())
        bound = work / workers + (1 - 1 / workers) * run.longest_path()

        assert run.clock <= bound + 1e-6


@for_any_graph
def test_a_result_that_is_certain_is_there(workers: int, dice: Random) -> None:
    plan = drawn(dice)
    known = Certainty(plan, plan.vertices)
    for _ in range(3):
        run = Run(plan, dice, workers)
        for name, had in run.had.items():
            must = {other for other in plan.vertices if known.must_have(name, other)}
            can = {other for other in plan.vertices if known.can_have(name, other)}
            assert must <= had
            assert must <= can


@for_any_graph
def test_a_last_step_that_is_certain_is_done(workers: int, dice: Random) -> None:
    for run in runs(dice, workers):
        certain = {name for name in run.plan.ends() if run.plan[name].certain}

        assert certain <= run.results
