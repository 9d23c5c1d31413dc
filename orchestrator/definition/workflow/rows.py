"""The rows of workflows. Engine, validator and diagram read the same rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from orchestrator.definition.labels import name_of
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
    """A branch that is taken if its predicate holds."""

    predicate: ResultPredicate
    to: StepLike
    priority: int = 0


def case(predicate: ResultPredicate, *, to: StepLike, priority: int = 0) -> Case:
    """Declare a branch of a `fork` or `route`. A route tries the highest priority first, then the order written."""
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
    """The end of branches. `wait_for` says how many it needs: all that were taken, every branch, one or a number."""

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
    """One run of `do` for each element of a list."""

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
    """A sequence that is repeated until the predicate holds for its last step's result, at most `at_most` times."""

    steps: tuple[StepLike, ...]
    until: ResultPredicate
    at_most: int
    then: StepLike
    otherwise: StepLike | None = None

    def __str__(self) -> str:
        return f"repeat({names(self.steps)}, until={name_of(self.until)})"


@dataclass(frozen=True)
class Catch(FlowRow):
    """The next step when one of the steps fails for good with an error of this type."""

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
    """Declare the first steps of the process. Without this row, it begins with all steps that have no source."""
    return Start(steps)


def then(*steps: StepLike) -> Then:
    """Declare a sequence: each step starts when the step before it is done."""
    return Then(steps)


def fork(
    step: StepLike,
    *,
    into: Sequence[StepLike | Case] | Mapping[Any, StepLike],
    on: str | None = None,
    otherwise: StepLike | None = None,
) -> Fork:
    """Declare branches that run at once.

    Args:
        step: the step before the branches.
        into: the branches: steps, `case(predicate, to=...)` for a branch with a condition, or with `on` value -> step.
        on: a field of the step's result. A branch is taken if its value equals the field, or is in the field's list.
        otherwise: the branch for results that take no branch with a condition. Without it, the step fails if no
            condition holds and nothing else follows the step.
    """
    return Fork(step, into, on, otherwise)


def join(
    *steps: StepLike,
    into: StepLike,
    wait_for: WaitFor = "all",
    on_failure: OnFailure = "wait",
    rest: Rest = "run",
) -> Join:
    """Declare where branches come together. The join does not wait for branches that were not taken.

    If too few branches were taken, the step after the join fails. If none was taken, that step is not taken either.

    Args:
        steps: the last steps of the branches.
        into: the step after them; it runs once.
        wait_for: "all" branches that were taken, "every" branch, "any" (the first), or a number. With "any" or a
            number the join tolerates failures of other branches.
        on_failure: "wait" lets the other branches continue when one fails for good, "fail_fast" cancels them.
        rest: "run" or "cancel": what happens to branches that still run when the join has what it needs.
    """
    return Join(steps, into, wait_for, on_failure, rest)


def needs(step: StepLike, needed: Sequence[StepLike]) -> Needs:
    """Declare that a step starts when other steps are done. Such rows can describe any acyclic graph."""
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
    """Run a step once for each element of a list. Its result for later steps is the list of all results in order.

    Args:
        step: the step whose result has the list.
        over: the field of the result; "" if the result itself is the list.
        do: the function or `run(...)` for each element.
        into: the step after the last element; it starts at once if the list is empty.
        item: the parameter of `do`, or the field of its Input, that gets the element.
        window: the number of elements that may run at once; None for all.
        tolerate: how many elements may fail for good: a number, or a share between 0 and 1. With 0 each failure
            waits for a person, and the other elements go on.
    """
    return Each(step, over, do, into, item, window, tolerate)


def route(
    step: StepLike,
    *cases: Case,
    on: str | None = None,
    to: Mapping[Any, StepLike] | None = None,
    otherwise: StepLike | None = None,
) -> Route:
    """Declare a choice of exactly one branch.

    Args:
        step: the step whose result decides.
        cases: branches with predicates; the first whose predicate holds is taken.
        on: a field of the result, instead of cases.
        to: the branch for each value of this field.
        otherwise: the branch for all other results.
    """
    return Route(step, cases, on, to, otherwise)


def repeat(
    *steps: StepLike,
    until: ResultPredicate,
    at_most: int,
    then: StepLike,
    otherwise: StepLike | None = None,
) -> Repeat:
    """Repeat a sequence until a condition holds.

    Args:
        steps: the sequence; each step has one visit in each round.
        until: the condition on the last step's result that ends the loop.
        at_most: the maximum number of rounds.
        then: the next step when the condition holds.
        otherwise: the next step when it does not hold after the last round; without it, the last step fails.
    """
    return Repeat(steps, until, at_most, then, otherwise)


def catch(*steps: StepLike, error: ErrorTypes, to: StepLike) -> Catch:
    """Catch an error: when one of the steps fails for good with it, the others are cancelled and `to` runs instead.

    Args:
        steps: the steps whose failures are caught.
        error: an exception class, or several: `error=(ConnectionError, TimedOut)`.
        to: the step that runs instead. It can take the `Failure` as a parameter.
    """
    return Catch(steps, error, to)


def error_types(error: ErrorTypes) -> tuple[type[BaseException], ...]:
    """Return the types that a row catches."""
    return error if isinstance(error, tuple) else (error,)


def undo(step: StepLike, *, by: StepLike) -> Undo:
    """Declare the function or step that undoes a finished step when the process fails or is cancelled."""
    return Undo(step, by)


def name(value: StepLike) -> str:
    """Return the name of a step in a row."""
    return str(getattr(value, "name", "") or name_of(value))


def names(values: Sequence[StepLike]) -> str:
    """Return the names of steps, at most MOST_NAMES of them."""
    shown = ", ".join(map(name, values[:MOST_NAMES]))
    more = len(values) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
