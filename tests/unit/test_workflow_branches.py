"""The steps that start when a step is done: sequences, forks, needs, choices and routes."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from orchestrator.definition import case, fork, join, needs, route, start, then
from orchestrator.definition.workflow.advance import (
    Arrivals,
    Settled,
    advance,
    initial_advance,
)
from orchestrator.definition.workflow.replay import replay_history
from orchestrator.exceptions import NoCase
from tests.services.cases import cases
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


MEDIA = {Medium.TEXT: b, Medium.IMAGE: c, Medium.AUDIO: d}
TEXT_AND_AUDIO = Inquiry(frozenset({Medium.TEXT, Medium.AUDIO}))
BY_PRIORITY = route(look, on="priority", to={Priority.LOW: b, Priority.URGENT: c})
LOW, URGENT = Inquiry(), Inquiry(priority=Priority.URGENT)


def looked(found: Inquiry, *rows: Any) -> Process:
    """A process whose step look has found this."""
    process = Process(*rows)
    process.settle("look", found)
    return process


# Sequences


@cases(
    "rows, now",
    # without start, the process begins with every step that has no source
    ([then(a, b), then(c, d)], ["a", "c"]),
    ([start(a), then(a, b)], ["a"]),
    # one step is a workflow
    ([a], ["a"]),
)
def test_which_steps_begin(rows: list[Any], now: list[str]) -> None:
    assert Process(*rows).now == now


def test_a_sequence_goes_from_step_to_step() -> None:
    process = Process(then(a, b, c))

    assert process.ran("a").now == ["b"]
    assert process.ran("b c").now == []
    assert process.visits == [("a", 1), ("b", 1), ("c", 1)]


def test_the_same_way_in_two_rows_is_one_way() -> None:
    plan = plan_of(then(a, b), needs(b, [a]), then(a, b))

    assert len(plan.links) == 1
    assert plan["b"].ways_in == 1


# Parallel


@cases("order", "bcd", "dcb", "cbd")
def test_a_fork_starts_all_at_once_and_a_join_once_after_all(order: str) -> None:
    process = Process(fork(a, into=[b, c, d]), join(b, c, d, into=e)).ran("a")
    assert process.now == ["b", "c", "d"]

    process.done(order[0], order[1])
    assert "e" not in process.now

    assert process.ran(order[2]).now == ["e"]


def test_needs_make_any_graph_and_wait_for_no_level() -> None:
    # d needs only b, so it starts while c, of b's level, still runs
    process = Process(needs(b, [a]), needs(c, [a]), needs(d, [b]), needs(e, [c, d]))

    assert process.ran("a b").now == ["c", "d"]
    assert process.ran("d c").now == ["e"]


# Some of several


BY_MEDIA = (fork(look, on="media", into=MEDIA), join(b, c, d, into=e))


def test_a_branch_starts_for_each_value_found_and_no_other_is_waited_for() -> None:
    process = looked(TEXT_AND_AUDIO, *BY_MEDIA)

    assert (process.now, process.not_taken) == (["b", "d"], ["c"])
    assert process.ran("d b").now == ["e"]
    assert looked(Inquiry(frozenset(Medium)), *BY_MEDIA).now == ["b", "c", "d"]


def test_a_result_that_takes_none_of_a_forks_branches_is_refused() -> None:
    process = Process(*BY_MEDIA)

    with pytest.raises(NoCase) as refused:
        process.settle("look", Inquiry())

    assert str(refused.value) == (
        "fork(look, on='media'): no case fits what look gave: media = frozenset(), and there is no otherwise"
    )
    assert process.now == ["look"]


def test_so_is_one_that_no_predicate_fits() -> None:
    with pytest.raises(NoCase, match=r"^fork\(look\): no case fits what look gave, "):
        looked(Inquiry(), fork(look, into=[case(large, to=b), case(huge, to=c)]))


def test_no_branch_needs_to_start_where_another_row_leads_on() -> None:
    process = looked(Inquiry(), fork(look, on="media", into=MEDIA), then(look, a))

    assert (process.now, process.not_taken) == (["a"], ["b", "c", "d"])


def test_of_several_forks_one_must_start_a_branch() -> None:
    rows = (
        fork(look, on="media", into={Medium.TEXT: b}),
        fork(look, into=[case(large, to=c)]),
    )

    assert looked(Inquiry(size=11), *rows).now == ["c"]
    with pytest.raises(NoCase, match=r"^fork\(look, on='media'\); fork\(look\): "):
        looked(Inquiry(), *rows)


def test_a_history_in_which_a_fork_took_no_way_can_be_told() -> None:
    """The first version let it."""
    told = replay_history(plan_of(*BY_MEDIA), [Settled("look", result=Inquiry())])

    assert (told.open, told.not_taken) == ({}, ["b", "c", "d", "e"])


def test_otherwise_is_taken_when_no_other_branch_is() -> None:
    text_or_c = fork(look, on="media", into={Medium.TEXT: b}, otherwise=c)
    rows = (text_or_c, join(b, c, into=d))

    other, text = looked(Inquiry(), *rows), looked(TEXT_AND_AUDIO, *rows)
    assert (other.now, other.not_taken) == (["c"], ["b"])
    assert (text.now, text.not_taken) == (["b"], ["c"])


def test_a_fork_compares_a_single_value() -> None:
    into = {Priority.LOW: b, Priority.URGENT: c}
    process = looked(URGENT, fork(look, on="priority", into=into))

    assert (process.now, process.not_taken) == (["c"], ["b"])


@cases("size, now", (1, "b"), (11, "bc"), (101, "bcd"))
def test_a_fork_may_have_conditions_beside_branches(size: int, now: str) -> None:
    row = fork(look, into=[b, case(large, to=c), case(huge, to=d)])

    assert looked(Inquiry(size=size), row).now == list(now)


def test_several_values_may_lead_to_one_step_which_starts_once() -> None:
    row = fork(look, on="media", into={**MEDIA, Medium.IMAGE: b})

    found = looked(Inquiry(frozenset(Medium)), row)

    assert found.visits[1:] == [("b", 1), ("d", 1)]


# One of several


@cases("found, now, not_taken", (LOW, "b", "c"), (URGENT, "c", "b"))
def test_a_route_takes_one_branch(found: Inquiry, now: str, not_taken: str) -> None:
    process = looked(found, BY_PRIORITY)

    assert (process.now, process.not_taken) == ([now], [not_taken])


def never(inquiry: Inquiry) -> bool:
    raise AssertionError("asked although a case before it fits")


AS_WRITTEN = (case(large, to=b), case(huge, to=c))
BY_RANK = (case(large, to=b, priority=5), case(huge, to=c, priority=10))


@cases(
    "tried, size, now",
    # the case of highest priority is tried first
    (BY_RANK, 1, "d"),
    (BY_RANK, 11, "b"),
    (BY_RANK, 101, "c"),
    # those of equal priority as they are written
    (AS_WRITTEN, 101, "b"),
    # predicates after the first that holds are not evaluated
    ((case(large, to=b), case(never, to=c)), 11, "b"),
)
def test_a_route_tries_its_cases_in_order(tried: Any, size: int, now: str) -> None:
    row = route(look, *tried, otherwise=d)

    assert looked(Inquiry(size=size), row).now == [now]


def test_a_value_known_only_at_run_time_that_no_case_fits_is_an_error() -> None:
    process = Process(route(look, on="size", to={1: b, 2: c}))

    with pytest.raises(NoCase, match=r"route\(look, on='size'\): .*: size = 3"):
        process.settle("look", Inquiry(size=3))

    assert process.now == ["look"]


def test_a_route_within_a_branch_is_joined_again() -> None:
    routed = route(look, on="priority", to={Priority.LOW: c, Priority.URGENT: d})
    process = Process(fork(a, into=[look, b]), routed, join(b, c, d, into=e))

    assert process.ran("a look=0 c").now == ["b"]
    assert process.ran("b").now == ["e"]


def test_a_whole_branch_that_was_not_taken_is_passed_over() -> None:
    routed = route(look, on="priority", to={Priority.LOW: a, Priority.URGENT: b})
    rows = then(b, c), fork(c, into=[d, e]), join(d, e, into=f), then(f, g)
    process = looked(LOW, routed, *rows)

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
    assert initial_advance(plan).taken == []


def test_a_join_may_be_written_before_the_rows_that_lead_to_it() -> None:
    for rows in ([join(b, c, into=d), BY_PRIORITY], [BY_PRIORITY, join(b, c, into=d)]):
        assert looked(LOW, *rows).ran("b").now == ["d"]


def test_needs_do_not_add_to_a_way_that_is_conditional() -> None:
    assert looked(URGENT, needs(b, [look]), BY_PRIORITY).now == ["c"]
