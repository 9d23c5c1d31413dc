"""Joins that wait for all, one or some of their branches, and what becomes of the rest."""

import pytest

from orchestrator.definition import (
    case,
    catch,
    fork,
    join,
    needs,
    route,
    start,
    then,
)
from orchestrator.definition.workflow.advance import starved
from orchestrator.definition.workflow.replay import replayed
from orchestrator.definition.workflow.tolerance import put_up_with
from tests.unit.workflows import Inquiry, Process, huge, large, look, plan_of, steps

a, b, c, d, e, f, g, x, y = steps("a b c d e f g x y")


def joined(**policy: object) -> Process:
    """A process whose three branches b, c, d run and come together in e, and then f."""
    process = Process(
        fork(a, into=[b, c, d]),
        join(b, c, d, into=e, **policy),  # type: ignore[arg-type]  # of join's own parameters
        then(e, f),
    )
    process.done("a")
    return process


def test_any_starts_with_the_first_that_is_done() -> None:
    process = joined(wait_for="any")

    process.done("c")

    assert process.now == ["b", "d", "e"]


def test_what_arrives_late_does_not_start_the_join_again() -> None:
    process = joined(wait_for="any")
    process.done("c")

    process.done("b", "e", "f", "d")

    assert process.visits.count(("e", 1)) == 1
    assert process.now == []


def test_a_number_waits_for_so_many() -> None:
    process = joined(wait_for=2)

    process.done("d")
    assert "e" not in process.now

    process.done("b")
    assert process.now == ["c", "e"]


def some_of(wait_for: object, size: int) -> Process:
    """A process of whose branches b, c, d one, two or three were taken, and are done."""
    process = Process(
        fork(look, into=[b, case(large, to=c), case(huge, to=d)]),
        join(b, c, d, into=e, wait_for=wait_for),  # type: ignore[arg-type]  # of join's own parameters
    )
    process.settle("look", Inquiry(size=size))
    process.done(*process.now)
    return process


@pytest.mark.parametrize(
    ("wait_for", "size", "starves"),
    [
        (2, 1, True),
        (2, 11, False),
        (2, 101, False),
        (3, 11, True),
        (3, 101, False),
        ("every", 1, True),
        ("every", 11, True),
        ("every", 101, False),
        ("all", 1, False),
        ("any", 1, False),
    ],
)
def test_when_fewer_were_taken_than_it_needs_it_starts_in_order_to_fail(
    wait_for: object, size: int, *, starves: bool
) -> None:
    process = some_of(wait_for, size)

    assert process.now == ["e"]
    assert starved(process.plan["e"], process.joins["e"]) is starves
    assert replayed(process.plan, process.history).joins == process.joins


def test_when_none_was_taken_it_is_on_a_branch_that_was_not_itself() -> None:
    process = Process(
        route(look, case(large, to=a), otherwise=x),
        fork(a, into=[b, c]),
        join(b, c, into=d, wait_for="every"),
    )

    process.settle("look", Inquiry(size=1))

    assert process.now == ["x"]
    assert process.not_taken == ["a", "b", "c", "d"]


def test_every_branch_is_waited_for_and_no_failure_is_put_up_with() -> None:
    process = joined(wait_for="every")
    process.done("b", "c")

    assert process.now == ["d"]
    assert not put_up_with(process.plan, "d", process.look)
    process.done("d")
    assert process.now == ["e"]


def test_a_join_that_starves_within_another_is_one_of_its_branches() -> None:
    process = Process(
        fork(a, into=[look, f]),
        fork(look, into=[b, case(large, to=c)]),
        join(b, c, into=d, wait_for=2),
        join(d, f, into=e, wait_for="any"),
    )
    process.done("a")
    process.settle("look", Inquiry(size=1))
    process.done("b")
    assert process.now == ["f", "d"]

    assert put_up_with(process.plan, "d", process.look)
    process.fail("d")
    process.done("f")
    assert process.now == ["e"]
    assert not starved(process.plan["e"], process.joins["e"])


def test_a_cancelled_branch_is_one_that_was_not_taken() -> None:
    process = Process(
        fork(a, into=[b, c, d]),
        catch(b, c, error=ValueError, to=x),
        join(b, c, d, into=e, wait_for=2),
    )
    process.done("a", "d")
    process.fail("b")

    assert process.cancelled == ["c"]
    assert process.now == ["x", "e"]
    assert starved(process.plan["e"], process.joins["e"])


