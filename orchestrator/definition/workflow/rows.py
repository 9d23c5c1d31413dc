"""The rows a workflow is made of. Engine, validator and diagram read the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.definition.words import name_of
from orchestrator.definition.workflow.steps import StepLike

ResultPredicate = Callable[[Any], bool]
"""A named condition on the result of the row's first step."""

WaitFor = Literal["all", "every", "any"] | int
ErrorTypes = type[BaseException] | tuple[type[BaseException], ...]
OnFailure = Literal["wait", "fail_fast"]
Rest = Literal["run", "cancel"]

MOST_NAMES = 12
"""Most steps that a row names in a message."""


@dataclass(frozen=True)
class Case:
    """A branch that is taken when its predicate holds."""

    predicate: ResultPredicate
    to: StepLike
    priority: int = 0


def case(predicate: ResultPredicate, *, to: StepLike, priority: int = 0) -> Case:
    """A branch for `fork` or `route`; a route tries the highest priority first, then the order written."""
    return Case(predicate, to, priority)


class FlowRow:
    """The base of all rows. Messages show its `str`."""


@dataclass(frozen=True)
class Start(FlowRow):
    steps: tuple[StepLike, ...]

    def __str__(self) -> str:
        return f"start({names(self.steps)})"


@dataclass(frozen=True)
class Then(FlowRow):
    steps: tuple[StepLike, ...]

    def __str__(self) -> str:
        return f"then({names(self.steps)})"


@dataclass(frozen=True)
class Fork(FlowRow):
    """Branches that run at once: all of them, or those whose condition holds."""

    step: StepLike
    into: Sequence[StepLike | Case] | Mapping[Any, StepLike]
    on: str | None = None
    otherwise: StepLike | None = None

    def __str__(self) -> str:
        field = f", on={self.on!r}" if self.on is not None else ""
        return f"fork({name(self.step)}{field})"


@dataclass(frozen=True)
class Join(FlowRow):
    """Where branches come together. `wait_for`: all that were taken, every one there is, the first, or that many."""

    steps: tuple[StepLike, ...]
    into: StepLike
    wait_for: WaitFor = "all"
    on_failure: OnFailure = "wait"
    rest: Rest = "run"

    def __str__(self) -> str:
        return f"join({names(self.steps)}, into={name(self.into)})"


@dataclass(frozen=True)
class Needs(FlowRow):
    step: StepLike
    needed: tuple[StepLike, ...]

    def __str__(self) -> str:
        return f"needs({name(self.step)}, [{names(self.needed)}])"


@dataclass(frozen=True)
class Each(FlowRow):
    """One run of `do` for each element of a list that is known when the process runs."""

    step: StepLike
    over: str
    do: StepLike
    into: StepLike
    item: str = "item"
    window: int | None = None
    tolerate: int | float = 0

    def __str__(self) -> str:
        return f"each({name(self.step)}, over={self.over!r}, do={name(self.do)})"


@dataclass(frozen=True)
class Route(FlowRow):
    """Exactly one of several branches, by a field's value or by predicates in the order of their priority."""

    step: StepLike
    cases: tuple[Case, ...] = ()
    on: str | None = None
    to: Mapping[Any, StepLike] | None = None
    otherwise: StepLike | None = None

    def __str__(self) -> str:
        field = f", on={self.on!r}" if self.on is not None else ""
        return f"route({name(self.step)}{field})"


@dataclass(frozen=True)
class Repeat(FlowRow):
    """A sequence that is run again until the predicate holds of its last step's result, at most so many times."""

    steps: tuple[StepLike, ...]
    until: ResultPredicate
    at_most: int
    then: StepLike
    otherwise: StepLike | None = None

    def __str__(self) -> str:
        return f"repeat({names(self.steps)}, until={name_of(self.until)})"


@dataclass(frozen=True)
class Catch(FlowRow):
    """Where to go when one of the steps fails for good with an error of this type."""

    steps: tuple[StepLike, ...]
    error: ErrorTypes
    to: StepLike

    def __str__(self) -> str:
        error = ", ".join(map(name_of, error_types(self.error)))
        if isinstance(self.error, tuple):
            error = f"({error})"
        return f"catch({names(self.steps)}, error={error}, to={name(self.to)})"


@dataclass(frozen=True)
class Undo(FlowRow):
    step: StepLike
    by: StepLike

    def __str__(self) -> str:
        return f"undo({name(self.step)}, by={name(self.by)})"


def start(*steps: StepLike) -> Start:
    """Where the process begins; several steps begin at once. Without it, all steps that nothing leads to begin."""
    return Start(steps)


