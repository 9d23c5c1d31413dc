"""Joins that wait for all, one or some of their branches, and the fate of the others."""

from typing import Any

from orchestrator.definition import case, catch, fork, join, needs, route, start, then
from orchestrator.definition.workflow.advance import is_starved, tolerates_failure
from orchestrator.definition.workflow.replay import replay_history
from tests.services.cases import cases
from tests.unit.workflows import Process, huge, large, look, plan_of, steps

a, b, c, d, e, f, g, x, y = steps("a b c d e f g x y")

IN_TWO, IN_THREE = fork(a, into=[b, c]), fork(a, into=[b, c, d])
FIRST: Any = {"wait_for": "any", "rest": "cancel"}


def joined(happened: str, **policy: Any) -> Process:
    """A process whose three branches b, c, d run and come together in e, and then f."""
    process = Process(IN_THREE, join(b, c, d, into=e, **policy), then(e, f))
    return process.ran(f"a {happened}")


def starts_to_fail(process: Process) -> bool:
    return is_starved(process.plan["e"], process.joins["e"])


@cases(
    "wait_for, happened, now",
    ("any", "c", "b d e"),
    ("any", "c b e f d", ""),  # what arrives late does not start the join again
    (2, "d", "b c"),
    (2, "d b", "c e"),
    ("every", "b c", "d"),
    ("every", "b c d", "e"),
    # failures that the join tolerates
    ("any", "!b", "c d"),
    ("any", "!b c", "d e"),
)
def test_a_join_starts_once_when_as_many_are_done_as_it_waits_for(
    wait_for: object, happened: str, now: str
) -> None:
    process = joined(happened, wait_for=wait_for)

    assert process.now == now.split()
    assert process.visits.count(("e", 1)) <= 1


@cases(
    "wait_for, size, starves",
    *((2, 1, True), (2, 11, False), (2, 101, False)),
    *((3, 11, True), (3, 101, False)),
    *(("every", 1, True), ("every", 11, True), ("every", 101, False)),
    *(("all", 1, False), ("any", 1, False)),
)
def test_when_fewer_were_taken_than_it_needs_it_starts_in_order_to_fail(
    wait_for: Any, size: int, starves: bool
) -> None:
    process = Process(
        fork(look, into=[b, case(large, to=c), case(huge, to=d)]),
        join(b, c, d, into=e, wait_for=wait_for),
    ).ran(f"look={size}")
    process.done(*process.now)

    assert (process.now, starts_to_fail(process)) == (["e"], starves)
    assert replay_history(process.plan, process.history).joins == process.joins


def test_when_none_was_taken_it_is_on_a_branch_that_was_not_itself() -> None:
    routed = route(look, case(large, to=a), otherwise=x)
    joins = join(b, c, into=d, wait_for="every")
    process = Process(routed, IN_TWO, joins).ran("look=1")

    assert (process.now, process.not_taken) == (["x"], ["a", "b", "c", "d"])


def test_a_join_that_starves_within_another_is_one_of_its_branches() -> None:
    process = Process(
        fork(a, into=[look, f]),
        fork(look, into=[b, case(large, to=c)]),
        join(b, c, into=d, wait_for=2),
        join(d, f, into=e, wait_for="any"),
    ).ran("a look=1 b")
    assert process.now == ["f", "d"]

    assert tolerates_failure(process.plan, "d", process.look)
    process.ran("!d f")
    assert (process.now, starts_to_fail(process)) == (["e"], False)


def test_a_cancelled_branch_is_one_that_was_not_taken() -> None:
    process = Process(
        IN_THREE, catch(b, c, error=ValueError, to=x), join(b, c, d, into=e, wait_for=2)
    ).ran("a d !b")

    assert (process.cancelled, process.now) == (["c"], ["x", "e"])
    assert starts_to_fail(process)


@cases(
    "rows, happened, now, cancelled, not_taken",
    ([IN_THREE, join(b, c, d, into=e, **FIRST)], "a c", "e", "b d", ""),
    # with all steps that lead only there
    ([IN_TWO, then(c, x, y), join(b, y, into=e, **FIRST)], "a c b", "e", "x", "y"),
    # but not steps that lead elsewhere too
    (
        [IN_TWO, fork(c, into=[x, y]), join(b, x, into=e, **FIRST)],
        *("a b", "c e", "", ""),
    ),
    # a join in a branch that was given up does not start
    (
        [IN_THREE, join(c, d, into=f), join(b, f, into=e, **FIRST)],
        *("a c b", "e", "d", "f"),
    ),
    # nor does a step on the way to a branch that was given up
    (
        [fork(a, into=[b, c, x]), fork(c, into=[d, y]), join(b, d, into=e, **FIRST)],
        *("a b c", "x e y", "", "d"),
    ),
    # links out of a branch that was given up are dead
    (
        [
            IN_THREE,
            join(b, c, into=e, **FIRST),
            catch(b, error=ValueError, to=x),
            join(x, d, into=y),
        ],
        *("a c d", "e y", "b", "x"),
    ),
)
def test_the_rest_is_cancelled_where_the_join_says_so(
    rows: list[Any], happened: str, now: str, cancelled: str, not_taken: str
) -> None:
    process = Process(*rows).ran(happened)

    assert process.now == now.split()
    assert process.cancelled == cancelled.split()
    assert process.not_taken == not_taken.split()


