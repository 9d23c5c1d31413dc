"""Steps that fail, and say in every way what that means."""

import sys
from datetime import timedelta

from orchestrator import CorruptInput, Permanent, Retry, Skip
from orchestrator.definition import (
    StepContext,
    Workflow,
    case,
    route,
    start,
    step,
    then,
)
from tests.apps.patterns.ledger import note
from tests.apps.patterns.patterns import How, Number


class Transient(Exception):
    """Something that passes."""


def fail_at_first(number: int, context: StepContext) -> int:
    """Fails in so many attempts."""
    if context.attempt <= number:
        raise Transient(f"attempt {context.attempt}")
    return context.attempt


class Flaky(Workflow):
    """A step that fails at first."""

    Input = Number
    flow = (step(fail_at_first, "flaky", backoff=40.0),)


DAY = 86_400.0  # seconds


class Unhurried(Workflow):
    """The same, whose pause is over only when somebody says so: chance hardly ever makes it a short one."""

    Input = Number
    flow = (step(fail_at_first, "unhurried", backoff=DAY),)


class Choosy(Workflow):
    """Another number of attempts for one type of error."""

    Input = How

    @staticmethod
    def choose(how: str, context: StepContext) -> int:
        if how == "transient":
            raise Transient
        if context.attempt < 6 and how == "value":
            raise ValueError(how)
        return context.attempt

    flow = (
        step(choose, "choose", retries={Transient: 0, ValueError: 6}, backoff=0.01),
    )


def say(how: str, context: StepContext) -> int | Retry | Permanent | Skip:
    """Says in every way how it went."""
    outcomes: dict[str, Retry | Permanent | Skip] = {
        "retry": Retry(timedelta(seconds=40), "not yet"),
        "retry at last": Retry(timedelta.max, "not yet"),
        "retry at first": Retry(timedelta.min, "not yet"),
        "permanent": Permanent("never"),
        "skip": Skip("not needed", 7),
        "skip without": Skip("not needed"),
    }
    kind, _, way = how.partition(" by ")
    if kind not in outcomes or context.attempt > 1:
        return context.attempt
    if way == "raising":
        raise outcomes[kind]
    return outcomes[kind]


def hear(say: int | None = None) -> int | None:
    return say


class Saying(Workflow):
    """A step that says how it went, and one that hears it."""

    Input = How
    flow = (then(say, hear),)


def measure(number: int) -> int:
    note("measure")
    return number


def believe(measure: int) -> int:
    note("believe")
    return measure


def doubt(measure: int, context: StepContext) -> int:
    """Does not believe the first measurement, or none."""
    note("doubt")
    if measure < 0 or (context.attempt == 1 and not context.saved):
        context.save("doubted")
        raise CorruptInput("measure", "it cannot be")
    return measure


class Doubting(Workflow):
    """A step that finds the result of an earlier one bad."""

    Input = Number
    flow = (then(measure, believe, doubt),)


# Ways on that cannot be told


def judge(how: str) -> str:
    return how


def is_good(how: str) -> bool:
    if how == "exit":
        sys.exit("from a predicate")
    raise ValueError(f"cannot judge {how}")


def good(judge: str) -> str:
    return judge


def bad(judge: str) -> str:
    return judge


class Judging(Workflow):
    """A route whose predicate fails."""

    Input = How
    flow = (
        start(step(judge, retries=0)),
        route(judge, case(is_good, to=good), otherwise=bad),
    )
