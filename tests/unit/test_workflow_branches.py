"""Which steps start when one is done: sequences, forks, needs, choices and routes."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from orchestrator.definition import case, fork, join, needs, route, start, then
from orchestrator.definition.workflow.advance import Arrivals, Settled, advance, begin
from orchestrator.definition.workflow.replay import replayed
from orchestrator.exceptions import NoCase
from tests.unit.workflows import (
    Inquiry,
    Medium,
    Priority,
    Process,
    huge,
    large,
    look,
    plan_of,
    steps,
)

a, b, c, d, e, f, g = steps("a b c d e f g")


# Sequences


def test_without_start_every_step_that_nothing_leads_to_begins() -> None:
    process = Process(then(a, b), then(c, d))

    assert process.now == ["a", "c"]


def test_start_says_what_begins() -> None:
    process = Process(start(a), then(a, b))

    assert process.now == ["a"]


def test_a_sequence_goes_from_step_to_step() -> None:
    process = Process(then(a, b, c))

    process.done("a")
    assert process.now == ["b"]

    process.done("b", "c")
    assert process.now == []
    assert process.visits == [("a", 1), ("b", 1), ("c", 1)]


def test_one_step_is_a_workflow() -> None:
    assert Process(a).now == ["a"]


def test_the_same_way_in_two_rows_is_one_way() -> None:
    plan = plan_of(then(a, b), needs(b, [a]), then(a, b))

    assert len(plan.links) == 1
    assert plan["b"].ways_in == 1


# Parallel


def test_a_fork_starts_all_branches_at_once() -> None:
    process = Process(fork(a, into=[b, c, d]))

    process.done("a")

    assert process.now == ["b", "c", "d"]


@pytest.mark.parametrize("order", ["bcd", "dcb", "cbd"])
def test_a_join_starts_once_after_all_its_branches(order: str) -> None:
    process = Process(fork(a, into=[b, c, d]), join(b, c, d, into=e))
    process.done("a")

    process.done(order[0], order[1])
    assert "e" not in process.now

    process.done(order[2])
    assert process.now == ["e"]


def test_needs_make_any_graph_and_wait_for_no_level() -> None:
    # d needs only b, so it starts while c, of b's level, still runs
    process = Process(needs(b, [a]), needs(c, [a]), needs(d, [b]), needs(e, [c, d]))
    process.done("a", "b")

    assert process.now == ["c", "d"]

    process.done("d", "c")
    assert process.now == ["e"]


# Some of several


def by_media() -> Process:
    branches = {Medium.TEXT: b, Medium.IMAGE: c, Medium.AUDIO: d}
    return Process(fork(look, on="media", into=branches), join(b, c, d, into=e))


def test_a_branch_starts_for_each_value_found() -> None:
    process = by_media()

    process.settle("look", Inquiry(frozenset({Medium.TEXT, Medium.AUDIO})))

    assert process.now == ["b", "d"]
    assert process.not_taken == ["c"]


def test_a_branch_that_was_not_taken_is_not_waited_for() -> None:
    process = by_media()
    process.settle("look", Inquiry(frozenset({Medium.TEXT, Medium.AUDIO})))

    process.done("d", "b")

    assert process.now == ["e"]


def test_all_branches_may_start() -> None:
    process = by_media()

    process.settle("look", Inquiry(frozenset(Medium)))

    assert process.now == ["b", "c", "d"]


def test_a_result_that_takes_none_of_a_forks_branches_is_refused() -> None:
    process = by_media()

    with pytest.raises(NoCase) as refused:
        process.settle("look", Inquiry())

    assert str(refused.value) == (
        "fork(look, on='media'): no case fits what look gave: media = frozenset(), and there is no otherwise"
    )
    assert process.now == ["look"]


def test_so_is_one_that_no_predicate_fits() -> None:
    process = Process(fork(look, into=[case(large, to=b), case(huge, to=c)]))

    with pytest.raises(NoCase, match=r"^fork\(look\): no case fits what look gave, "):
        process.settle("look", Inquiry(size=1))


def test_no_branch_needs_to_start_where_another_row_leads_on() -> None:
    branches = {Medium.TEXT: b, Medium.IMAGE: c, Medium.AUDIO: d}
    process = Process(fork(look, on="media", into=branches), then(look, a))

    process.settle("look", Inquiry())

    assert process.now == ["a"]
    assert process.not_taken == ["b", "c", "d"]


def test_of_several_forks_one_must_start_a_branch() -> None:
    rows = (
        fork(look, on="media", into={Medium.TEXT: b}),
        fork(look, into=[case(large, to=c)]),
    )

    process = Process(*rows)
    process.settle("look", Inquiry(size=11))
    assert process.now == ["c"]

    with pytest.raises(NoCase, match=r"^fork\(look, on='media'\); fork\(look\): "):
        Process(*rows).settle("look", Inquiry())


def test_a_history_in_which_a_fork_took_no_way_can_be_told() -> None:
    """The first version let it."""
    plan = by_media().plan

    told = replayed(plan, [Settled("look", result=Inquiry())])

    assert told.open == {}
    assert told.not_taken == ["b", "c", "d", "e"]


def test_otherwise_is_taken_when_no_other_branch_is() -> None:
    rows = (
        fork(look, on="media", into={Medium.TEXT: b}, otherwise=c),
        join(b, c, into=d),
    )
    process = Process(*rows)
    process.settle("look", Inquiry())

    assert process.now == ["c"]
    assert process.not_taken == ["b"]

    other = Process(*rows)
    other.settle("look", Inquiry(frozenset({Medium.TEXT})))
    assert other.now == ["b"]
    assert other.not_taken == ["c"]


def test_a_fork_compares_a_single_value() -> None:
    branches = {Priority.LOW: b, Priority.URGENT: c}
    process = Process(fork(look, on="priority", into=branches))

    process.settle("look", Inquiry(priority=Priority.URGENT))

    assert (process.now, process.not_taken) == (["c"], ["b"])


@pytest.mark.parametrize(
    ("size", "now"), [(1, ["b"]), (11, ["b", "c"]), (101, ["b", "c", "d"])]
)
def test_a_fork_may_have_conditions_beside_branches_that_always_start(
    size: int, now: list[str]
) -> None:
    process = Process(fork(look, into=[b, case(large, to=c), case(huge, to=d)]))

    process.settle("look", Inquiry(size=size))

    assert process.now == now


def test_several_values_may_lead_to_one_step_which_starts_once() -> None:
    process = Process(
        fork(look, on="media", into={Medium.TEXT: b, Medium.IMAGE: b, Medium.AUDIO: c})
    )

    process.settle("look", Inquiry(frozenset(Medium)))

    assert process.visits[1:] == [("b", 1), ("c", 1)]


# One of several


@pytest.mark.parametrize(("priority", "now"), [("low", "b"), ("urgent", "c")])
def test_a_route_takes_the_branch_of_the_value(priority: str, now: str) -> None:
    process = Process(
        route(look, on="priority", to={Priority.LOW: b, Priority.URGENT: c})
    )

    process.settle("look", Inquiry(priority=Priority(priority)))

    assert process.now == [now]
    assert len(process.not_taken) == 1


def by_size(*cases: Any) -> Process:
    return Process(route(look, *cases, otherwise=d))


@pytest.mark.parametrize(("size", "now"), [(1, "d"), (11, "b"), (101, "c")])
def test_the_case_of_highest_priority_is_tried_first(size: int, now: str) -> None:
    process = by_size(case(large, to=b, priority=5), case(huge, to=c, priority=10))

    process.settle("look", Inquiry(size=size))

    assert process.now == [now]


def test_cases_of_equal_priority_are_tried_as_written() -> None:
    process = by_size(case(large, to=b), case(huge, to=c))

    process.settle("look", Inquiry(size=101))

    assert process.now == ["b"]


def never(inquiry: Inquiry) -> bool:
    raise AssertionError("asked although a case before it fits")


def test_predicates_after_the_one_that_holds_are_not_asked() -> None:
    process = by_size(case(large, to=b), case(never, to=c))

    process.settle("look", Inquiry(size=11))

    assert process.now == ["b"]


def test_a_value_known_only_at_run_time_that_no_case_fits_is_an_error() -> None:
    process = Process(route(look, on="size", to={1: b, 2: c}))

    with pytest.raises(NoCase, match=r"route\(look, on='size'\): .*: size = 3"):
        process.settle("look", Inquiry(size=3))

    assert process.now == ["look"]


def test_a_route_within_a_branch_is_joined_again() -> None:
    process = Process(
        fork(a, into=[look, b]),
        route(look, on="priority", to={Priority.LOW: c, Priority.URGENT: d}),
        join(b, c, d, into=e),
    )
    process.done("a")
    process.settle("look", Inquiry())
    process.done("c")
    assert process.now == ["b"]

    process.done("b")
    assert process.now == ["e"]


def test_a_whole_branch_that_was_not_taken_is_passed_over() -> None:
    process = Process(
        route(look, on="priority", to={Priority.LOW: a, Priority.URGENT: b}),
        then(b, c),
        fork(c, into=[d, e]),
        join(d, e, into=f),
        then(f, g),
    )

    process.settle("look", Inquiry())

    assert process.not_taken == ["b", "c", "d", "e", "f", "g"]


def test_what_a_join_lacks_is_asked_for_at_once() -> None:
    """One look for all joins that a step leads to, however many they are."""
    plan = plan_of(fork(a, into=[c, d, e]), fork(b, into=[c, d, e]), start(a, b))
    asked: list[list[str]] = []

    def remember(names: Sequence[str]) -> Mapping[str, Arrivals]:
        asked.append(list(names))
        return {}

    advance(plan, Settled("a"), remember)

    assert asked == [["c", "d", "e"]]


def test_what_follows_names_the_links_taken() -> None:
    plan = plan_of(then(a, b, c))

    found = advance(plan, Settled("a"), lambda names: {})

    (link,) = (link for link in plan.links if link.source == "a")
    assert found.taken == [link.id]
    assert begin(plan).taken == []


def test_a_join_may_be_written_before_the_rows_that_lead_to_it() -> None:
    rows: list[Any] = [
        join(b, c, into=d),
        route(look, on="priority", to={Priority.LOW: b, Priority.URGENT: c}),
    ]

    for ordered in (rows, rows[::-1]):
        process = Process(*ordered)
        process.settle("look", Inquiry())
        process.done("b")
        assert process.now == ["d"]


def test_needs_do_not_add_to_a_way_that_is_conditional() -> None:
    process = Process(
        needs(b, [look]),
        route(look, on="priority", to={Priority.LOW: b, Priority.URGENT: c}),
    )

    process.settle("look", Inquiry(priority=Priority.URGENT))

    assert process.now == ["c"]
