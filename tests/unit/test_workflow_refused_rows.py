"""The import refuses invalid rows and steps with class, row and reason. Each test case has one rule."""

# These steps are declared and never run.
# mypy: disable-error-code="empty-body"

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import Any

from orchestrator.definition import (
    Workflow,
    ask,
    case,
    catch,
    each,
    fork,
    ignore,
    join,
    needs,
    park,
    repeat,
    route,
    run,
    sleep,
    start,
    step,
    stored,
    then,
    undo,
    wait,
    when,
)
from tests.services.cases import cases
from tests.unit import shop
from tests.unit.workflows import (
    Approved,
    Input,
    Inquiry,
    Priority,
    define,
    enough,
    large,
    look,
    refusal,
    steps,
    work,
)

a, b, c, d = steps("a b c d")
Shop = shop.define()
HOUR = timedelta(hours=1)


class Empty(StrEnum):
    pass


class Choice(StrEnum):
    YES = "yes"
    NO = "no"


async def later() -> int: ...


async def endless() -> AsyncIterator[int]:
    yield 1


def many() -> Iterator[int]:
    yield 1


def no_argument() -> bool: ...


def two(one: int, other: int) -> bool: ...


def element(item: int) -> int: ...


def total(element: list[int]) -> int: ...


def echo(words: str) -> str: ...


def echoing(**args: Any) -> Any:
    return step(echo, "e", args=args)


def run_it(index: int) -> Callable[[], Any]:
    return lambda: index


anonymous: Any = run_it(1)
untrue: Any = no_argument
slow: Any = later
bit_by_bit: Any = many
unfit: Any = two
pages: Any = partial(each, look, over="pages", do=element, into=total)
first: Any = partial(repeat, until=enough, at_most=2, then=d)

ROWS: list[tuple[Any, str]] = [
    *((row, "it is not a row") for row in ("then", Inquiry)),
    (start(), "name the steps that start"),
    (start(a, a), "a is named twice"),
    (then(a), "name at least two steps"),
    (then(a, 7), "7 cannot be a step: a function is needed"),  # type: ignore[arg-type]
    (then(a, anonymous), "a step is a named function"),
    (then(a, Approved), "write wait(Approved) to wait for an event"),
    (then(a, Inquiry), "cannot be a step: a function is needed"),
    (needs(a, []), "name what a needs"),
    (fork(a, into=[]), "name the branches"),
    (fork(a, into={1: b}), "into={value: step} and on=... belong together"),
    (fork(a, on="x", into=[b]), "into={value: step} and on=... belong together"),
    (fork(a, into=[b], otherwise=c), "otherwise needs branches with a condition"),
    (fork(look, into=[case(anonymous, to=b)]), "a condition is a named function"),
    (join(b, into=c), "name at least two steps that come together"),
    *((row, "b is named twice") for row in (needs(a, [b, b]), fork(a, into=[b, b]))),
    (join(b, b, into=c), "b is named twice"),
    (join(a, b, into=c, wait_for=0), "wait_for=0 must be"),
    (join(a, b, into=c, wait_for=3), "wait_for=3 is more than the 2 steps"),
    (join(a, b, into=c, wait_for=True), "wait_for=True must be"),
    (join(a, b, into=c, wait_for="each"), "wait_for='each' must be"),  # type: ignore[arg-type]
    (join(a, b, into=c, on_failure="stop"), "on_failure='stop' must be"),  # type: ignore[arg-type]
    (join(a, b, into=c, rest="drop"), "rest='drop' must be"),  # type: ignore[arg-type]
    (pages(window=0), "window=0 must be a whole number from 1"),
    (pages(tolerate=-1), "tolerate=-1 must be a whole number from 0, or a share"),
    (pages(tolerate=1.5), "tolerate=1.5 must be a whole number from 0, or a share"),
    (pages(item="the item"), "item='the item' must be the name of a parameter"),
    (pages(over=1), "over is the name of a field"),
    (fork(look, on=1, into={1: a}), "on=1 must be the name of a field"),  # type: ignore[arg-type]
    (route(look, on=1, to={1: a}), "on=1 must be the name of a field"),  # type: ignore[arg-type]
    (route(look, on="size", to=[a]), "to={value: step} maps the field's values"),  # type: ignore[arg-type]
    (
        route(look, case(large, to=a, priority="high"), otherwise=b),  # type: ignore[arg-type]
        "priority='high' must be a whole number",
    ),
    (route(look), "give either on=... with to={value: step}, or cases"),
    (route(look, on="size"), "give either on=... with to={value: step}, or cases"),
    (route(look, a), "a needs a condition: case(predicate, to=a)"),  # type: ignore[arg-type]
    (route(look, case(large, to=b)), "predicates may all fail"),
    (route(look, case(untrue, to=b), otherwise=c), "must take one argument"),
    (route(look, case(unfit, to=b), otherwise=c), "must take one argument"),
    (route(look, case(slow, to=b), otherwise=c), "later is asynchronous: a condition"),
    (fork(look, into=[case(bit_by_bit, to=b)]), "many yields: a condition is"),
    (first(), "name the steps that are repeated"),
    (first(a, a), "a is named twice"),
    (first(a, at_most=0), "at_most=0 must be a whole number from 1"),
    (first(a, at_most=None), "at_most=None must be a whole number from 1"),
    (first(a, until=anonymous), "a condition is a named function"),
    (first(a, until=slow), "later is asynchronous: a condition is a plain function"),
    (catch(error=ValueError, to=b), "name the steps whose failure is caught"),
    (catch(a, error=KeyboardInterrupt, to=b), "is not an Exception class"),
    (catch(a, error="ValueError", to=b), "is not an Exception class"),  # type: ignore[arg-type]
    (catch(a, error=(), to=b), "name the errors that are caught"),
    (catch(a, error=(ValueError, int), to=b), "is not an Exception class"),  # type: ignore[arg-type]
    (catch(a, error=(OSError, ValueError), to=a), "a cannot catch its own failure"),
    (catch(a, error=ValueError, to=a), "a cannot catch its own failure"),
    (undo(a, by=None), "cannot be what undoes a step"),  # type: ignore[arg-type]
    (undo(a, by=anonymous), "what undoes a step is a named function"),
    (undo(a, by=wait(Approved)), "None cannot be what undoes a step: a function"),
    (undo(a, by=step(work, retries=-1)), "work: retries=-1 must be a whole number"),
]


