"""What a step has done is undone also where the condition behind it has raised, and the way on is not decided."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from enum import StrEnum

import pytest

from orchestrator.definition import (
    Workflow,
    ask,
    case,
    each,
    join,
    route,
    run,
    start,
    step,
    then,
    undo,
)
from orchestrator.engine.invariants import violations
from orchestrator.exceptions import Permanent
from orchestrator.testing import Process, pass_time, registered, started

pytestmark = pytest.mark.django_db

LONG = timedelta(hours=1)
calls = Counter[str]()


class Answer(StrEnum):
    YES = "yes"
    NO = "no"


def bad(paid: object) -> bool:
    raise ValueError("out of a condition")


def numbers() -> list[int]:
    return [1, 2, 3]


def part(item: int) -> int:
    calls["charge"] += 1
    return item


def charge() -> int:
    calls["charge"] += 1
    return 1


def refund() -> None:
    calls["refund"] += 1


def collect(part: list[int]) -> None: ...


def ship() -> None: ...


def hold() -> None: ...


def meet() -> None: ...


def early(verdict: Answer) -> None: ...


def regret() -> None:
    raise Permanent("no")


def falter(verdict: Answer) -> None:
    raise ValueError("not yet")


def decline(verdict: Answer) -> None:
    raise Permanent("no")


verdict = ask("verdict", Answer)
spread = each(numbers, over="", do=part, into=collect)
behind_map = route(part, case(bad, to=ship), otherwise=hold)
behind = route(charge, case(bad, to=ship), otherwise=hold)


class Mapped(Workflow):
    """The element that comes last decides; the row of the whole map is cancelled with the process."""

    flow = (spread, behind_map, undo(part, by=refund))


mapped = run(Mapped, "mapped")


class Outer(Workflow):
    flow = (then(mapped, meet),)


class MappedBeside(Workflow):
    flow = (
        start(numbers, verdict),
        spread,
        behind_map,
        undo(part, by=refund),
        then(verdict, decline),
    )


class Fast(Workflow):
    """Another branch fails, and cancels the branch of the step."""

    flow = (
        start(charge, verdict),
        behind,
        then(verdict, step(falter, retries=0)),
        join(ship, hold, falter, into=meet, on_failure="fail_fast"),
        undo(charge, by=refund),
    )


class Race(Workflow):
    """Another branch comes first, and the join waits for no other."""

    flow = (
        start(charge, verdict),
        behind,
        then(verdict, early),
        join(ship, hold, early, into=meet, wait_for="any", rest="cancel"),
        then(meet, step(regret, retries=0)),
        undo(charge, by=refund),
    )


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(Mapped, Outer, MappedBeside, Fast, Race):
        yield


def undecided(definition: type[Workflow]) -> Process:
    calls.clear()
    process = started(definition)
    pass_time(LONG)
    assert calls["charge"]
    assert not calls["refund"]
    return process


def all_undone(process: Process) -> bool:
    pass_time(LONG)
    assert violations() == []
    assert process.status == "cancelled"
    return calls["charge"] == calls["refund"]


@pytest.mark.parametrize("definition", [Mapped, Outer])
def test_the_last_element_of_a_map_is_undone_when_people_cancel(
    definition: type[Workflow],
) -> None:
    process = undecided(definition)
    process.cancel()

    assert all_undone(process)


def test_the_last_element_of_a_map_is_undone_when_a_step_beside_declines() -> None:
    process = undecided(MappedBeside)
    process.answer("verdict", Answer.NO)

    assert all_undone(process)


def test_a_step_that_a_failed_branch_had_cancelled_is_undone() -> None:
    calls.clear()
    process = started(Fast)
    process.answer("verdict", Answer.NO)
    assert process.open_steps == ["falter"]
    process.cancel()

    assert all_undone(process)


def test_a_step_on_a_branch_that_no_join_needs_is_undone() -> None:
    process = undecided(Race)
    process.answer("verdict", Answer.NO)

    assert all_undone(process)