@cases(
    "rows, region",
    # all steps that lead only there
    (
        [
            *(start(a), IN_TWO, then(b, f), fork(c, into=[x, y])),
            join(f, x, into=e, **FIRST),
        ],
        {"b", "f", "x"},
    ),
    # a and the race before it are the way to the second race, not a branch of it
    (
        [
            *(start(f, g), join(f, g, into=a, wait_for="any")),
            *(IN_TWO, join(b, c, into=e, **FIRST)),
        ],
        {"b", "c"},
    ),
)
def test_only_what_began_there_is_given_up(rows: list[Any], region: set[str]) -> None:
    assert plan_of(*rows).region("e") == region


# Failures that the join tolerates


@cases(
    "wait_for, happened, failing, bearable",
    ("any", "", "b", True),
    ("any", "!b !c", "d", False),  # the last one
    ("any", "b !c", "d", True),  # the join has started
    (2, "", "d", True),
    (2, "!b", "d", False),
    ("all", "", "b", False),
    ("every", "b c", "d", False),
)
def test_as_many_failures_are_put_up_with_as_are_left_over(
    wait_for: object, happened: str, failing: str, bearable: bool
) -> None:
    process = joined(happened, wait_for=wait_for)

    assert tolerates_failure(process.plan, failing, process.look) is bearable


@cases(
    "rows",
    # where the step leads elsewhere too
    [IN_TWO, join(b, c, into=d, wait_for="any"), needs(x, [b])],
    # where nothing follows
    [then(a, b)],
)
def test_nor_is_a_failure_that_nothing_makes_up_for(rows: list[Any]) -> None:
    assert not tolerates_failure(plan_of(*rows), "b", lambda names: {})


def test_steps_between_the_failure_and_the_join_are_passed_over() -> None:
    rows = IN_TWO, then(b, x, y), join(y, c, into=e, wait_for="any")
    process = Process(*rows).ran("a")
    assert tolerates_failure(process.plan, "b", process.look)

    process.ran("!b")
    assert (process.not_taken, process.now) == (["x", "y"], ["c"])


def test_a_failure_that_takes_several_ways_from_one_join_counts_them_all() -> None:
    rows = IN_TWO, fork(b, into=[x, y]), join(x, y, c, into=e, wait_for=2)
    process = Process(*rows).ran("a")

    assert not tolerates_failure(process.plan, "b", process.look)
    assert tolerates_failure(process.plan, "c", process.look)


# Failures that leave the join too few branches


def raced(happened: str, wait_for: Any = "any", *more: Any) -> Process:
    """A process in which b and look run; look decides whether c and d go on to the join e, beside b, or g runs."""
    return Process(
        fork(a, into=[b, look]),
        fork(look, into=[case(large, to=c), case(huge, to=d)], otherwise=g),
        join(b, c, d, into=e, wait_for=wait_for),
        then(e, f),
        *more,
    ).ran(f"a {happened}")


@cases(
    "wait_for, happened, now, not_taken, fails",
    # no other is taken after a failure
    ("any", "!b look=1", "g e", "c d", True),
    # fewer are left than a number needs
    (2, "!b look=50 c", "e", "d g", True),
    # others make up for the failure
    (2, "!b look=500 c d", "e", "g", False),
)
def test_when_too_few_are_left_after_a_failure_the_join_starts_in_order_to_fail(
    wait_for: object, happened: str, now: str, not_taken: str, fails: bool
) -> None:
    process = raced(happened, wait_for)

    assert (process.now, process.not_taken) == (now.split(), not_taken.split())
    assert starts_to_fail(process) is fails
    assert replay_history(process.plan, process.history).joins == process.joins


def test_a_join_with_too_few_left_waits_for_those_that_run() -> None:
    running = raced("")

    assert tolerates_failure(running.plan, "b", running.look)
    assert raced("!b look=50", 2).now == ["c"]


def test_a_failure_before_steps_on_the_way_to_the_join_is_not_forgotten() -> None:
    process = Process(
        fork(a, into=[b, look]),
        then(b, x, y),
        fork(look, into=[case(large, to=c)], otherwise=g),
        join(y, c, into=e, wait_for="any"),
    ).ran("a !b look=1")

    assert process.not_taken == ["x", "y", "c"]
    assert starts_to_fail(process)


def test_when_branches_were_simply_not_taken_nothing_has_failed() -> None:
    process = Process(
        fork(look, into=[case(large, to=c), case(huge, to=d)], otherwise=g),
        join(c, d, into=e, wait_for="any"),
    ).ran("look=1")

    assert (process.now, process.not_taken) == (["g"], ["c", "d", "e"])


def test_a_failure_that_is_caught_is_a_branch_that_was_not_taken() -> None:
    process = raced("!b look=1", "any", catch(b, error=ValueError, to=x))

    assert (process.now, process.not_taken[-1]) == (["x", "g"], "f")
