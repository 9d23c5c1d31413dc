"""A step that has skipped itself is not called again because the condition behind it raises."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group

from orchestrator import Skip
from orchestrator.definition import (
    Workflow,
    case,
    each,
    repeat,
    route,
    start,
    step,
    undo,
)
from orchestrator.engine.invariants import violations
from orchestrator.testing import Process, pass_time, registered, started

pytestmark = pytest.mark.django_db

LONG = timedelta(hours=1)
calls = Counter[str]()
judge: dict[str, Exception] = {}
seen: list[object] = []


def bad(paid: object) -> bool:
    calls["condition"] += 1
    seen.append(paid)
    if "raises" in judge:
        raise judge["raises"]
    return True


@dataclass(frozen=True)
class Receipt:
    number: int

    @property
    def grade(self) -> int:
        return self.number if bad(self) else 0


def charge() -> int | Skip:
    calls["charge"] += 1
    return Skip("already paid", result=7)


def charge_nothing() -> int | Skip:
    calls["charge"] += 1
    raise Skip


async def charge_abroad() -> int | Skip:
    calls["charge"] += 1
    return Skip("already paid", result=7)


def charge_part(item: int) -> int | Skip:
    calls["charge"] += item
    return Skip("already paid", result=item)


def charge_later() -> Receipt | Skip:
    calls["charge"] += 1
    first = calls["charge"] == 1
    return Skip("already paid", result=Receipt(7)) if first else Receipt(8)


def numbers() -> list[int]:
    return [0, 0, 1]


def count() -> None: ...


def refund() -> None:
    calls["refund"] += 1


def ship() -> None:
    calls["ship"] += 1


def hold() -> None: ...


def note_effect() -> int | Skip:
    Group.objects.create(name="effect")
    return Skip("already paid", result=7)


def note_and_raise() -> int | Skip:
    Group.objects.create(name="effect")
    raise Skip("already paid", result=7)


once: Any = partial(step, retries=2, idempotent=False)


behind = route(charge, case(bad, to=ship), otherwise=hold)


class Once(Workflow):
    flow = (start(once(charge)), behind)


class Plain(Workflow):
    flow = (start(step(charge, retries=2)), behind)


class WithoutResult(Workflow):
    flow = (
        start(once(charge_nothing)),
        route(charge_nothing, case(bad, to=ship), otherwise=hold),
    )


class Abroad(Workflow):
    flow = (
        start(once(charge_abroad)),
        route(charge_abroad, case(bad, to=ship), otherwise=hold),
    )


class InThread(Workflow):
    flow = (start(once(charge, threads=2)), behind)


class Transactional(Workflow):
    flow = (start(once(charge, transactional=True)), behind)


class Looped(Workflow):
    flow = (start(once(charge)), repeat(charge, until=bad, at_most=3, then=ship))


class Mapped(Workflow):
    flow = (
        each(numbers, over="", do=once(charge_part), into=count),
        route(charge_part, case(bad, to=ship), otherwise=hold),
    )


class Undone(Workflow):
    flow = (start(step(charge, retries=2)), behind, undo(charge, by=refund))


class Later(Workflow):
    """The step skips itself at its first call only."""

    flow = (
        start(step(charge_later, retries=2)),
        route(charge_later, on="grade", to={8: ship}),
    )


KINDS = (Once, Plain, WithoutResult, Abroad, InThread, Transactional, Looped, Mapped)
RESULTS = {WithoutResult: None, Mapped: [0, 0, 1]}


class Written(Workflow):
    flow = (step(note_effect, transactional=True),)


class WrittenInVain(Workflow):
    flow = (step(note_and_raise, transactional=True),)


@pytest.fixture(scope="module", autouse=True)
def known() -> Iterator[None]:
    with registered(*KINDS, Undone, Later, Written, WrittenInVain):
        yield


@pytest.fixture(autouse=True)
def raising() -> Iterator[None]:
    calls.clear()
    seen.clear()
    judge["raises"] = ValueError("out of a condition")
    yield
    judge.clear()


def settled(process: Process) -> list[tuple[str, str]]:
    """Return the status and the message of each call; the row of a whole map is left out."""
    runs = process.instance.step_runs.filter(node__startswith="charge")
    return list(runs.exclude(kind="map").values_list("status", "error"))


@pytest.mark.parametrize("definition", KINDS)
def test_the_decision_alone_is_tried_again_and_the_step_stays_skipped(
    definition: type[Workflow],
) -> None:
    process = started(definition)
    pass_time(LONG)
    assert (process.status, calls["condition"]) == ("failed", 3)
    assert process.incidents == ["ValueError: bad: out of a condition"]
    process.retry()
    pass_time(LONG)
    judge.clear()
    process.retry()

    assert (process.status, calls["charge"], calls["ship"]) == ("completed", 1, 1)
    assert {status for status, _ in settled(process)} == {"skipped"}
    assert all(said for _, said in settled(process))
    assert seen == [RESULTS.get(definition, 7)] * 7
    assert violations() == []


def test_what_it_said_is_kept() -> None:
    process = started(Once)
    judge.clear()
    pass_time(LONG)

    assert settled(process) == [("skipped", "already paid")]


def test_it_has_done_nothing_that_would_be_undone() -> None:
    process = started(Undone)
    process.cancel()

    assert (process.status, calls["refund"]) == ("cancelled", 0)
    assert violations() == []


def test_a_call_that_does_not_skip_takes_the_place_of_one_that_did() -> None:
    """After a result that no case fits, a retry calls a step again that may run twice."""
    process = started(Later)
    judge.clear()
    pass_time(LONG)
    assert process.incidents[0].startswith("NoCase: ")
    process.retry()

    assert (process.status, calls["charge"]) == ("completed", 2)
    assert settled(process) == [("done", "")]


@pytest.mark.parametrize(("definition", "kept"), [(Written, 1), (WrittenInVain, 0)])
def test_a_transactional_step_that_returns_a_skip_keeps_its_writes(
    definition: type[Workflow], kept: int
) -> None:
    process = started(definition)

    assert (process.status, process.incidents) == ("completed", [])
    assert Group.objects.filter(name="effect").count() == kept
