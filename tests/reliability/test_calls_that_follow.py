"""What follows from calls: with what values, as many as there is room for, unharmed by what a neighbour gave."""

import time

import pytest

from orchestrator import send_event
from orchestrator.definition import Workflow
from orchestrator.engine.operations import redo, repair
from orchestrator.models import Incident, IssuedCommand, ProcessInstance, StepRun
from tests.apps.calls_that_follow import processes
from tests.apps.calls_that_follow.processes import (
    Checked,
    Neighbour,
    Odd,
    PlainPriced,
    Priced,
    Rated,
    Spreading,
    ThenLimited,
    ThenThread,
)
from tests.apps.waiting_calls.desk import started, until
from tests.apps.waiting_calls.fixtures import Begin, begin, forgotten, waiting_calls
from tests.apps.waiting_calls.processes import OneCall, Wanted
from tests.apps.waiting_calls.ways import entries, open_gate
from tests.reliability.test_waiting_calls_in_trouble import ended
from tests.services.crews import knowing
from tests.services.declared import declared
from tests.services.doing import did
from tests.services.sizes import size
from tests.services.workers import said

__all__ = ["begin", "forgotten", "waiting_calls"]


TEN = 10

COMMANDS = size(8, full=40)
"""Each is followed by a second one."""


known = knowing(*declared(vars(processes)))


def result_of(process: ProcessInstance, step: str) -> object:
    return StepRun.objects.get(instance=process, node=step).result


def test_a_step_gets_a_result_as_edited_while_the_one_before_ran(begin: Begin) -> None:
    workers = begin()
    of_step = {"price": started(Priced, "a", "gate long")}
    of_step["plain_price"] = started(PlainPriced, "b", "gate long")
    until(lambda: len(entries()) == len(of_step), workers)
    for node, process in of_step.items():
        run = StepRun.objects.get(instance=process, node=node)
        edit = {"edit": "result", "target": str(run.pk), "value": 2}
        did(repair, process, [edit])

    open_gate("long")
    until(lambda: ended(*of_step.values()), workers)

    assert result_of(of_step["price"], "pay") == 2
    assert result_of(of_step["plain_price"], "plain_pay") == 2


@pytest.mark.parametrize("kind", [Rated, Checked], ids=["operator", "branch"])
def test_a_step_gets_a_result_that_was_made_again_while_the_one_before_it_ran(
    begin: Begin, kind: type[Workflow]
) -> None:
    """By an operator, or because a branch beside it found it bad."""
    workers = begin()
    process = started(kind, "a", "gate long")
    until(lambda: len(entries()) == 1, workers)
    open_gate("second")
    if kind is Rated:
        did(redo, process, "rate")
    open_gate("check")
    rounds = StepRun.objects.filter(instance=process, node="rate", status="done")
    until(lambda: rounds.count() == 2, workers)
    if kind is Checked:
        checks = StepRun.objects.filter(instance=process, node="checker")
        until(lambda: checks.filter(status="done").exists(), workers)

    open_gate("long")
    until(lambda: ended(process), workers)

    assert result_of(process, "pay_rate") == 2


def test_more_calls_follow_than_there_are_places_and_the_neighbour_goes_on(
    monkeypatch: pytest.MonkeyPatch, begin: Begin
) -> None:
    monkeypatch.setenv("PROCESSION_CALLS_IN_FLIGHT", "5")
    workers = begin()
    beside = started(Neighbour, "beside", "gate beside")
    until(lambda: len(entries("begin", "beside")) == 1, workers)
    spreading = started(Spreading, "a", "gate both")
    until(lambda: len(entries()) == 3, workers)
    caller = workers.caller

    open_gate("both")
    until(lambda: ended(spreading), workers)
    open_gate("beside")
    until(lambda: ended(beside), workers)

    assert workers.caller == caller
    assert len(entries("begin", "beside")) == 1
    assert not Incident.objects.open().exists()


def test_results_that_cannot_be_stored_fail_their_steps_alone(begin: Begin) -> None:
    workers = begin()
    beside = started(Neighbour, "beside", "gate beside")
    for number in range(3):
        started(Odd, f"n{number}", "gate all")
    until(lambda: len(entries()) == 4, workers)
    caller = workers.caller

    open_gate("all")
    failures = Incident.objects.open()
    until(lambda: failures.count() == 3, workers)
    open_gate("beside")
    until(lambda: ended(beside), workers)

    assert workers.caller == caller, said(workers)
    assert all("result of odd" in failure.message for failure in failures)


@pytest.mark.parametrize(
    ("kind", "gate"), [(ThenThread, "threads"), (ThenLimited, "limited")]
)
def test_no_more_follow_at_once_than_may_be_in_flight(
    begin: Begin, kind: type[Workflow], gate: str
) -> None:
    workers = begin()
    processes = [started(kind, f"n{number}", "gate all") for number in range(TEN)]
    until(lambda: len(entries()) == TEN, workers)

    open_gate("all")
    until(lambda: len(entries()) == TEN + 2, workers)
    time.sleep(1)
    at_once = len(entries()) - TEN  # none of them has ended
    open_gate(gate)
    until(lambda: ended(*processes), workers)

    assert at_once == 2


def test_a_step_is_begun_in_its_turn_though_there_are_commands(
    monkeypatch: pytest.MonkeyPatch, begin: Begin
) -> None:
    """Two calls at a time; it would be the last of all if commands came first."""
    monkeypatch.setenv("PROCESSION_CALLS_IN_FLIGHT", "2")
    for number in range(COMMANDS):
        send_event(Wanted(f"c{number}", "gate begin"), id=f"c{number}")
    process = started(OneCall, "step", "wait 0.1")
    workers = begin()
    until(lambda: IssuedCommand.objects.count() >= COMMANDS, workers)
    until(lambda: StepRun.objects.filter(instance=process).exists(), workers)
    open_gate("begin")

    until(lambda: ended(process), workers)

    # While it waits, the other place has time for more of them the faster the machine is: its end says nothing.
    assert [entry.name for entry in entries()].index("step") < COMMANDS
