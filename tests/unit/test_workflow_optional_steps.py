"""Optional steps as they are declared: what is refused, what later steps get, and how the picture marks them."""

from typing import Any

from orchestrator.definition import (
    StepContext,
    Workflow,
    case,
    each,
    fork,
    repeat,
    route,
    run,
    step,
    stored,
    then,
    undo,
)
from tests.services.cases import cases
from tests.unit.workflows import (
    define,
    enough,
    large,
    look,
    refusal,
    steps,
    work,
)

a, b = steps("a b")
maybe = step(work, "maybe", optional=True)
look_maybe = step(look, "look_maybe", optional=True)


def needs_it(maybe: int) -> int:
    return maybe


def takes_none(maybe: int | None, context: StepContext) -> int:
    return maybe or 0


def has_default(maybe: int = 7) -> int:
    return maybe


def double(item: int) -> int:
    return 2 * item


class Child(Workflow):
    flow = (a,)


child = run(Child, "maybe", optional=True)


@cases(
    "giver, follower",
    (maybe, needs_it),
    (maybe, has_default),
    (child, needs_it),
    (maybe, step(double, args={"item": maybe})),
    (maybe, step(double, args={"item": stored("maybe")})),
)
def test_what_follows_an_optional_step_must_take_none(
    giver: Any, follower: Any
) -> None:
    refused = refusal(then(giver, follower))

    said = "but maybe is optional, and gives None when it has failed: write "
    assert said in refused.reason
    assert refused.reason.endswith(": int | None")


def test_what_takes_none_may_follow_an_optional_step() -> None:
    found = define(then(maybe, takes_none)).plan()["takes_none"].bindings

    assert (found[0].source, found[0].name) == ("result", "maybe")


DECIDES = "is optional, but its result decides what follows"


@cases(
    "row, reason",
    (route(look_maybe, case(large, to=a), otherwise=b), DECIDES),
    (fork(look_maybe, into=[a, case(large, to=b)]), DECIDES),
    (repeat(a, maybe, until=enough, at_most=2, then=b), DECIDES),
    (each(look_maybe, over="pages", do=double, into=a), "gives the list of double"),
    (
        each(look, over="pages", do=step(double, optional=True), into=a),
        "say how many elements may fail: tolerate=1.0",
    ),
    (undo(a, by=step(work, "back", optional=True)), "back undoes a, so it cannot be"),
    (then(step(work, optional=1), b), "optional=1 must be True or False"),  # type: ignore[arg-type]
)
def test_an_optional_step_is_refused_where_none_cannot_be_its_result(
    row: Any, reason: str
) -> None:
    assert reason in refusal(row).reason


@cases(
    "one, detail",
    (maybe, "optional"),
    (child, "child, optional"),
    (step(double, "maybe", args={"item": 1}, optional=True), "item = 1, optional"),
    (step(work, "maybe"), ""),
)
def test_the_picture_marks_an_optional_step(one: Any, detail: str) -> None:
    assert define(one).graph().nodes[0].detail == detail


def test_a_workflow_that_ends_with_an_optional_step_may_give_none() -> None:
    assert define(then(a, maybe)).result_type() == int | None
    assert define(then(maybe, a)).result_type() is int


def test_a_function_and_the_optional_step_of_it_are_one_step() -> None:
    optional = step(work, optional=True)

    for rows in ([then(work, a), optional], [optional, then(work, a)]):
        assert define(*rows).plan()["work"].step.optional
