"""The database's clock goes back: what was due goes on at once, and what waits for a moment keeps it.

No test changes the clock. The tests move all stored times ahead instead, which makes the same gap.
"""

import logging
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections
from django.utils import timezone, translation
from pytest_django import Settings

from monitoring.probes.machinery import machinery
from orchestrator import Poll, reacts_to, registry, send_event, start_process
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event, Workflow, run, sleep, step, then
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops import clock_watch
from orchestrator.engine.loops.clock_watch import ClockWatch
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql import batch
from orchestrator.engine.sql.batch import Clock, database_now
from orchestrator.engine.sql.tables import events, step_runs
from orchestrator.models import (
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
    Worker,
)
from orchestrator.notices.item_lines import item_line
from orchestrator.testing.clock import move_times_back
from orchestrator.workers.database_process import (
    DatabaseProcess,
    LivingWorker,
    WorkerReport,
)
from tests.apps.noting import Note, Noting, Opened
from tests.apps.process_managers.fixtures import SetHandler, handler
from tests.services.crews import knowing
from tests.services.telling import gathered

__all__ = ["handler"]

pytestmark = pytest.mark.django_db(transaction=True)

JUMP = timedelta(minutes=10)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
LIVING = [LivingWorker("worker", 1, 1.0, holds=False)]

ids = (str(number) for number in count())
troubles: list[Exception] = []


def work() -> None:
    if troubles:
        raise troubles.pop()


class Short(Workflow):
    """A process of two steps."""

    flow = (then(step(work, "first"), step(work, "second")),)


class Long(Workflow):
    """A process that sleeps."""

    flow = (then(sleep(HOUR, "nap"), step(work, "wake_up")),)


class Outer(Workflow):
    """A process with a sub-process."""

    flow = (then(run(Short, "inner"), step(work, "after")),)


class Told(Event):
    number: int


class Heard(Event):
    number: int


def hear(event: Told) -> Heard:
    return Heard(event.number)


definitions = knowing(Short, Long, Outer, Noting)


@pytest.fixture(autouse=True)
def no_trouble() -> None:
    troubles.clear()


