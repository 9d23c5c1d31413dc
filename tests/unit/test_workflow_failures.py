"""Errors that are caught, deadlines that pass, and steps that are undone."""

from datetime import timedelta

import pytest

from orchestrator.definition import (
    Failure,
    catch,
    fork,
    join,
    start,
    step,
    then,
    undo,
    wait,
)
from orchestrator.definition.workflow.advance import catching
from orchestrator.definition.workflow.steps import Policy
from tests.unit.workflows import Approved, Process, plan_of, steps, work

a, b, c, d, e, x, y = steps("a b c d e x y")


def note(error: Failure) -> str:
    return error.message


# Error routes


def test_a_failure_that_is_caught_goes_the_other_way() -> None:
    process = Process(then(a, b), catch(a, error=ValueError, to=note))

    process.fail("a", ValueError("no"))

    assert process.now == ["note"]
    assert process.not_taken == ["b"]


def test_a_step_that_is_done_passes_its_error_way_over() -> None:
    process = Process(then(a, b), catch(a, error=ValueError, to=note))

    process.done("a")

    assert process.now == ["b"]
    assert process.not_taken == ["note"]


@pytest.mark.parametrize(
    ("error", "target"),
    [
        (UnicodeError(), "x"),
        (ValueError(), "y"),
        (KeyError(), None),
    ],
)
def test_the_first_row_whose_type_fits_catches(
    error: Exception, target: str | None
) -> None:
    plan = plan_of(catch(a, error=UnicodeError, to=x), catch(a, error=ValueError, to=y))

    link = catching(plan, "a", error)

    assert (link.target if link else None) == target


def test_a_branch_that_was_recovered_comes_back_to_the_join() -> None:
    process = Process(
        fork(a, into=[b, c]),
        catch(b, error=ValueError, to=x),
        join(b, c, x, into=d),
    )
    process.done("a", "c")

    process.fail("b")
    assert process.now == ["x"]

    process.done("x")
    assert process.now == ["d"]


def caught_together() -> Process:
    process = Process(
        fork(a, into=[b, c]),
        join(b, c, into=d),
        catch(b, c, error=ValueError, to=x),
    )
    process.done("a")
    return process


def test_the_others_of_a_group_are_cancelled() -> None:
    process = caught_together()

    process.fail("b")

    assert process.cancelled == ["c"]
    assert process.now == ["x"]
    assert process.not_taken == ["d"]


def test_what_was_done_before_counts_no_more() -> None:
    process = caught_together()
    process.done("c")

    process.fail("b")

    assert process.now == ["x"]
    assert process.not_taken == ["d"]


def test_a_group_without_a_failure_goes_on() -> None:
    process = caught_together()

    process.done("b", "c")

    assert process.now == ["d"]
    assert process.not_taken == ["x"]


def test_two_rows_may_lead_to_one_step_which_starts_once() -> None:
    process = Process(
        start(a, b),
        catch(a, error=ValueError, to=x),
        catch(b, error=ValueError, to=x),
    )

    process.fail("a")
    assert process.now == ["b", "x"]

    process.fail("b")
    assert process.visits.count(("x", 1)) == 1


def test_a_step_behind_a_catch_may_be_caught_in_turn() -> None:
    process = Process(
        catch(a, error=ValueError, to=x), catch(x, error=ValueError, to=y)
    )
    process.fail("a")

    process.fail("x")

    assert process.now == ["y"]


# Deadlines


def test_after_its_deadline_a_wait_goes_the_late_way() -> None:
    approved = wait(Approved, "approval", deadline=timedelta(days=2), late=x)
    process = Process(then(a, approved, b))
    process.done("a")

    process.settle("approval", outcome="late")

    assert process.now == ["x"]
    assert process.not_taken == ["b"]


def test_in_time_the_late_way_is_passed_over() -> None:
    approved = wait(Approved, "approval", deadline=timedelta(days=2), late=x)
    process = Process(then(a, approved, b))
    process.done("a")

    process.settle("approval", Approved("me"))

    assert process.now == ["b"]
    assert process.not_taken == ["x"]


def test_late_or_not_it_may_go_on_with_the_same_step() -> None:
    approved = wait(Approved, "approval", deadline=timedelta(days=2), late=b)
    for outcome in ("late", "done"):
        process = Process(then(approved, b, c))
        process.settle("approval", outcome=outcome)
        assert process.now == ["b"]


# How often a step is tried


def test_a_step_is_tried_as_often_as_its_error_allows() -> None:
    policy = step(work, retries={ConnectionError: 8, OSError: 0}).policy

    assert policy.attempts(ConnectionResetError()) == 9
    assert policy.attempts(FileNotFoundError()) == 1
    assert policy.attempts(ValueError()) == 4
    assert step(work, retries=2).policy.attempts() == 3


# Cancelled and undone


def test_what_follows_a_cancelled_step_is_passed_over() -> None:
    process = Process(then(a, b), catch(a, error=ValueError, to=x))

    process.settle("a", outcome="cancelled")

    assert process.now == []
    assert sorted(process.not_taken) == ["b", "x"]


def take_back(book: str, ticket: str) -> None:
    """Undo the booking."""


def book(ticket: str) -> str:
    return ticket


def test_what_undoes_a_step_gets_its_result_by_name() -> None:
    plan = plan_of(then(book, b), undo(book, by=take_back))

    assert plan["book"].undo is not None
    assert plan["book"].undo.function is take_back
    assert plan.undoable == {"book"}
    assert [(x.parameter, x.source) for x in plan["book"].undo_bindings] == [
        ("book", "result"),
        ("ticket", "input"),
    ]


def test_what_undoes_a_step_may_have_a_policy_and_is_as_transactional_as_the_step() -> (
    None
):
    plain = plan_of(then(book, b), undo(book, by=take_back))["book"]
    assert plain.undo_policy == Policy()
    own = plan_of(
        then(step(book, transactional=True), b),
        undo(book, by=step(take_back, "give back", retries=9)),
    )["book"]
    assert own.undo_policy == Policy(retries=9, transactional=True)


def test_only_steps_with_a_row_are_undone() -> None:
    plan = plan_of(then(a, b, step(work, "end")))

    assert plan.undoable == frozenset()
