"""Loops: visits, bounds, and the ways out; maps as far as rows compile them."""

import pytest

from orchestrator.definition import catch, each, fork, join, repeat, step, then, wait
from orchestrator.exceptions import NoCase
from tests.unit.workflows import (
    Approved,
    Inquiry,
    Priority,
    Process,
    enough,
    look,
    plan_of,
    steps,
    work,
)

a, b, c, d, e, x = steps("a b c d e x")


def loop(at_most: int = 3, **more: object) -> Process:
    """A process in its loop of b and c, with d after it."""
    process = Process(
        then(a, b),
        repeat(b, c, until=enough, at_most=at_most, then=d, **more),  # type: ignore[arg-type]
    )
    process.done("a")
    return process


def test_each_round_is_another_visit_of_the_same_steps() -> None:
    process = loop()

    process.settle("b", 1)
    process.settle("c", 1)
    process.settle("b", 2)

    assert process.visits == [("a", 1), ("b", 1), ("c", 1), ("b", 2), ("c", 2)]


def test_the_loop_ends_when_the_condition_holds() -> None:
    process = loop()
    process.settle("b", 1)

    process.settle("c", 3)

    assert process.now == ["d"]
    assert process.visits[-1] == ("d", 1)


def test_it_ends_at_its_bound_with_an_error() -> None:
    process = loop(at_most=2)
    for _ in range(2):
        process.settle("b", 0)
        last = process.visits[-1]
        if last == ("c", 1):
            process.settle("c", 0)

    with pytest.raises(NoCase, match="still not so after 2 visits"):
        process.settle("c", 0)

    assert process.now == ["c"]


def test_or_it_goes_another_way() -> None:
    process = loop(at_most=1, otherwise=x)
    process.settle("b", 0)

    process.settle("c", 0)

    assert process.now == ["x"]
    assert process.not_taken == ["d"]


def test_a_loop_of_one_step() -> None:
    process = Process(repeat(a, until=enough, at_most=5, then=b))

    for number in range(4):
        process.settle("a", number)

    assert process.visits == [("a", 1), ("a", 2), ("a", 3), ("a", 4), ("b", 1)]


def test_a_loop_on_a_branch_that_was_not_taken_is_passed_over() -> None:
    process = Process(
        then(look, a),
        fork(look, on="priority", into={Priority.URGENT: b}),
        repeat(b, c, until=enough, at_most=2, then=d),
        join(a, d, into=e),
    )

    process.settle("look", Inquiry())
    process.done("a")

    assert process.not_taken == ["b", "c", "d"]
    assert process.now == ["e"]


def test_an_error_leaves_the_loop() -> None:
    process = Process(
        repeat(b, c, until=enough, at_most=3, then=d, otherwise=e),
        catch(c, error=ValueError, to=x),
    )
    process.settle("b", 0)
    process.settle("c", 0)
    process.settle("b", 0)

    process.fail("c")

    assert process.now == ["x"]
    assert process.not_taken == ["d", "e"]


def test_an_error_in_the_first_round_passes_over_what_was_not_reached() -> None:
    process = Process(
        repeat(b, c, until=enough, at_most=3, then=d),
        catch(b, error=ValueError, to=x),
    )

    process.fail("b")

    assert sorted(process.not_taken) == ["c", "d"]


def test_in_a_later_round_all_of_it_was_reached() -> None:
    process = Process(
        repeat(b, c, until=enough, at_most=3, then=d),
        catch(b, error=ValueError, to=x),
    )
    process.settle("b", 0)
    process.settle("c", 0)

    process.fail("b")

    assert process.not_taken == ["d"]


def test_the_error_way_is_passed_over_when_the_loop_ends_well() -> None:
    process = Process(
        repeat(b, c, until=enough, at_most=3, then=d),
        catch(b, c, error=ValueError, to=x),
    )
    process.done("b")

    process.settle("c", 3)

    assert process.not_taken == ["x"]


def test_a_loop_may_begin_at_a_join() -> None:
    process = Process(
        fork(a, into=[b, c]),
        join(b, c, into=d),
        repeat(d, until=enough, at_most=2, then=e),
    )
    process.done("a", "b", "c")

    process.settle("d", 0)
    process.settle("d", 3)

    assert process.visits[3:] == [("d", 1), ("d", 2), ("e", 1)]


def test_a_wait_may_be_repeated() -> None:
    approved = wait(Approved)
    process = Process(
        repeat(approved, b, until=enough, at_most=2, then=d),
    )
    process.settle("wait_for_approved", Approved("me"))
    process.settle("b", 0)

    assert process.now == ["wait_for_approved"]


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
    process = Process(each(look, over="pages", do=double, into=total))
    process.settle("look", Inquiry(pages=()))

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
