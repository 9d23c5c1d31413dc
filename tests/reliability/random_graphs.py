"""Graphs made from dice: every pattern of the language, one inside another. The same seed gives the same graph."""

import random
from collections.abc import Callable
from typing import Any, NamedTuple

from orchestrator.definition import (
    catch,
    each,
    fork,
    join,
    needs,
    repeat,
    route,
    step,
    then,
)
from orchestrator.definition.workflow.rows import FlowRow
from orchestrator.definition.workflow.steps import Function, Step
from tests.apps.random_graphs.steps import (
    Broken,
    Dice,
    Way,
    element,
    fail,
    fail_later,
    never,
    odd_element,
    seen_twice,
    stumble,
    work,
)

DEEPEST = 3
BACKOFF = 0.05


class Part(NamedTuple):
    """A piece of a graph, by the step that it begins with and the one that it ends with."""

    first: Step
    last: Step


def random_flow(input: Dice) -> list[FlowRow | Step]:
    """Return the rows of the graph of a seed, of about so many steps."""
    return _Garden(input).grown()


class _Garden:
    """Grows one graph. Each kind of part adds its rows, and is made of simple steps and further parts."""

    def __init__(self, input: Dice) -> None:
        self.dice = random.Random(input.seed)
        self.size = input.size
        self.rows: list[FlowRow | Step] = []
        self.count = 0
        self.depth = 0

    def grown(self) -> list[FlowRow | Step]:
        first = self.step()
        last = first
        while self.count < self.size:
            part = self.part()
            self.rows.append(then(last, part.first))
            last = part.last
        return self.rows or [first]

    def step(self, function: Function | None = None) -> Step:
        """Return a step of its own name; one in eight stumbles once."""
        self.count += 1
        chosen = function or (stumble if self.dice.random() < 0.125 else work)
        return step(chosen, f"s{self.count}", backoff=BACKOFF)

    def part(self) -> Part:
        """Return a part of a kind that the dice choose; a simple one when it is deep enough."""
        if self.depth >= DEEPEST or self.count >= self.size:
            return self.single()
        self.depth += 1
        part = self.dice.choice(KINDS)(self)
        self.depth -= 1
        return part

    def parts(self) -> list[Part]:
        return [self.part() for _ in range(self.dice.randint(2, 3))]

    def between(self) -> tuple[Step, list[Part], Step]:
        """Return parts with a step before all of them, and one after."""
        return self.step(), self.parts(), self.step()

    def joined(self, parts: list[Part], into: Step, **how: Any) -> None:
        self.rows.append(join(*(part.last for part in parts), into=into, **how))

    def single(self) -> Part:
        only = self.step()
        return Part(only, only)

    def sequence(self) -> Part:
        one, other = self.part(), self.part()
        self.rows.append(then(one.last, other.first))
        return Part(one.first, other.last)

    def all_of(self) -> Part:
        """Fork and join."""
        first, parts, last = self.between()
        self.rows.append(fork(first, into=[part.first for part in parts]))
        self.joined(parts, last)
        return Part(first, last)

    def some_of(self) -> Part:
        """Fork, and a join that does not wait for all, and puts up with a branch that fails."""
        first, parts, last = self.between()
        number = self.dice.randint(1, len(parts))
        if self.dice.random() < 0.3:
            broken = self.step(fail)
            parts.append(Part(broken, broken))
        self.rows.append(fork(first, into=[part.first for part in parts]))
        rest = self.dice.choice(["run", "cancel"])
        self.joined(parts, last, wait_for=number, rest=rest)
        return Part(first, last)

    def chosen(self) -> Part:
        """Multi-choice: a branch for each value found, or another one, or none at all."""
        first, parts, last = self.between()
        into = {way: part.first for way, part in zip(Way, parts, strict=False)}
        other = self.part() if self.dice.random() < 0.5 else None
        ends = [*parts, other] if other else parts
        self.rows.append(
            fork(first, on="ways", into=into, otherwise=other.first if other else None)
        )
        beside = self.step()
        self.rows.append(then(first, beside))
        self.joined([*ends, Part(beside, beside)], last)
        return Part(first, last)

    def routed(self) -> Part:
        """Exactly one branch."""
        first, parts, last = self.between()
        to = {way: part.first for way, part in zip(Way, parts, strict=False)}
        other = self.part()
        missing = len(to) < len(Way)
        otherwise = other.first if missing else None
        self.rows.append(route(first, on="way", to=to, otherwise=otherwise))
        if missing:
            parts.append(other)
        else:
            self.rows.append(then(parts[0].last, other.first))
            parts[0] = Part(parts[0].first, other.last)
        self.joined(parts, last)
        return Part(first, last)

    def mapped(self) -> Part:
        """A step for each element of a list; often two maps of the same list."""
        first, last = self.step(), self.step()
        for _ in range(self.dice.randint(1, 2)):
            tolerant = self.dice.random() < 0.3
            do = self.step(odd_element if tolerant else element)
            how: Any = {
                "window": self.dice.choice([None, 1, 2]),
                "tolerate": int(tolerant),
            }
            self.rows.append(each(first, over="items", do=do, into=last, **how))
        return Part(first, last)

    def repeated(self) -> Part:
        """A loop that ends well, comes to its bound, or is left by a failure."""
        first, last = self.step(), self.step()
        good, bound, caught = self.step(), self.step(), self.step()
        breaks = self.dice.random() < 0.4
        body = [self.step(), self.step(fail_later if breaks else None)]
        self.rows += [
            then(first, body[0]),
            repeat(
                *body,
                until=never if self.dice.random() < 0.3 else seen_twice,
                at_most=3,
                then=good,
                otherwise=bound,
            ),
            catch(*body, error=Broken, to=caught),
            join(good, bound, caught, into=last),
        ]
        return Part(first, last)

    def caught(self) -> Part:
        """A failure of one of two branches leads elsewhere, and the other one is cancelled."""
        first, last, rescue, well = (self.step() for _ in range(4))
        broken = self.step(fail if self.dice.random() < 0.7 else None)
        other = self.step()
        self.rows += [
            fork(first, into=[broken, other]),
            catch(broken, other, error=Broken, to=rescue),
            join(broken, other, into=well),
            join(well, rescue, into=last),
        ]
        return Part(first, last)

    def woven(self) -> Part:
        """Any acyclic graph."""
        first, last = self.step(), self.step()
        inner: list[Step] = []
        needed: set[Step] = set()
        for _ in range(self.dice.randint(3, 6)):
            one = self.step()
            before = self.dice.sample(inner, self.dice.randint(0, min(2, len(inner))))
            self.rows.append(needs(one, before or [first]))
            needed |= set(before)
            inner.append(one)
        self.rows.append(needs(last, [one for one in inner if one not in needed]))
        return Part(first, last)


KINDS: list[Callable[[_Garden], Part]] = [
    *(_Garden.single, _Garden.sequence, _Garden.all_of, _Garden.some_of),
    *(_Garden.chosen, _Garden.routed, _Garden.mapped, _Garden.repeated),
    *(_Garden.caught, _Garden.woven),
]