@pytest.fixture
def elapse(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Return a function after which the clock that cannot go back has gone on, and the database's clock has not."""

    def go_on(by: timedelta) -> None:
        ahead = SimpleNamespace(monotonic=lambda: time.monotonic() + by.total_seconds())
        for module in (clock_watch, batch):
            monkeypatch.setattr(module, "time", ahead)

    return go_on


def set_back(by: timedelta = JUMP) -> None:
    move_times_back(-by)


def look_once() -> ClockWatch:
    """Look as a supervisor that has just started does."""
    watch = ClockWatch("default")
    watch.look()
    return watch


def report(**more: Any) -> None:
    """Store a report of a supervisor that has just started."""
    connections.close_all()  # which the process would have too
    process = DatabaseProcess()
    process.send(WorkerReport("supervisor", "default", LIVING, sweep=True, **more))
    answered = process.wait(time.monotonic() + 20)
    process.end()
    assert answered


def deliver() -> None:
    """Deliver the events, before what follows from them is run."""
    while found := events.claim("default", "sender", 64, 60):
        for item in found:
            deliver_claimed(item.work)


def opened() -> ProcessInstance:
    """Return a process whose command is due."""
    send_event(Opened(1), id=next(ids), correlation_key="N-1")
    deliver()
    return ProcessInstance.objects.get(name=Noting.name)


def due(kind: type[Workflow], node: str) -> StepRun:
    """Return the visit of a step whose process has just come to it."""
    start_process(kind)
    deliver()
    return StepRun.objects.filter(node=node).latest("pk")


def wakes(row: Any) -> datetime:
    row.refresh_from_db()
    return row.wake_at  # type: ignore[no-any-return]


def statuses() -> set[str]:
    return set(ProcessInstance.objects.values_list("status", flat=True))


def test_what_was_received_while_no_worker_ran_goes_on(handler: SetHandler) -> None:
    handler(Note, lambda command, context: None)
    start_process(Short)
    send_event(Opened(1), id=next(ids), correlation_key="N-1")
    set_back()
    assert drain() == 0

    report()
    drain()
    assert not InboxEvent.objects.filter(handled_at=None).exists()
    assert Status.RUNNING not in statuses()


def test_whatever_was_due_goes_on(handler: SetHandler) -> None:
    handler(Note, lambda command, context: None)
    opened()
    due(Short, "first")
    due(Outer, "inner")
    set_back()
    assert drain() == 0

    look_once()
    drain()
    assert not StepRun.objects.filter(finished_at=None, kind="step").exists()
    assert not IssuedCommand.objects.exclude(status="done").exists()
    done = ProcessInstance.objects.filter(status=Status.COMPLETED)
    assert done.filter(name__in=[Short.name, Outer.name]).count() == 3


def test_a_step_that_is_to_look_at_its_sub_process_looks() -> None:
    inner = due(Outer, "inner")

    def child_has_ended() -> bool:
        inner.refresh_from_db()
        return inner.child is not None and inner.child.finished_at is not None

    drain(stop=child_has_ended)
    assert inner.status == StepStatus.WAITING
    set_back()
    assert drain() == 0

    look_once()
    drain()
    assert statuses() == {Status.COMPLETED}


def test_while_workers_run_it_is_noticed_by_the_clock_that_does_not_go_back(
    elapse: Callable[[timedelta], None], caplog: pytest.LogCaptureFixture
) -> None:
    watch = look_once()
    start_process(Short)
    watch.look()
    assert watch.last is None

    set_back()
    elapse(JUMP)
    with caplog.at_level(logging.ERROR):
        watch.look()
    assert watch.last is not None
    assert abs(watch.last.gap - JUMP) < SECOND
    assert "the database's clock has gone back by" in caplog.text
    drain()
    assert statuses() == {Status.COMPLETED}


def test_sleeps_keep_their_moment_and_no_pause_becomes_longer_than_the_longest() -> (
    None
):
    nap = due(Long, "nap")
    troubles.append(ValueError("no"))
    retried = due(Short, "first")
    drain()
    set_back()
    promised = wakes(nap)
    assert retried.status == StepStatus.READY
    assert wakes(retried) > database_now() + JUMP / 2

    look_once()
    longest = timedelta(seconds=conf().BACKOFF_CAP_SECONDS)
    assert wakes(nap) == promised
    assert SECOND < wakes(retried) - database_now() <= longest


def test_a_step_that_polls_is_called_again_after_the_longest_pause_at_the_latest() -> (
    None
):
    polling = due(Short, "first")
    troubles.append(Poll(timedelta(minutes=2), within=HOUR))
    drain()
    set_back()
    assert polling.status == StepStatus.READY
    assert wakes(polling) > database_now() + JUMP

    look_once()
    longest = timedelta(seconds=conf().BACKOFF_CAP_SECONDS)
    assert wakes(polling) - database_now() <= longest


def test_the_lease_of_a_lost_worker_lasts_no_longer_than_a_lease() -> None:
    first = due(Short, "first")
    StepRun.objects.update(wake_at=database_now())
    step_runs.claim("default", "lost", 8, conf().LEASE_SECONDS)
    set_back()

    look_once()
    lease = timedelta(seconds=conf().LEASE_SECONDS)
    assert wakes(first) <= database_now() + lease
    assert first.owner == "lost"
    move_times_back(lease)
    drain()
    assert statuses() == {Status.COMPLETED}


def test_a_worker_that_was_lost_before_does_not_count_as_alive() -> None:
    soon = database_now() + JUMP
    about = {"supervisor": "gone", "host": "h", "pid": 1, "queue": "default"}
    row = Worker.objects.create(
        id="lost", **about, started_at=soon, seen_at=soon, swept_at=soon
    )
    start_process(Short)
    set_back()

    look_once()
    row.refresh_from_db()
    assert row.seen_at <= database_now()
    drain()


def test_what_is_stamped_late_by_the_clock_as_it_was_goes_on_too(
    elapse: Callable[[timedelta], None],
) -> None:
    start_process(Short)
    set_back()
    watch = look_once()
    start_process(Short)
    late = StepRun.objects.latest("pk")
    StepRun.objects.filter(pk=late.pk).update(wake_at=database_now() + JUMP)

    watch.look()
    drain()
    assert statuses() == {Status.COMPLETED}


def test_more_than_one_look_can_mend_goes_on_with_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(clock_watch, "MOST", 2)
    for _ in range(5):
        start_process(Short)
    set_back()

    watch = look_once()
    assert StepRun.objects.filter(wake_at__gt=database_now()).count() == 3
    for _ in range(2):
        watch.look()
    drain()
    assert statuses() == {Status.COMPLETED}


def test_simple_event_handlers_keep_the_order_of_their_events(
    monkeypatch: pytest.MonkeyPatch, elapse: Callable[[timedelta], None]
) -> None:
    monkeypatch.setitem(registry.reactions, "Told", [])
    reacts_to(Told)(hear)
    watch = look_once()
    for number in range(6):
        if number == 3:
            set_back()
            elapse(JUMP)
        if number == 4:
            watch.look()
        send_event(Told(number), id=next(ids), correlation_key="T-1")
    drain()
    heard = InboxEvent.objects.filter(type="Heard").order_by("pk")
    assert [event.body["number"] for event in heard] == list(range(6))


def test_people_are_told_once_by_two_supervisors(
    settings: Settings, elapse: Callable[[timedelta], None]
) -> None:
    settings.PROCESSION_NOTICES = {
        "ops": {"to": ["ops@example.org"], "about": ["queue"]}
    }
    watches = [look_once(), look_once()]
    start_process(Short)
    set_back()
    elapse(JUMP)
    for name, watch in zip("ab", watches, strict=True):
        watch.look()
        living = [LivingWorker(name, 1, 1.0, holds=False)]
        WorkerReport(name, "default", living).store(watch.last)
    [notice] = gathered()
    [item] = notice.items
    assert item["state"] == "clock"
    line = "the database's clock went back by 0:"
    assert item_line(item, notice.texts).startswith(line)
    with translation.override("ja"):
        assert "データベースの時計" in item_line(item, notice.texts)
    assert Worker.objects.filter(set_back_at__isnull=False).count() == 2
    drain()
    assert statuses() == {Status.COMPLETED}


def test_the_console_says_it_for_an_hour() -> None:
    start_process(Short)
    set_back()
    report()
    found = machinery()
    assert found.set_back is not None
    assert JUMP - 5 * SECOND < found.set_back < JUMP + 5 * SECOND

    Worker.objects.update(set_back_at=timezone.now() - HOUR)
    assert machinery().set_back is None
    drain()


def test_an_answer_that_comes_late_is_no_clock_that_went_back(
    monkeypatch: pytest.MonkeyPatch, elapse: Callable[[timedelta], None]
) -> None:
    watch = look_once()

    def late() -> datetime:
        now = database_now()
        elapse(JUMP)
        return now

    monkeypatch.setattr(clock_watch, "database_now", late)
    watch.look()
    assert watch.last is None
    watch.look()
    assert watch.last is None


def test_nobody_is_told_where_nothing_sleeps(
    elapse: Callable[[timedelta], None],
) -> None:
    start_process(Short)
    drain()
    watch = look_once()
    move_times_back(-JUMP)  # as the rows of an imported process may stand
    assert look_once().last is None

    elapse(-SECOND)  # as after a jump ahead
    watch.look()
    assert watch.last is None


def test_a_long_call_ends_by_the_clock_as_it_is(
    elapse: Callable[[timedelta], None],
) -> None:
    clock = Clock(database_now() + JUMP)
    assert clock.now() > database_now() + JUMP / 2
    elapse(timedelta(seconds=batch.CLOCK_SECONDS + 1))
    assert clock.now() <= database_now()
