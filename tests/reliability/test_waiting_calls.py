"""Work that waits outside: many calls in flight in one worker, each with an attempt, a lease and a time of its own."""

import time
from itertools import accumulate
from typing import Any

import pytest

from orchestrator import start_process
from orchestrator.models import (
    CommandStatus,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
)
from orchestrator.queue import base_queue as plain_queue
from orchestrator.queue import calls_queue
from tests.apps.waiting_calls import processes as p
from tests.apps.waiting_calls.desk import all_ended, started, until
from tests.apps.waiting_calls.fixtures import (
    Begin,
    begin,
    forgotten,
    said,
    waiting_calls,
)
from tests.apps.waiting_calls.ways import entries, journal, open_gate
from tests.services.sizes import size

__all__ = ["begin", "forgotten", "waiting_calls"]


MANY = size(6, full=40)


def visits(**which: Any) -> list[StepRun]:
    return list(StepRun.objects.filter(**which).order_by("pk"))


def test_calls_of_steps_and_elements_run_at_once_in_one_process(begin: Begin) -> None:
    """A library that looks how far its task is sees what it would see anywhere else."""
    number = size(8, full=200)
    workers = begin()
    for index in range(number):
        started(p.OneCall, f"call-{index}", "gate all")
    elements = [f"item-{index}" for index in range(number)]
    layer = started(p.ManyCalls, elements, "gate all")
    looking = started(p.OneCall, "looking", "look")
    until(lambda: len(entries()) == 2 * number + 1, workers)
    begun = visits(status=StepStatus.RUNNING, node="call")
    open_gate("all")
    until(all_ended, workers)

    assert {run.attempt for run in begun} == {1}
    assert {entry.worker for entry in entries()} == {workers.caller}
    assert len(entries()) == 2 * number + 1
    assert set(ProcessInstance.objects.values_list("status")) == {(Status.COMPLETED,)}
    assert visits(instance=layer, node="together")[0].result == number
    assert [run.attempt for run in visits(instance=looking)] == [1]


def test_what_waits_since_a_deploy_and_what_waits_no_more_are_run(begin: Begin) -> None:
    """Some visits of each were begun by the code before, and are on the other queue."""
    plain = [started(p.Mixed, f"plain-{number}") for number in range(MANY)]
    waiting = [started(p.OneCall, f"waiting-{number}") for number in range(MANY)]
    of_calls = calls_queue("default")
    StepRun.objects.filter(instance__in=plain).update(queue=of_calls)
    plain_one = plain_queue(of_calls)
    StepRun.objects.filter(instance__in=waiting).update(queue=plain_one)
    until(all_ended, begin())

    assert {run.attempt for run in visits()} == {1}
    assert len(entries()) == 2 * MANY


# Commands


def test_commands_after_the_commit_wait_outside_in_their_order(begin: Begin) -> None:
    workers = begin()
    start_process(p.Calling, p.Wanted("a", "gate all"))
    until(lambda: bool(entries(name="a")), workers)
    first, second = IssuedCommand.objects.order_by("type")
    open_gate("all")
    until(all_ended, workers)

    assert (first.type, first.status) == ("CallInThread", CommandStatus.DONE)
    assert (second.status, second.attempt) == (CommandStatus.RUNNING, 1)
    assert ProcessInstance.objects.get().step == "Called"


# Threads


def test_blocking_calls_in_flight_are_as_many_as_threads(begin: Begin) -> None:
    """And none of its name is kept waiting of which there may be more."""
    workers = begin()
    for name in "abcd":
        started(p.InThread, name, "gate all")
    until(lambda: len(entries()) == 2, workers)
    other = started(p.SameName, "other")
    until(lambda: bool(entries("end", "other")), workers)
    begun = len(entries())
    open_gate("all")
    until(all_ended, workers)

    assert begun == 3
    assert len(entries()) == 5
    assert visits(instance=other)[0].attempt == 1
    assert {run.attempt for run in visits()} == {1}


def test_who_has_calls_in_flight_hears_of_more_by_a_bell(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody polls or sweeps meanwhile, which would make a bell good that is not heard."""
    monkeypatch.setenv("PROCESSION_POLL_SECONDS", "60")
    monkeypatch.setenv("PROCESSION_SWEEP_SECONDS", "3600")
    started(p.OneCall, "has a worker for calls started")
    workers = begin()
    until(all_ended, workers)
    since = time.monotonic()
    for number in range(3):
        started(p.OneCall, f"call {number}")
        until(all_ended, workers)

    assert time.monotonic() - since < 55
    assert "Exception in thread" not in said(workers)


def test_when_one_of_a_few_has_ended_the_next_begins_without_a_bell(
    begin: Begin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sweeps meanwhile, who would ring for what is left."""
    monkeypatch.setenv("PROCESSION_SWEEP_SECONDS", "60")
    started(p.OneCall, "has a worker for calls started")
    workers = begin()
    until(all_ended, workers)
    for workflow in (p.FewThreads, p.FewCalls):
        process = started(workflow, [f"item-{i}" for i in range(MANY)])
        until(all_ended, workers)
        assert visits(instance=process).pop().result == MANY

    assert len(entries()) == 2 * MANY + 1
    assert most_at_once() <= 3


def most_at_once() -> int:
    """Count the calls that were in flight at the same moment."""
    lines = journal().read_text().splitlines()
    return max(accumulate(1 if one.startswith("begin") else -1 for one in lines))
