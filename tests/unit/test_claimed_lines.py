"""Whose turn it is in a claimed batch of events, when others of their process are missing from it."""

from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.work.claims import Lines
from orchestrator.models import InboxEvent


def claimed(**ahead: set[int]) -> Lines:
    """Return the lines of events, each with the numbers of those that must be settled before it."""
    return Lines(
        [Claimed(InboxEvent(pk=int(n[1:])), frozenset(a)) for n, a in ahead.items()]
    )


def numbers(items: list[Claimed[InboxEvent]]) -> list[int]:
    return [item.work.pk for item in items]


def test_one_that_is_too_early_holds_back_nothing_that_is_before_it() -> None:
    lines = claimed(_1=set(), _2={1}, _9={1, 2, 3, 4})

    assert numbers(lines.mine) == [1, 2]
    assert numbers(lines.early) == [9]
    assert all(lines.may_run(item) for item in lines.mine)


def test_one_that_is_too_early_holds_back_what_is_behind_it() -> None:
    lines = claimed(_3={1}, _4={1, 3}, _5=set())

    assert numbers(lines.mine) == [5]
    assert numbers(lines.early) == [3, 4]


def test_one_that_is_not_settled_holds_back_its_own_line_alone() -> None:
    lines = claimed(_1=set(), _2={1}, _3=set())
    one, two, three = lines.mine

    lines.stop(one)

    assert [lines.may_run(item) for item in (two, three)] == [False, True]


def test_the_row_that_starts_a_process_joins_those_by_its_id_and_those_by_its_key() -> (
    None
):
    lines = claimed(_1=set(), _2=set(), _3={1, 2}, _4={2, 3}, _5={1, 3, 4}, _6=set())

    lines.stop(lines.mine[2])

    assert [lines.may_run(item) for item in lines.mine[3:]] == [False, False, True]
