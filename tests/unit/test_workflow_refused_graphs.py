"""Refused graphs: cycles, unreachable steps, contradicting rows, values without a branch."""

# These steps are declared and never run.
# mypy: disable-error-code="empty-body"

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any, Literal

import pytest

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
    repeat,
    route,
    run,
    start,
    step,
    then,
    undo,
    wait,
)
from orchestrator.exceptions import InvalidDefinition
from tests.services.cases import cases
from tests.unit.workflows import (
    Approved,
    Input,
    Medium,
    Priority,
    define,
    enough,
    large,
    look,
    refusal,
    steps,
    work,
)

a, b, c, d, e, x = steps("a b c d e x")


# Cycles


LARGE_TO_A = route(look, case(large, to=a), otherwise=b)


@cases(
    "rows, cycle",
    ([then(a, a)], "a -> a"),
    ([then(a, b, c, a)], "a -> b -> c -> a"),
    ([start(a), then(a, b, c), then(c, b)], "b -> c -> b"),
    ([needs(a, [b]), needs(b, [c]), needs(c, [a])], "b -> a -> c -> b"),
    ([start(x), then(x, a, b), catch(b, error=ValueError, to=a)], "a -> b -> a"),
    ([then(x, a), LARGE_TO_A, then(a, look)], "a -> look -> a"),
)
def test_a_cycle_is_named_in_full(rows: list[Any], cycle: str) -> None:
    refused = refusal(*rows)

    assert cycle in refused.reason
    assert "write repeat(...) for a loop" in refused.reason
    assert refused.row


def test_a_long_cycle_is_found_without_recursion() -> None:
    ring = [step(work, f"s{number}") for number in range(5000)]

    refused = refusal(then(*ring, ring[0]))

    assert refused.reason.count(" -> ") == 5000


def test_a_wait_that_is_late_cannot_lead_back() -> None:
    late = wait(Approved, "late", deadline=timedelta(1), late=a)

    assert "a -> late -> a" in refusal(then(a, late)).reason


# Reach


@cases(
    "rows, row, reason",
    ([start(a), then(a, b)], then(c, d), "nothing leads from start to c"),
    ([start(a, b)], then(a, b), "b starts, so a cannot lead to it"),
)
def test_every_step_can_be_reached(rows: list[Any], row: Any, reason: str) -> None:
    refused = refusal(*rows, row)

    assert (refused.reason, refused.row) == (reason, str(row))


# Rows that cross each other

REPEATED = repeat(b, c, until=enough, at_most=2, then=d)
REPEATED_A = repeat(a, b, until=enough, at_most=2, then=c)

CROSSED: list[tuple[list[Any], str]] = [
    ([then(look, a), LARGE_TO_A], "look leads to a both always and on a condition"),
    ([fork(look, into=[a, case(large, to=a)])], "look leads to a both always and"),
    ([join(a, b, into=c), join(d, e, into=c)], "c has a join already"),
    ([join(a, b, into=c), then(d, c)], "d leads to c beside its join"),
    (
        [
            fork(look, on="media", into={Medium.TEXT: b, Medium.IMAGE: b}),
            then(look, a),
            join(a, look, into=b, wait_for="any"),
        ],
        "a step that leads to it in two ways cannot be counted",
    ),
    ([then(a, b), REPEATED, then(b, e)], "b is repeated, so it cannot lead elsewhere"),
    ([REPEATED, then(c, e)], "c is repeated, so it cannot lead elsewhere"),
    ([then(a, c), REPEATED], "c is repeated after b, so a cannot lead to it"),
    ([REPEATED_A, catch(a, error=ValueError, to=b)], "b is in the loop that is left"),
    ([REPEATED_A, REPEATED], "b is in two loops; make the inner one a run"),
    (
        [catch(a, error=ValueError, to=x), then(b, x)],
        "x catches failures, so b cannot lead to it too",
    ),
    (
        [catch(a, error=Exception, to=x), catch(a, error=ValueError, to=b)],
        "a failure of a with ValueError is caught by a row before it",
    ),
    ([undo(a, by=work), undo(a, by=work)], "a is undone twice"),
]


@cases("rows, reason", *CROSSED)
def test_rows_that_cross_each_other_are_refused(rows: list[Any], reason: str) -> None:
    refused = refusal(*rows)

    assert reason in refused.reason
    assert refused.row


# Maps


def element(item: int) -> int: ...


def total(element: list[int]) -> int: ...


def nothing() -> int: ...


class Reading(Workflow):
    @dataclass(frozen=True)
    class Input:
        page: int = 1

    flow = (a,)


def mapped(over: str, do: Any = element, into: Any = total, **more: Any) -> Any:
    return each(look, over=over, do=do, into=into, **more)


@cases(
    "rows, reason",
    ([mapped("leaves")], "has no field 'leaves'"),
    ([mapped("size")], "the field 'size' of look is no list"),
    ([each(work, over="", do=element, into=total)], "the result of work is no list"),
    (
        [mapped("pages", item="page")],
        "but no result and no field of Input has that name",
    ),
    (
        [mapped("pages", nothing, a)],
        "nothing runs for each element, but nothing has no 'item' that gets it",
    ),
    (
        [mapped("pages"), then(a, element)],
        "element runs for each element, so nothing else may lead to it",
    ),
    ([mapped("pages"), mapped("pages", into=a)], "element is used by two maps"),
    (
        [mapped("pages", run(Reading, "reading"), a)],
        "reading runs for each element, but Reading.Input has no 'item' that gets it",
    ),
    (
        [mapped("media", run(Reading, "r"), a, item="page")],
        "Reading.Input wants page: int, but it gets Medium",
    ),
    (
        [mapped("pages", wait(Approved), a)],
        "wait_for_approved cannot wait for each element: let do=run(...) run a workflow that waits",
    ),
)
def test_a_map_runs_a_function_over_a_list(rows: list[Any], reason: str) -> None:
    assert reason in refusal(*rows).reason


