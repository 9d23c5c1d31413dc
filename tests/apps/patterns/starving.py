"""Joins that may lack branches in the end."""

from typing import Any

from orchestrator.definition import (
    Workflow,
    ask,
    case,
    catch,
    fork,
    join,
    repeat,
    route,
    start,
    then,
    undo,
)
from tests.apps.patterns.ledger import note
from tests.apps.patterns.patterns import (
    Answer,
    Number,
    big,
    even,
    explain,
    first,
    is_big,
    is_even,
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


def agree(big: str | None, even: str | None) -> str:
    return f"plain, {big}, {even}"


def _some(into: Any, wait_for: Any) -> tuple[Any, ...]:
    """Three branches: one always, one for what is big, one for what is even."""
    return (
        start(same),
        fork(same, into=[plain, case(is_big, to=big), case(is_even, to=even)]),
        join(plain, big, even, into=into, wait_for=wait_for),
    )


def close(agree: str | None) -> str:
    return f"closed with {agree}"


def rounds(rounds: int | None) -> int:
    return (rounds or 0) + 1


def thrice(rounds: int) -> bool:
    return rounds == 3


def last_round(rounds: int) -> int:
    return rounds


class Quorum(Workflow):
    """Two of three branches must have been taken."""

    Input = Number
    flow = _some(agree, 2)


class QuorumCaught(Workflow):
    """The same, and the join that lacks its branches leads elsewhere."""

    Input = Number
    flow = (*_some(agree, 2), catch(agree, error=Exception, to=explain))


class QuorumBeside(Workflow):
    """The same within a join for which another branch is enough."""

    Input = Number
    flow = (
        *_some(agree, 2),
        start(other),
        join(agree, other, into=close, wait_for="any"),
    )


class QuorumRepeated(Workflow):
    """The same before a loop, whose rounds have no branches."""

    Input = Number
    flow = (*_some(rounds, 2), repeat(rounds, until=thrice, at_most=5, then=last_round))


def sign(plain: str, big: str, even: str) -> str:
    """What it needs is there, or it does not start."""
    return f"{plain}, {big}, {even}"


class Unanimous(Workflow):
    """Every branch must have been taken."""

    Input = Number
    flow = _some(sign, "every")