def then(*steps: StepLike) -> Then:
    """A sequence: each step starts when the one before it is done."""
    return Then(steps)


def fork(
    step: StepLike,
    *,
    into: Sequence[StepLike | Case] | Mapping[Any, StepLike],
    on: str | None = None,
    otherwise: StepLike | None = None,
) -> Fork:
    """Branches that run at once.

    Args:
        step: after which they start.
        into: the branches; with `case(predicate, to=...)` only when its predicate holds; with `on`, by value.
        on: a field of the step's result: a branch is taken for each value in it, or equal to it.
        otherwise: taken when no branch with a condition is. Without it, and where nothing else follows the step, at
            least one condition must hold, or the step fails.
    """
    return Fork(step, into, on, otherwise)


def join(
    *steps: StepLike,
    into: StepLike,
    wait_for: WaitFor = "all",
    on_failure: OnFailure = "wait",
    rest: Rest = "run",
) -> Join:
    """Branches come together; one that was not taken is not waited for.

    When fewer were taken than it needs, it starves: the step after it fails. If none was, that is not taken either.

    Args:
        steps: the last steps of the branches.
        into: the step after them; it runs once.
        wait_for: "all" that were taken; "every" one there is; "any" (the first), or how many: others that fail are then
            put up with.
        on_failure: "wait" lets the other branches go on when one fails for good, "fail_fast" cancels them.
        rest: what becomes of branches that are still running when the join no longer waits for them.
    """
    return Join(steps, into, wait_for, on_failure, rest)


def needs(step: StepLike, needed: Sequence[StepLike]) -> Needs:
    """The step starts as soon as all that it needs is done; any acyclic graph can be written so."""
    return Needs(step, tuple(needed))


def each(
    step: StepLike,
    *,
    over: str,
    do: StepLike,
    into: StepLike,
    item: str = "item",
    window: int | None = None,
    tolerate: int | float = 0,
) -> Each:
    """Runs a step once for each element of a list.

    Args:
        step: whose result has the list.
        over: the field of the result; "" when the result itself is the list.
        do: a function or `run(...)`, for each element. Its result, for later steps, is the list of results in order.
        into: the step after all of them; at once when the list is empty.
        item: the parameter of `do`, or the field of its Input, that gets the element.
        window: how many may run at once; None for all.
        tolerate: how many elements may fail for good: a number, or a share between 0 and 1.
    """
    return Each(step, over, do, into, item, window, tolerate)


def route(
    step: StepLike,
    *cases: Case,
    on: str | None = None,
    to: Mapping[Any, StepLike] | None = None,
    otherwise: StepLike | None = None,
) -> Route:
    """Exactly one branch: by a field of the result (`on`, `to`), or the first case whose predicate holds."""
    return Route(step, cases, on, to, otherwise)


def repeat(
    *steps: StepLike,
    until: ResultPredicate,
    at_most: int,
    then: StepLike,
    otherwise: StepLike | None = None,
) -> Repeat:
    """Runs a sequence again and again.

    Args:
        steps: the sequence; each of them has a visit for each round.
        until: the condition on the last one's result that ends the loop.
        at_most: how many rounds at most.
        then: where it goes on when the condition holds.
        otherwise: where it goes on when it does not hold after the last round; without it, the last step fails.
    """
    return Repeat(steps, until, at_most, then, otherwise)


def catch(*steps: StepLike, error: ErrorTypes, to: StepLike) -> Catch:
    """When one of the steps fails for good with such an error, the others are cancelled and `to` runs instead.

    Args:
        steps: whose failure is caught.
        error: a type of errors, or several: `error=(ConnectionError, TimedOut)`.
        to: the step that runs instead; a parameter annotated `Failure` tells it what has happened.
    """
    return Catch(steps, error, to)


def error_types(error: ErrorTypes) -> tuple[type[BaseException], ...]:
    """The types that a row catches."""
    return error if isinstance(error, tuple) else (error,)


def undo(step: StepLike, *, by: StepLike) -> Undo:
    """What undoes a finished step when the process fails or is cancelled: a function, or a step with a policy."""
    return Undo(step, by)


def name(value: StepLike) -> str:
    """The name of the step that a row names."""
    return str(getattr(value, "name", "") or name_of(value))


def names(values: Sequence[StepLike]) -> str:
    """The names of steps, at most MOST_NAMES of them."""
    shown = ", ".join(map(name, values[:MOST_NAMES]))
    more = len(values) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