@cases("row, reason", *ROWS)
def test_a_row_that_makes_no_sense_is_refused(row: Any, reason: str) -> None:
    refused = refusal(row)

    assert reason in refused.reason
    assert refused.row == str(row)


class Child(Workflow):
    flow = (a,)


class Shared(Workflow):
    """No flow: it only shares attributes."""


LATE, LONG_SLEEP = wait(Approved, deadline=timedelta.max), sleep(timedelta.max, "s")
STEPS: list[tuple[Any, str]] = [
    (step(work, "n" * 101), "has 101 characters, at most 100 are stored"),
    *(
        (step(work, name), "must be text that is not blank, without control")
        for name in ("a\nb", " ")
    ),
    (step(work, gives="n" * 101), "has 101 characters"),
    (step(work, retries=-1), "retries=-1 must be a whole number from 0"),
    (step(work, retries={ValueError: -2}), "retries=-2 must be a whole number"),
    (step(work, retries={int: 1}), "retries by error: int is not an Exception"),  # type: ignore[dict-item]
    (step(work, timeout=0), "timeout=0 must be seconds, more than 0"),
    (step(work, timeout=float("inf")), "timeout=inf must be seconds"),
    (step(work, timeout=1e12), "must be seconds, more than 0 and at most 1,000 years"),
    (step(work, timeout=float("nan")), "timeout=nan must be seconds"),
    (step(work, timeout=None), "timeout=None must be seconds"),  # type: ignore[arg-type]
    (step(work, heartbeat=-1), "heartbeat=-1 must be seconds"),
    (step(work, timeout=10, heartbeat=10), "heartbeat=10 must be less than timeout=10"),
    (step(work, backoff=0), "backoff=0 must be seconds"),
    (step(work, concurrency=0), "concurrency=0 must be a whole number from 1"),
    (step(work, queue=None), "queue=None must be the name of a queue"),  # type: ignore[arg-type]
    (step(later, transactional=True), "it is asynchronous and transactional: nothing"),
    (step(work, threads=2, transactional=True), "threads and transactional: nothing"),
    (step(later, threads=2), "later is asynchronous and needs no threads"),
    (step(work, threads=0), "threads=0 must be a whole number from 1"),
    (step(endless), "endless yields: a step returns one result"),
    (step(many), "many yields: a step returns one result"),
    (step(anonymous, "x"), "a step is a named function"),
    (wait(Inquiry), "is not an Event class"),  # type: ignore[arg-type]
    (wait(Approved, deadline=-HOUR), "must be a timedelta of more than 0"),
    (wait(Approved, deadline=60), "must be a timedelta of more than 0"),  # type: ignore[arg-type]
    (wait(Approved, late=a), "late=... needs a deadline"),
    (wait(Approved, deadline=HOUR, late=7), "7 cannot be a step"),  # type: ignore[arg-type]
    (wait(Approved, "w", anonymous), "a condition is a named function"),
    (wait(Approved, "w", untrue), "must take one argument"),
    (wait(Approved, "w", slow), "later is asynchronous: a condition is a plain"),
    (wait(Approved, "w", bit_by_bit), "many yields: a condition is a plain"),
    *((endless_wait, "at most 1,000 years") for endless_wait in (LATE, LONG_SLEEP)),
    (wait(Approved, otherwise=ignore), "otherwise=... needs a guard"),
    (wait(Approved, by="x", otherwise=work), "it must be park, ignore or reject"),  # type: ignore[arg-type]
    (wait(Approved, by="x", otherwise="ignore"), "it must be park, ignore or reject"),  # type: ignore[arg-type]
    (wait(Approved, colour="red"), "Approved has no field 'colour'"),
    (wait(Approved, by=[]), "accepts nothing"),
    (wait(Approved, by=7), "wants by: str, which 7 is not"),
    (wait(Approved, by=stored("nobody")), "no result before wait_for_approved and no"),
    (wait(Approved, by=stored("count")), "wants by: str, but it gets int"),
    (sleep(-HOUR, "s"), "which must be a timedelta of more than 0"),
    (sleep(60), "it sleeps for 60, which must be a timedelta"),  # type: ignore[arg-type]
    (echoing(words="x", colour=1), "echo has no parameter 'colour'"),
    (echoing(words=7), "wants words: str, which 7 is not"),
    (echoing(words=stored("count")), "wants words: str, but it gets int"),
    (echoing(words=stored("nobody")), "no result before e and no"),
    (echoing(words=work), "is that of work, which does not come before e"),
    (ask("decide", Empty), "choices is a StrEnum or a TextChoices with members"),
    (ask("decide", Priority.LOW), "choices is a StrEnum or a TextChoices with members"),  # type: ignore[arg-type]
    (run(Inquiry), "is not a Workflow with a flow"),  # type: ignore[arg-type]
    (run(Shared), "is not a Workflow with a flow"),
    (run(Shop), "start it in a step with start_process(Shop, ...), then wait(...)"),  # type: ignore[arg-type]
]


