"""Joins that may lack branches in the end."""

from typing import Any

from orchestrator.definition import (
    Workflow,
    ask,
    case,
    catch,
    join,
    route,
    start,
    then,
    undo,
)
from tests.apps.patterns.ledger import note
from tests.apps.patterns.patterns import (
    Answer,
    Number,
    explain,
    first,
    is_big,
    other,
    plain,
    quick,
    risky,
    same,
    slow,
)


def take_back(same: int) -> None:
    note("taken back")


def _rows(into: Any) -> tuple[Any, ...]:
    """One branch fails below zero, and the other is only for what is big."""
    return (
        start(risky, same),
        route(same, case(is_big, to=quick), otherwise=plain),
        join(risky, quick, into=into, wait_for="any"),
    )


class Starving(Workflow):
    """One of two is enough."""

    Input = Number
    flow = _rows(first)


class StarvingCaught(Workflow):
    """The same, and the join that lacks its branches leads elsewhere."""

    Input = Number
    flow = (*_rows(first), catch(first, error=Exception, to=explain))


class StarvingUndone(Workflow):
    """The same, with a step to undo."""

    Input = Number
    flow = (*_rows(first), undo(same, by=take_back))


def hurry(same: int) -> int:
    return same


def last(hurry: int | None) -> str:
    return f"after {hurry}"


class GivenUp(Workflow):
    """A join of which one branch has failed and one has come waits for a third, until nothing waits for it."""

    Input = Number
    flow = (
        start(risky, same, slow),
        join(risky, same, slow, into=other, wait_for=2),
        then(same, hurry),
        join(other, hurry, into=last, wait_for="any", rest="cancel"),
    )


class StarvingAsked(Workflow):
    """The same, with a question after the join."""

    Input = Number
    flow = _rows(ask("verdict", choices=Answer))