def test_the_rest_is_cancelled_where_the_join_says_so() -> None:
    process = joined(wait_for="any", rest="cancel")

    process.done("c")

    assert process.now == ["e"]
    assert process.cancelled == ["b", "d"]


def test_the_rest_is_cancelled_with_all_that_only_leads_there() -> None:
    process = Process(
        fork(a, into=[b, c]),
        then(c, x, y),
        join(b, y, into=e, wait_for="any", rest="cancel"),
        start(a),
    )
    process.done("a", "c")

    process.done("b")

    assert process.now == ["e"]
    assert process.cancelled == ["x"]
    assert process.not_taken == ["y"]


def test_what_leads_elsewhere_too_is_not_cancelled() -> None:
    process = Process(
        fork(a, into=[b, c]),
        fork(c, into=[x, y]),
        join(b, x, into=e, wait_for="any", rest="cancel"),
    )
    process.done("a")

    process.done("b")

    assert process.now == ["c", "e"]


def test_a_join_among_what_is_given_up_does_not_start() -> None:
    process = Process(
        fork(a, into=[b, c, d]),
        join(c, d, into=f),
        join(b, f, into=e, wait_for="any", rest="cancel"),
    )
    process.done("a", "c")

    process.done("b")

    assert process.now == ["e"]
    assert process.not_taken == ["f"]


def test_the_region_of_a_join_is_all_that_only_leads_there() -> None:
    plan = plan_of(
        start(a),
        fork(a, into=[b, c]),
        then(b, f),
        fork(c, into=[x, y]),
        join(f, x, into=e, wait_for="any", rest="cancel"),
    )

    assert plan.region("e") == {"b", "f", "x"}


def test_what_comes_to_a_branch_that_was_given_up_does_not_start_it() -> None:
    process = Process(
        fork(a, into=[b, c, x]),
        fork(c, into=[d, y]),
        join(b, d, into=e, wait_for="any", rest="cancel"),
    )
    process.done("a", "b")

    process.done("c")

    assert process.now == ["x", "e", "y"]
    assert process.not_taken == ["d"]


def test_ways_out_of_a_branch_that_was_given_up_are_passed_over() -> None:
    process = Process(
        fork(a, into=[b, c, d]),
        join(b, c, into=e, wait_for="any", rest="cancel"),
        catch(b, error=ValueError, to=x),
        join(x, d, into=y),
    )
    process.done("a", "c", "d")

    assert process.not_taken == ["x"]
    assert process.now == ["e", "y"]


def test_only_what_began_with_the_branches_is_given_up() -> None:
    # a and the race before it are the way to the second race, not a branch of it
    plan = plan_of(
        start(f, g),
        join(f, g, into=a, wait_for="any"),
        fork(a, into=[b, c]),
        join(b, c, into=e, wait_for="any", rest="cancel"),
    )

    assert plan.region("e") == {"b", "c"}


# Failures that the others make up for


def test_the_failure_of_one_branch_of_any_is_put_up_with() -> None:
    process = joined(wait_for="any")

    assert put_up_with(process.plan, "b", process.look)

    process.fail("b")
    assert process.now == ["c", "d"]
    process.done("c")
    assert process.now == ["d", "e"]


def test_that_of_the_last_branch_is_not() -> None:
    process = joined(wait_for="any")
    process.fail("b")
    process.fail("c")

    assert not put_up_with(process.plan, "d", process.look)


def test_once_the_join_has_started_every_failure_is_put_up_with() -> None:
    process = joined(wait_for="any")
    process.done("b")
    process.fail("c")

    assert put_up_with(process.plan, "d", process.look)


@pytest.mark.parametrize(("failed", "bearable"), [(0, True), (1, False)])
def test_some_of_several_bear_as_many_failures_as_are_left_over(
    failed: int, bearable: bool
) -> None:
    process = joined(wait_for=2)
    for name in "bc"[:failed]:
        process.fail(name)

    assert put_up_with(process.plan, "d", process.look) is bearable