@cases("one, reason", *STEPS)
def test_a_step_that_makes_no_sense_is_refused(one: Any, reason: str) -> None:
    assert reason in refusal(one).reason
    assert reason in refusal(then(step(work, "before"), one)).reason


@cases(
    "row, reason",
    (park(Approved), "except ignore(Event)"),
    (when(Approved), "except ignore(Event)"),
    (ignore(Approved, by="Ito"), "in a flow it has no guards"),
    (ignore(Inquiry), "is not an Event class"),  # type: ignore[arg-type]
)
def test_a_flow_has_one_row_of_process_managers(row: Any, reason: str) -> None:
    refused = refusal(then(a, wait(Approved)), row)
    assert (refused.row.split(" ")[0], reason in refused.reason) == (
        row.trigger_text,
        True,
    )


def test_another_definition_is_run_or_started_and_waited_for() -> None:
    assert "write run(Child)" in refusal(then(a, Child)).reason
    assert "start_process(Shop, ...)" in refusal(then(a, Shop)).reason


def other_work() -> int: ...


@cases("second", step(other_work, "work"), step(work, gives="n"), ask("work", Choice))
def test_two_steps_cannot_have_one_name(second: Any) -> None:
    refused = refusal(step(work, retries=1), then(second, b))

    assert refused.reason == "two steps are called work; give one another name"


def test_a_function_and_the_same_one_with_a_policy_are_one_step() -> None:
    plan = define(then(work, b), step(work, retries=7)).plan()

    assert plan["work"].step.policy.retries == 7
    assert len(plan.vertices) == 2


def test_two_steps_cannot_give_one_result() -> None:
    refused = refusal(then(step(work, "x", gives="n"), step(work, "y", gives="n")))

    assert refused.reason == "x and y both give n"


# The class


@dataclass(frozen=True)
class Odd:
    call: Callable[[], int]


@cases(
    "attributes, reason",
    ({"name": "a name"}, "the name 'a name' must be 1 to 100 letters"),
    ({"name": "n" * 101}, "must be 1 to 100 letters"),
    ({"version": 0}, "the version 0 must be a whole number from 1"),
    ({"queue": ""}, "the queue '' must be the name of a queue"),
    ({"patience": 60}, "the patience 60 must be 0 or a timedelta"),
    ({"summary": staticmethod(slow)}, "summary is asynchronous: it is a plain"),
    ({"Input": int}, "declare `Input` as a dataclass"),
    ({"Input": Input("T-1")}, "declare `Input` as a dataclass"),
    ({"Input": Odd}, "Input cannot be written as JSON"),
    ({"correlation": "order"}, "the correlation field 'order' is not in its Input"),
    ({"flow": ()}, "the flow has no steps"),
    ({"flow": then(a, b)}, "flow holds rows: flow = (then(...), ...)"),
    ({"flow": 7}, "flow holds rows: flow = (then(...), ...)"),
)
def test_a_wrong_class_is_refused(attributes: dict[str, Any], reason: str) -> None:
    refused = refusal(**{"flow": (a,), **attributes})

    assert reason in refused.reason
    assert refused.row == ""


def test_the_name_is_that_of_the_class_unless_it_is_given() -> None:
    assert define(a).name == "flow"
    assert define(a, name="other").name == "other"
