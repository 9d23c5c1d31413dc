"""Loops: visits, bounds and exits; maps as far as rows compile them."""

from typing import Any

import pytest

from orchestrator.definition import catch, each, fork, join, repeat, step, then, wait
from orchestrator.exceptions import NoCase
from tests.services.cases import cases
from tests.unit.workflows import (
    Approved,
    Priority,
    Process,
    enough,
    look,
    plan_of,
    steps,
    work,
)

a, b, c, d, e, x = steps("a b c d e x")


WITH_EXIT = repeat(b, c, until=enough, at_most=3, then=d, otherwise=e)


def loop(happened: str, at_most: int = 3, **more: Any) -> Process:
    """A process in its loop of b and c, with d after it."""
    rounds = repeat(b, c, until=enough, at_most=at_most, then=d, **more)
    return Process(then(a, b), rounds).ran(f"a {happened}")


def test_each_round_is_another_visit_of_the_same_steps() -> None:
    visits = loop("b c b:2").visits

    assert visits == [("a", 1), ("b", 1), ("c", 1), ("b", 2), ("c", 2)]


def test_the_loop_ends_when_the_condition_holds() -> None:
    process = loop("b c:3")

    assert (process.now, process.visits[-1]) == (["d"], ("d", 1))


def test_it_ends_at_its_bound_with_an_error_or_goes_another_way() -> None:
    process = loop("b:0 c:0 b:0", at_most=2)
    with pytest.raises(NoCase, match="still not so after 2 visits"):
        process.settle("c", 0)
    assert process.now == ["c"]

    other = loop("b:0 c:0", at_most=1, otherwise=x)
    assert (other.now, other.not_taken) == (["x"], ["d"])


def test_a_loop_of_one_step() -> None:
    process = Process(repeat(a, until=enough, at_most=5, then=b)).ran("a:0 a a:2 a:3")

    assert process.visits == [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1)]


def test_a_loop_on_a_branch_that_was_not_taken_is_passed_over() -> None:
    process = Process(
        then(look, a),
        fork(look, on="priority", into={Priority.URGENT: b}),
        repeat(b, c, until=enough, at_most=2, then=d),
        join(a, d, into=e),
    ).ran("look=0 a")

    assert (process.not_taken, process.now) == (["b", "c", "d"], ["e"])


@cases(
    "caught, happened, now, not_taken",
    # an error leaves the loop
    ([c], "b:0 c:0 b:0 !c", "x", "d e"),
    # in the first round it passes over what was not reached; in a later one all of it was
    ([b], "!b", "x", "c d e"),
    ([b], "b:0 c:0 !b", "x", "d e"),
    # its way is passed over when the loop ends well
    ([b, c], "b c:3", "d", "e x"),
)
def test_an_error_ends_it(caught: Any, happened: str, now: str, not_taken: str) -> None:
    rows = WITH_EXIT, catch(*caught, error=ValueError, to=x)
    process = Process(*rows).ran(happened)

    assert process.now == now.split()
    assert sorted(process.not_taken) == not_taken.split()


def test_a_loop_may_begin_at_a_join() -> None:
    process = Process(
        fork(a, into=[b, c]),
        join(b, c, into=d),
        repeat(d, until=enough, at_most=2, then=e),
    ).ran("a b c d:0 d:3")

    assert process.visits[3:] == [("d", 1), ("d", 2), ("e", 1)]


def test_a_wait_may_be_repeated() -> None:
    process = Process(repeat(wait(Approved), b, until=enough, at_most=2, then=d))
    process.settle("wait_for_approved", Approved("me"))

    assert process.ran("b:0").now == ["wait_for_approved"]


# Maps


def double(item: int) -> int:
    return 2 * item


def total(double: list[int]) -> int:
    return sum(double)


def test_a_map_is_one_step_that_gives_the_list_of_results() -> None:
    plan = plan_of(each(look, over="pages", do=double, into=total))

    assert plan["double"].each is not None
    assert plan["double"].result_type == list[int]
    assert [link.target for link in plan["double"].links] == ["total"]


def test_a_map_goes_on_once_however_many_elements_it_had() -> None:
    process = Process(each(look, over="pages", do=double, into=total)).ran("look=0")

    process.settle("double", [])

    assert process.now == ["total"]


def numbers() -> list[int]:
    return [1, 2]


def test_the_result_itself_may_be_the_list() -> None:
    plan = plan_of(each(numbers, over="", do=double, into=total))

    (binding,) = plan["double"].bindings
    assert binding.source == "item"


def test_a_map_may_stand_in_a_loop() -> None:
    process = Process(
        each(numbers, over="", do=double, into=total),
        repeat(numbers, double, total, until=enough, at_most=2, then=step(work, "end")),
    )
    process.settle("numbers", [1])
    process.settle("double", [2])
    process.settle("total", 2)

    assert process.visits[-1] == ("numbers", 2)
