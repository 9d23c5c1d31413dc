"""Texts that only people read: whatever is in them, they fail no work."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import pytest

from orchestrator import CorruptInput, Skip
from orchestrator.definition import (
    AsyncStepContext,
    Event,
    ProcessManager,
    StepContext,
    Workflow,
    during,
    each,
    then,
    when,
)
from orchestrator.models import StepRun
from orchestrator.testing import registered, started

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

TORN = "caf\u00e9 \ud83d \0"
MENDED = "caf\u00e9 ? \ufffd"

calls: Counter[str] = Counter()


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    """Begin each test without calls."""
    calls.clear()


class Unspeakable:
    """A message that cannot be had as text."""

    def __str__(self) -> str:
        raise SystemExit(2)


def report(context: StepContext) -> str:
    context.progress(1, 2, TORN)
    return "ok"


async def report_elsewhere(context: AsyncStepContext) -> str:
    context.progress(1, 2, TORN)
    return "ok"


def pass_over() -> str | Skip:
    return Skip(TORN, "ok")


def leave_out() -> str:
    raise Skip(TORN, "ok")


def mute(context: StepContext) -> str:
    context.progress(1, 2, Unspeakable())  # type: ignore[arg-type]
    return "ok"


async def mute_elsewhere(context: AsyncStepContext) -> str:
    context.progress(1, 2, Unspeakable())  # type: ignore[arg-type]
    return "ok"


def numbers() -> list[int]:
    return [1, 2, 3]


def spare(item: int) -> int | Skip:
    if item == 2:
        raise Skip(TORN, 0)
    return Skip(TORN, 0)


def total(spare: list[int]) -> str:
    return "ok"


def guess() -> int:
    calls["guess"] += 1
    return calls["guess"]


def doubt(guess: int) -> str:
    if guess == 1:
        raise CorruptInput("guess", TORN)
    return "ok"


reported: list[Any] = []


def count(context: StepContext) -> str:
    done, total = reported
    context.progress(done, total, "one")
    return "ok"


class Counted(Workflow):
    flow = (count,)


class Plain(Workflow):
    flow = (report,)


class Awaited(Workflow):
    flow = (report_elsewhere,)


class Returned(Workflow):
    flow = (pass_over,)


class Raised(Workflow):
    flow = (leave_out,)


class Mute(Workflow):
    flow = (mute,)


class MuteElsewhere(Workflow):
    flow = (mute_elsewhere,)


class Elements(Workflow):
    flow = (each(numbers, over="", do=spare, into=total),)


class Doubted(Workflow):
    flow = (then(guess, doubt),)


@dataclass(frozen=True)
class Named:
    name: str


def echo(name: str) -> str:
    return name


class Summed(Workflow):
    Input = Named
    flow = (echo,)

    @staticmethod
    def summary(data: Named) -> str:
        return TORN


class SummaryAsked(Event):
    name: str


class SummedManager(ProcessManager):
    class Step(StrEnum):
        NEW = "New"
        ENDED = "Ended"

    @dataclass(frozen=True)
    class Data:
        name: str

    @staticmethod
    def summary(data: Any) -> str:
        return TORN

    transitions = (during(Step.NEW, when(SummaryAsked).go_to(Step.ENDED)),)


FLOWS: dict[type[Workflow], tuple[str, str]] = {
    Plain: ("report", MENDED),
    Awaited: ("report_elsewhere", MENDED),
    Mute: ("mute", "its text cannot be had (SystemExit)"),
    MuteElsewhere: ("mute_elsewhere", "its text cannot be had (SystemExit)"),
}


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    """Register the definitions of this module."""
    with registered(
        *FLOWS, Returned, Raised, Elements, Doubted, Counted, Summed, SummedManager
    ):
        yield


@pytest.mark.parametrize("definition", FLOWS, ids=lambda kind: kind.__name__)
def test_whatever_a_step_says_of_its_progress_is_shown(
    definition: type[Workflow],
) -> None:
    process = started(definition)
    assert (process.status, process.incidents) == ("completed", [])
    name, said = FLOWS[definition]
    shown = StepRun.objects.get(node=name).progress
    assert shown is not None
    assert shown["message"] == said


@pytest.mark.parametrize("definition", [Returned, Raised, Elements, Doubted])
def test_why_a_step_is_passed_over_or_done_again_fails_nothing(
    definition: type[Workflow],
) -> None:
    process = started(definition)
    assert (process.status, process.incidents) == ("completed", [])
    said = StepRun.objects.exclude(error="").values_list("error", flat=True)
    assert {*said} <= {MENDED}


@pytest.mark.parametrize(
    "begin",
    [
        lambda: started(Summed, Named("a")),
        lambda: started(SummedManager, SummaryAsked("a")),
    ],
    ids=["workflow", "process manager"],
)
def test_whatever_a_summary_says_the_process_goes_on(begin: Callable[[], Any]) -> None:
    process = begin()
    assert process.status == "completed"
    assert process.instance.summary == MENDED


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), "many", 10**400, None])
def test_a_report_without_a_finite_number_is_a_sign_of_life_alone(bad: Any) -> None:
    reported[:] = bad, 2
    assert started(Counted).status == "completed"
    assert StepRun.objects.get(node="count").progress is None


@pytest.mark.parametrize("bad", [float("nan"), float("-inf"), "many"])
def test_a_total_that_is_no_finite_number_is_unknown(bad: Any) -> None:
    reported[:] = 1, bad
    assert started(Counted).status == "completed"
    shown = StepRun.objects.get(node="count").progress
    assert shown == {"done": 1, "total": None, "message": "one"}