# Values without a way


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"
    GREEN = "green"


def colour() -> Colour: ...


def flag() -> bool: ...


def mode() -> Literal["fast", "slow"]: ...


def maybe() -> Colour | None: ...


@cases(
    "row, missing",
    (route(look, on="priority", to={Priority.LOW: a}), "priority = urgent"),
    (route(colour, on="", to={Colour.RED: a}), "the result = blue, green"),
    (route(flag, on="", to={True: a}), "the result = False"),
    (route(mode, on="", to={"fast": a}), "the result = slow"),
    (route(maybe, on="", to=dict.fromkeys(Colour, a)), "the result = None"),
    (route(ask("q", Colour), on="", to={Colour.RED: a}), "the result = blue, green"),
    (fork(look, on="priority", into={Priority.LOW: a}), "priority = urgent"),
)
def test_every_value_that_must_take_a_way_has_a_case(row: Any, missing: str) -> None:
    refused = refusal(row)

    assert f"no case for {missing}:" in refused.reason
    assert refused.row == str(row)


@cases(
    "rows",
    [route(look, on="priority", to={Priority.LOW: a}, otherwise=b)],
    [route(look, on="size", to={1: a})],
    [route(flag, on="", to={True: a, False: b})],
    [fork(look, on="media", into={Medium.TEXT: a})],
    [fork(look, on="priority", into={Priority.LOW: a}, otherwise=b)],
    [then(look, b), fork(look, on="priority", into={Priority.LOW: a})],
)
def test_what_may_stay_without_a_case(rows: list[Any]) -> None:
    assert define(*rows)


SEVERAL = "media holds several values: write fork(...)"


@cases(
    "row, reason",
    (route(look, on="urgency", to={1: a}), "the result of look has no field"),
    (fork(work, on="x", into={1: a}), "the result of work has no field 'x'"),
    (fork(look, on="media", into={Priority.LOW: a}), "media can never be 'low'"),
    (route(look, on="priority", to={"blue": a}, otherwise=b), "can never be 'blue'"),
    (route(look, on="media", to={Medium.TEXT: a}, otherwise=b), SEVERAL),
    (
        route(work, case(large, to=a), otherwise=b),
        "large wants Inquiry, but work gives",
    ),
    (repeat(look, until=enough, at_most=2, then=a), "enough wants int, but look gives"),
)
def test_conditions_fit_the_result(row: Any, reason: str) -> None:
    assert reason in refusal(row).reason


def children(*, deep: bool) -> type[Workflow]:
    """A workflow that runs itself, at once or in a workflow between."""

    def flow(input: Input) -> Iterable[Any]:
        return [run(found[-1])]

    found = [define(flow=flow)]
    if deep:
        found.append(
            type("Between", (Workflow,), {"Input": Input, "flow": (run(found[0]),)})
        )
    return found[0]


@cases("deep", False, True)
def test_no_workflow_runs_itself(deep: bool) -> None:
    with pytest.raises(InvalidDefinition, match="runs Flow itself, without end"):
        children(deep=deep).plan(Input("T-1"))


def made(*rows: Any) -> Callable[[Input], Iterable[Any]]:
    def flow(input: Input) -> Iterable[Any]:
        return rows

    return flow


def test_a_graph_made_from_the_input_waits_for_events_that_are_named() -> None:
    unnamed = define(flow=made(then(a, wait(Approved))))
    named = define(flow=made(then(a, wait(Approved))), waits_for=[Approved])

    with pytest.raises(InvalidDefinition, match=r"add Approved to waits_for = \(...\)"):
        unnamed.plan(Input("T-1"))
    with pytest.raises(InvalidDefinition, match=r"it ignores Approved, but which"):
        define(flow=made(a, ignore(Approved))).plan(Input("T-1"))
    assert named.plan(Input("T-1"))["wait_for_approved"].step.event is Approved
    assert named.events == {"Approved": Approved}
    assert named.can_handle(Approved("Ito"))


@cases(
    "attributes, reason",
    ({"flow": made(a), "waits_for": Approved}, "waits_for holds Event classes"),
    ({"flow": made(a), "waits_for": [Input]}, "waits_for holds Event classes, and"),
    ({"waits_for": [Approved]}, "waits_for is for a graph made from the input"),
)
def test_only_events_are_named(attributes: dict[str, Any], reason: str) -> None:
    assert reason in refusal(**{"flow": (a,), **attributes}).reason


def test_a_graph_made_from_the_input_is_checked_like_any_other() -> None:
    flow = define(flow=made(then(a, b, a)))

    with pytest.raises(InvalidDefinition, match="a -> b -> a"):
        flow.plan(Input("T-1"))


def test_a_graph_made_from_the_input_has_as_many_steps_as_that_says() -> None:
    def flow(input: Input) -> Iterable[Any]:
        yield then(a, *(step(work, f"s{number}") for number in range(input.count)))

    plan = define(flow=flow).plan(Input("T-1", 3))

    assert list(plan.vertices) == ["a", "s0", "s1", "s2"]
