"""The state of a process, from its history alone."""

from typing import Any

import pytest

from orchestrator.definition import catch, fork, join, repeat, then
from orchestrator.definition.workflow.advance import Arrivals, Settled, error_link
from orchestrator.definition.workflow.plan import Plan
from orchestrator.definition.workflow.replay import replay_history
from orchestrator.exceptions import NoCase
from tests.services.cases import cases
from tests.unit.workflows import enough, plan_of, steps

a, b, c, d, e, x = steps("a b c d e x")


def diamond() -> Plan:
    return plan_of(fork(a, into=[b, c]), join(b, c, into=d))


BEGUN: dict[Any, Any] = {("a", 1): None}
BRANCHES: dict[Any, Any] = {("b", 1): ("a", 1), ("c", 1): ("a", 1)}


@cases(
    "done, opened, entered, joins, waiting",
    ("", {"a": 1}, BEGUN, {}, []),
    ("ac", {"b": 1}, BEGUN | BRANCHES, {"d": Arrivals(1, 1)}, ["d"]),
)
def test_after_some_steps_their_followers_are_open(
    done: str, opened: Any, entered: Any, joins: Any, waiting: list[str]
) -> None:
    standing = replay_history(diamond(), map(Settled, done))

    assert (standing.open, standing.entered) == (opened, entered)
    assert (standing.joins, list(standing.waiting)) == (joins, waiting)


def test_a_join_that_has_started_waits_no_more_and_at_the_end_nothing_is_open() -> None:
    standing = replay_history(diamond(), map(Settled, "abc"))

    assert (standing.open, standing.waiting) == ({"d": 1}, {})
    assert standing.joins["d"].fired
    ended = replay_history(diamond(), map(Settled, "acbd"))
    assert ended.open == {}
    assert [name for name, _ in ended.entered] == ["a", "b", "c", "d"]


def test_visits_of_a_loop_are_told_apart() -> None:
    plan = plan_of(repeat(a, b, until=enough, at_most=3, then=c))
    history = [Settled("a", 1), Settled("b", 1, result=0), Settled("a", 2)]

    assert replay_history(plan, history).open == {"b": 2}
    assert replay_history(plan, history).entered["a", 2] == ("b", 1)


def test_branches_that_were_not_taken_are_told() -> None:
    plan = plan_of(then(a, b), catch(a, error=ValueError, to=x))
    failed = Settled("a", outcome="failed", caught=error_link(plan, "a", ValueError()))

    assert replay_history(plan, [Settled("a")]).not_taken == ["x"]
    assert replay_history(plan, [failed]).not_taken == ["b"]
    assert replay_history(plan, [failed]).open == {"x": 1}


def test_what_nothing_waits_for_any_more_is_cancelled_at_once() -> None:
    plan = plan_of(
        fork(a, into=[b, c]),
        join(b, c, into=d, wait_for="any", rest="cancel"),
        then(d, e),
    )
    history = [Settled("a"), Settled("b")]

    standing = replay_history(plan, history)
    assert standing.open == {"d": 1}
    assert standing.joins == {"d": Arrivals(2, 1, fired=True)}

    standing = replay_history(plan, [*history, Settled("c")])
    assert standing.stray == [("c", 1)]
    assert standing.open == {"d": 1}


def test_what_a_failure_elsewhere_has_ended_is_cancelled_at_once() -> None:
    plan = plan_of(
        fork(a, into=[b, c]), join(b, c, into=d), catch(b, c, error=ValueError, to=x)
    )
    failed = Settled("b", outcome="failed", caught=error_link(plan, "b", ValueError()))
    standing = replay_history(plan, [Settled("a"), failed])

    assert standing.open == {"x": 1}
    assert standing.entered["x", 1] == ("b", 1)
    assert standing.not_taken == ["d"]


@cases("wrong", Settled("b"), Settled("a", 2), Settled("d"), Settled("nowhere"))
def test_a_visit_that_was_not_open_is_stray_and_has_no_effect(wrong: Settled) -> None:
    standing = replay_history(diamond(), [wrong, Settled("a")])

    assert standing.stray == [(wrong.step, wrong.visit)]
    assert standing.open == {"b": 1, "c": 1}
    twice = replay_history(diamond(), map(Settled, "abb"))
    assert (twice.stray, twice.open) == ([("b", 1)], {"c": 1})


def test_a_result_that_takes_no_way_is_no_history() -> None:
    plan = plan_of(repeat(a, until=enough, at_most=1, then=b))

    with pytest.raises(NoCase):
        replay_history(plan, [Settled("a", result=0)])
