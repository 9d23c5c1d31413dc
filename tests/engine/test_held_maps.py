"""A held map at the edges: elements that have begun go on, and none sleeps for ever."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from orchestrator import Permanent, Poll, Retry
from orchestrator.definition import (
    Workflow,
    each,
    join,
    run,
    sleep,
    start,
    step,
    then,
)
from orchestrator.engine.operations import pause, resume, retry, unpause
from orchestrator.models import ProcessInstance, StepKind
from orchestrator.testing import Process, pass_time, started
from orchestrator.testing import run as run_due
from tests.services.asking import asked
from tests.services.crews import knowing
from tests.services.noting import noting

pytestmark = pytest.mark.django_db

DEVICES = 12
CHECK = -1
MINUTE = timedelta(minutes=1)
NIGHT = timedelta(hours=8)

bad: set[int] = set()
passing: set[int] = set()
"""The devices that fail with an error after which they are tried again."""
polls: dict[int, int] = {}
"""How often a device is not ready yet."""
calls: Counter[int] = Counter()
pausing: set[int] = set()
"""The devices during whose update a person pauses all processes."""


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    for one in (bad, passing, polls, calls, pausing):
        one.clear()


def devices() -> list[int]:
    return [*range(DEVICES)]


def update(item: int) -> int:
    calls[item] += 1
    if item in pausing:
        for process in ProcessInstance.objects.all():
            pause(process.pk, request=asked())
    if polls.get(item, 0) >= calls[item]:
        raise Poll(MINUTE, within=NIGHT)
    if item in passing:
        raise Retry(after=MINUTE)
    if item in bad:
        raise Permanent(f"device {item} does not start")
    return item


def report(update: list[int]) -> int:
    return len(update)


@dataclass(frozen=True)
class Device:
    item: int


def install(item: int) -> int:
    return update(item)


class Install(Workflow):
    """Updates one device; the good ones at night."""

    Input = Device
    flow = (then(step(install), sleep(NIGHT, "nap")),)


install_one = run(Install, "install_one")


def gather(install_one: list[Any]) -> int:
    return len(install_one)


class Tolerant(Workflow):
    """A roll-out in which one device may fail."""

    flow = (each(devices, over="", do=update, into=report, tolerate=1),)


class Windowed(Workflow):
    """A roll-out of eight at a time, in which three devices may fail."""

    flow = (each(devices, over="", do=update, into=report, window=8, tolerate=3),)


class Strict(Workflow):
    """A roll-out in which no device may fail."""

    flow = (each(devices, over="", do=update, into=report),)


class Nested(Workflow):
    """A roll-out by sub-processes."""

    flow = (each(devices, over="", do=install_one, into=gather, tolerate=1),)


def check() -> bool:
    calls[CHECK] += 1
    if CHECK in bad and calls[CHECK] > 1:
        raise Permanent("the stock is wrong")
    if CHECK in bad:
        raise Poll(MINUTE, within=NIGHT)
    return True


def deliver(report: int, check: bool) -> int:
    return report


class Checked(Workflow):
    """The same, beside a check whose failure cancels the roll-out until a person retries."""

    flow = (
        start(devices, step(check, retries=0)),
        each(devices, over="", do=update, into=report, window=8, tolerate=3),
        join(report, check, into=deliver, on_failure="fail_fast"),
    )


known = knowing(Tolerant, Windowed, Strict, Nested, Install, Checked)


def elements(process: Process) -> Counter[str]:
    items = process.instance.step_runs.filter(kind=StepKind.ITEM)
    return Counter(items.values_list("status", flat=True))


def test_a_sub_process_that_ends_while_its_map_is_held_is_counted() -> None:
    bad.update([3, 4])
    process = started(Nested)
    assert process.status == "failed"
    pass_time(NIGHT)
    assert elements(process)["done"] == DEVICES - 2

    bad.clear()
    process.retry()
    pass_time(NIGHT)
    assert process.status == "completed"


def test_an_element_that_polls_goes_on_while_its_map_is_held() -> None:
    polls[0] = 2
    bad.update([1, 2])
    process = started(Tolerant)
    assert process.status == "failed"
    pass_time(minutes=5)

    assert calls[0] == 3
    assert elements(process)["done"] == 1


def test_all_that_a_person_retries_is_tried_again() -> None:
    passing.update(range(DEVICES))
    process = started(Tolerant)
    for _ in range(8):
        pass_time(minutes=5)
    assert process.status == "failed"
    open_ones = process.instance.step_runs.filter(status="failed", finished_at=None)
    failed = set(open_ones.values_list("item", flat=True))
    assert len(failed) > 2

    passing.clear()
    bad.update(range(DEVICES))
    calls.clear()
    process.retry()
    assert set(calls) >= failed

    bad.clear()
    process.retry()
    assert process.status == "completed"


def test_a_failure_in_a_paused_process_holds_its_map_too() -> None:
    bad.update([0, 1])
    pausing.add(1)
    process = started(Tolerant)
    assert process.instance.paused_at is not None
    unpause(process.id, request=asked())
    asleep = process.instance.step_runs.filter(status="waiting", kind=StepKind.ITEM)
    assert not asleep.filter(wake_at__isnull=False).exists()
    run_due()
    assert set(calls) == {0, 1}

    bad.clear()
    pausing.clear()
    process.retry()
    assert process.status == "completed"


def test_a_resumed_map_begins_no_more_than_its_failures_have_left() -> None:
    bad.update(range(4))
    process = started(Windowed)
    assert process.status == "failed"
    resume(process.id, process.instance.revision, request=asked())
    assert elements(process)["ready"] == 2


@pytest.mark.parametrize(("failed", "room"), [(1, 6), (2, 4), (3, 2)])
def test_a_map_that_a_person_revives_begins_with_its_narrowed_window(
    failed: int, room: int
) -> None:
    bad.update(range(failed), [CHECK])
    polls.update(dict.fromkeys(range(failed, DEVICES), 10))
    process = started(Checked)
    pass_time(minutes=2)
    assert elements(process)["cancelled"] == DEVICES - failed

    retry(process.id, request=asked())
    assert elements(process)["ready"] == room
    bad.clear()
    polls.clear()
    run_due()
    assert process.result == DEVICES - failed


def test_a_visit_of_the_release_before_that_a_person_revives_is_listed_by_its_process() -> (
    None
):
    """It was closed when the migration set the starts of open visits."""
    bad.update([0, CHECK])
    polls.update(dict.fromkeys(range(1, DEVICES), 10))
    process = started(Checked)
    pass_time(minutes=2)
    closed = process.instance.step_runs.filter(kind=StepKind.MAP)
    assert closed.update(process_started_at=timezone.now()) == 1

    retry(process.id, request=asked())

    assert closed.get().finished_at is None
    assert closed.get().process_started_at == process.instance.started_at


def test_a_held_map_that_a_person_retries_begins_with_its_narrowed_window() -> None:
    bad.update(range(4))
    polls.update(dict.fromkeys(range(4, DEVICES), 10))
    process = started(Windowed)
    assert set(calls) == set(range(4))

    bad.clear()
    process.retry()
    assert set(calls) == {*range(4), 4, 5}
    pass_time(NIGHT)
    assert process.result == DEVICES - 3


def test_a_map_that_tolerates_none_costs_no_more_after_a_failure() -> None:
    with noting() as before:
        started(Strict)
    bad.add(0)
    with noting() as found:
        started(Strict)
    assert len(found) < len(before) + 3 * DEVICES
