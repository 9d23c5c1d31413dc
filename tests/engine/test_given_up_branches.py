"""Branches that a failure had given up come back when somebody sees to it, unless they are needed no more."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import ClassVar

import pytest

from orchestrator.definition import (
    Workflow,
    ask,
    each,
    join,
    migrates_from,
    start,
    step,
)
from orchestrator.engine.operations import migrate, retry, skip
from orchestrator.models import ProcessInstance
from orchestrator.testing import registered
from tests.apps.patterns.desk import finished, go_on, statuses, visit, visits
from tests.apps.versions.desk import only
from tests.services.doing import did

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("known")]

ELSEWHERE = "elsewhere"
"""A queue that nobody works off until a test does."""


@dataclass(frozen=True)
class Numbers:
    numbers: list[int]


class Choice(StrEnum):
    YES = "yes"


class Calls:
    """What was called, and whether it works."""

    made: ClassVar[list[str]] = []
    broken: ClassVar[bool] = True


def given(numbers: list[int]) -> list[int]:
    return numbers


def work(item: int) -> int:
    raise ConnectionError("no line")


def weigh(item: int) -> int:
    return item


def other() -> int:
    Calls.made.append("other")
    return 1


def pack() -> int:
    if Calls.broken:
        raise ConnectionError("no line")
    return 1


def label() -> int:
    return 2


def send() -> int:
    return 3


working = step(work, retries=0)
others = step(other, queue=ELSEWHERE)
question = ask("question", Choice)
either = partial(join, into=send, wait_for="any", on_failure="fail_fast", rest="cancel")


class EitherWay(Workflow):
    """Of a map and another branch the first one is enough; the other is cancelled then, and when one fails."""

    Input = Numbers
    flow = (
        each(given, over="", do=working, into=send),
        start(given, others),
        either(working, others),
    )


class EitherAsked(Workflow):
    """The same, where the other branch asks somebody."""

    Input = Numbers
    flow = (
        start(given, question),
        each(given, over="", do=working, into=send),
        either(working, question),
    )


class Wide(Workflow):
    """A step that fails beside a map has all its elements given up."""

    Input = Numbers
    packing = step(pack, retries=0, gives="packed")
    waiting = step(weigh, queue=ELSEWHERE)
    flow = (
        each(given, over="", do=waiting, into=send),
        start(given, packing),
        join(waiting, packing, into=send, on_failure="fail_fast"),
    )


def packed(*names: str, queue: str) -> tuple[object, ...]:
    """Return the flow in which these two steps are begun together, of which the first may fail."""
    one = step(pack, names[0], retries=0, gives="packed")
    other = step(label, names[1], queue=queue, gives="labelled")
    return start(one, other), join(one, other, into=send, on_failure="fail_fast")


class Parcel(Workflow):
    name = "parcel"
    flow = packed("pack", "label", queue=ELSEWHERE)


class ParcelRenamed(Workflow):
    name = "parcel"
    version = 2
    migrations = (migrates_from(1, steps={"pack": "wrap"}),)
    flow = packed("wrap", "label", queue="far away")


class ParcelExchanged(Workflow):
    name = "parcel"
    version = 3
    migrations = (migrates_from(1, steps={"pack": "label", "label": "pack"}),)
    flow = packed("label", "pack", queue="far away")


@pytest.fixture(scope="module")
def known() -> Iterator[None]:
    parcels = (Parcel, ParcelRenamed, ParcelExchanged)
    with registered(EitherWay, EitherAsked, Wide, *parcels):
        yield


@pytest.fixture(autouse=True)
def calls() -> None:
    Calls.broken = True
    Calls.made.clear()


def skip_element(process: ProcessInstance) -> None:
    [element] = [run for run in visits(process, "work") if run.item is not None]
    did(skip, process, element.pk, 1)


def test_a_branch_that_is_needed_no_more_after_a_skip_stays_cancelled() -> None:
    process = finished(EitherWay, [13])
    assert (process.status, statuses(process)["other"]) == ("failed", "cancelled")

    skip_element(process)

    process = go_on(go_on(process), ELSEWHERE)
    assert (process.status, process.open_steps) == ("completed", 0)
    assert (statuses(process)["other"], Calls.made) == ("cancelled", [])


def test_a_question_that_is_needed_no_more_keeps_its_process_from_no_end() -> None:
    process = finished(EitherAsked, [13])

    skip_element(process)

    process = go_on(process)
    assert (process.status, process.open_steps) == ("completed", 0)


@pytest.mark.parametrize(
    ("version", "failed", "given_up"), [(2, "wrap", "label"), (3, "label", "pack")]
)
@pytest.mark.parametrize("remedy", ["retry", "skip"])
def test_a_branch_comes_back_in_a_version_that_calls_the_steps_otherwise(
    remedy: str, version: int, failed: str, given_up: str
) -> None:
    with only("parcel", 1):
        process = finished(Parcel)
    assert statuses(process)["label"] == "cancelled"
    Calls.broken = False

    did(migrate, process, version, {})
    if remedy == "retry":
        did(retry, process)
    else:
        did(skip, process, visit(process, failed).pk, 1)

    process = go_on(go_on(go_on(process), "far away"))
    assert (process.status, statuses(process)[given_up]) == ("completed", "done")


def test_the_idle_limit_grows_with_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[float] = []
    allow = "orchestrator.engine.sql.connection.allow_idle"
    monkeypatch.setattr(allow, allowed.append)
    process = finished(Wide, list(range(300)))
    assert statuses(process)["weigh"] == "cancelled"
    assert 10 in allowed  # seconds, for 300 rows
    Calls.broken = False
    allowed.clear()

    did(retry, process)

    assert 10 in allowed  # seconds, for 300 rows
    assert visits(process, "weigh")[-1].status == "ready"