def test_where_all_are_waited_for_no_failure_is_put_up_with() -> None:
    process = joined()

    assert not put_up_with(process.plan, "b", process.look)


def test_nor_where_the_step_leads_elsewhere_too() -> None:
    plan = plan_of(
        fork(a, into=[b, c]), join(b, c, into=d, wait_for="any"), needs(x, [b])
    )

    assert not put_up_with(plan, "b", lambda names: {})


def test_nor_where_nothing_follows() -> None:
    assert not put_up_with(plan_of(then(a, b)), "b", lambda names: {})


def test_steps_between_the_failure_and_the_join_are_passed_over() -> None:
    process = Process(
        fork(a, into=[b, c]),
        then(b, x, y),
        join(y, c, into=e, wait_for="any"),
    )
    process.done("a")
    assert put_up_with(process.plan, "b", process.look)

    process.fail("b")

    assert process.not_taken == ["x", "y"]
    assert process.now == ["c"]


def test_a_failure_that_takes_several_ways_from_one_join_counts_them_all() -> None:
    process = Process(
        fork(a, into=[b, c]),
        fork(b, into=[x, y]),
        join(x, y, c, into=e, wait_for=2),
    )
    process.done("a")

    assert not put_up_with(process.plan, "b", process.look)
    assert put_up_with(process.plan, "c", process.look)


# Failures that the others do not make up for after all


def raced(wait_for: object = "any", *more: object) -> Process:
    """A process in which b and look run; look decides whether c and d go on to the join e, beside b, or g runs."""
    process = Process(
        fork(a, into=[b, look]),
        fork(look, into=[case(large, to=c), case(huge, to=d)], otherwise=g),
        join(b, c, d, into=e, wait_for=wait_for),  # type: ignore[arg-type]  # of join's own parameters
        then(e, f),
        *more,
    )
    process.done("a")
    return process


def starts_to_fail(process: Process) -> bool:
    return starved(process.plan["e"], process.joins["e"])


def test_when_no_other_is_taken_after_a_failure_the_join_starts_in_order_to_fail() -> (
    None
):
    process = raced()
    assert put_up_with(process.plan, "b", process.look)
    process.fail("b")

    process.settle("look", Inquiry(size=1))

    assert (process.now, process.not_taken) == (["g", "e"], ["c", "d"])
    assert starts_to_fail(process)


def test_when_fewer_are_left_than_a_number_needs_too() -> None:
    process = raced(2)
    process.fail("b")

    process.settle("look", Inquiry(size=50))
    assert process.now == ["c"]
    process.done("c")

    assert process.now == ["e"]
    assert starts_to_fail(process)


def test_when_others_make_up_for_the_failure_it_starts_as_ever() -> None:
    process = raced(2)
    process.fail("b")
    process.settle("look", Inquiry(size=500))

    process.done("c", "d")

    assert process.now == ["e"]
    assert not starts_to_fail(process)


def test_a_failure_before_steps_on_the_way_to_the_join_is_not_forgotten() -> None:
    process = Process(
        fork(a, into=[b, look]),
        then(b, x, y),
        fork(look, into=[case(large, to=c)], otherwise=g),
        join(y, c, into=e, wait_for="any"),
    )
    process.done("a")
    process.fail("b")

    process.settle("look", Inquiry(size=1))

    assert process.not_taken == ["x", "y", "c"]
    assert starts_to_fail(process)


def test_when_branches_were_simply_not_taken_nothing_has_failed() -> None:
    process = Process(
        fork(look, into=[case(large, to=c), case(huge, to=d)], otherwise=g),
        join(c, d, into=e, wait_for="any"),
    )

    process.settle("look", Inquiry(size=1))

    assert (process.now, process.not_taken) == (["g"], ["c", "d", "e"])


def test_a_failure_that_is_caught_is_a_branch_that_was_not_taken() -> None:
    process = raced("any", catch(b, error=ValueError, to=x))
    process.fail("b")

    process.settle("look", Inquiry(size=1))

    assert (process.now, process.not_taken[-1]) == (["x", "g"], "f")


def test_how_a_join_was_starved_is_told_by_the_history() -> None:
    process = raced(2)
    process.fail("b")
    process.settle("look", Inquiry(size=50))
    process.done("c")

    assert replayed(process.plan, process.history).joins == process.joins
