"""Caught errors, missed deadlines and undone steps."""

from datetime import timedelta
from typing import Any

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
from orchestrator.definition.workflow.advance import Ending, error_link
from orchestrator.definition.workflow.steps import Policy
from tests.services.cases import cases
from tests.unit.workflows import Approved, Process, plan_of, steps, work

a, b, c, d, e, x, y = steps("a b c d e x y")


def note(error: Failure) -> str:
    return error.message


# Error routes


CAUGHT = catch(a, error=ValueError, to=x)
TOGETHER = (
    fork(a, into=[b, c]),
    join(b, c, into=d),
    catch(b, c, error=ValueError, to=x),
)


@cases(
    "rows, happened, now, cancelled, not_taken",
    # a caught failure takes the error link, and a done step passes it over
    ([then(a, b), CAUGHT], "!a", "x", "", "b"),
    ([then(a, b), CAUGHT], "a", "b", "", "x"),
    # a recovered branch comes back to the join
    (
        [fork(a, into=[b, c]), catch(b, error=ValueError, to=x), join(b, c, x, into=d)],
        *("a c !b x", "d", "", ""),
    ),
    # the others of a group are cancelled, and earlier arrivals no longer count
    (TOGETHER, "a !b", "x", "c", "d"),
    (TOGETHER, "a c !b", "x", "", "d"),
    # a group without a failure goes on
    (TOGETHER, "a b c", "d", "", "x"),
    # a step after a catch may be caught too
    ([CAUGHT, catch(x, error=ValueError, to=y)], "!a !x", "y", "", ""),
)
def test_a_failure_goes_the_way_that_catches_it(
    rows: Any, happened: str, now: str, cancelled: str, not_taken: str
) -> None:
    process = Process(*rows).ran(happened)

    assert process.now == now.split()
    assert process.cancelled == cancelled.split()
    assert process.not_taken == not_taken.split()


@cases("error, target", (UnicodeError(), "x"), (ValueError(), "y"), (KeyError(), None))
def test_the_first_row_that_fits_catches(error: Exception, target: str | None) -> None:
    plan = plan_of(catch(a, error=UnicodeError, to=x), catch(a, error=ValueError, to=y))

    link = error_link(plan, "a", error)

    assert (link.target if link else None) == target


def test_two_rows_may_lead_to_one_step_which_starts_once() -> None:
    process = Process(start(a, b), CAUGHT, catch(b, error=ValueError, to=x))

    assert process.ran("!a").now == ["b", "x"]
    assert process.ran("!b").visits.count(("x", 1)) == 1


# Deadlines


@cases("ending, now, not_taken", ("late", ["x"], ["b"]), ("done", ["b"], ["x"]))
def test_after_its_deadline_a_wait_goes_the_late_way_and_in_time_not(
    ending: Ending, now: list[str], not_taken: list[str]
) -> None:
    approved = wait(Approved, "approval", deadline=timedelta(days=2), late=x)
    process = Process(then(a, approved, b)).ran("a")

    process.settle("approval", Approved("me"), ending)

    assert (process.now, process.not_taken) == (now, not_taken)


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


def test_what_undoes_a_step_has_a_policy_and_is_as_transactional() -> None:
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
