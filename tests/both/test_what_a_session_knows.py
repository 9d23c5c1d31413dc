"""What a worker knows of a process is what was stored: not what it had begun to write, nor before what others wrote."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from django.db import OperationalError, ProgrammingError

from orchestrator import start_process
from orchestrator.definition import Workflow, join, start, step, then
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql import group_commit
from orchestrator.engine.sql.tables import events, step_runs
from orchestrator.engine.steps import quick_results, step_calls
from orchestrator.engine.steps.runner import CLAIMED, StepRunner
from orchestrator.engine.steps.session import Session
from orchestrator.engine.storage.receipts import Receipt
from orchestrator.engine.work.call_room import Room
from orchestrator.engine.work.worker_slice import UNSEEN, WorkerSlice
from orchestrator.models import ProcessInstance, Status, StepRun
from orchestrator.queue import calls_queue
from tests.services.crews import knowing
from tests.services.doing import fresh
from tests.services.supervised import Supervised, quick, unhurried

__all__ = ["quick", "unhurried"]

pytestmark = pytest.mark.django_db(transaction=True)

CALLED: list[str] = []


@dataclass(frozen=True)
class Named:
    """What each of them is given."""

    name: str


async def one(name: str) -> str:
    return name


async def two(one: str) -> str:
    return one


async def three(two: str) -> str:
    return two


async def four(three: str) -> str:
    return three


async def asked(name: str) -> str:
    return name


def x(name: str) -> str:
    return name


def y(x: str) -> str:
    return x


def a(name: str) -> str:
    CALLED.append("a")
    return name


def b(name: str) -> str:
    CALLED.append("b")
    return name


def a_too(a: str) -> str:
    CALLED.append("a_too")
    return a


def d(name: str) -> str:
    CALLED.append("d")
    return name


class Chain(Workflow):
    """Calls one after another."""

    Input = Named
    flow = (start(one), then(one, two), then(two, three), then(three, four))


class CallBesideTwo(Workflow):
    """A call beside two steps."""

    Input = Named
    flow = (start(step(asked), x), then(x, y))


class Pair(Workflow):
    """Two steps."""

    Input = Named
    flow = (start(x), then(x, y))


class First(Workflow):
    """The first of two branches is enough, and the other is cancelled."""

    Input = Named
    flow = (
        start(a, b),
        then(a, a_too),
        join(a_too, b, into=d, wait_for="any", rest="cancel"),
    )


known = knowing(Chain, CallBesideTwo, Pair, First)


WORKER = WorkerSlice(calls_queue("default"), "A")


def started(number: int) -> None:
    """Have the events that start processes delivered."""
    for event in events.claim("default", "sender", number, 600):
        deliver_claimed(event.work)


def calls(number: int) -> list[Any]:
    """Begin so many calls."""
    started(16)
    room = Room(list, lambda: 16)
    found = step_runs.claim(WORKER.queue, WORKER.owner, number, 600, **CLAIMED)
    return [
        step_calls.prepare_step_call(item.work, WORKER, room, None) for item in found
    ]


def refusing_once(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, error: Exception
) -> None:
    """Have a method do its work and raise an error, the first time."""
    usual, refusals = getattr(owner, name), [1]

    def method(self: Any, *args: Any) -> Any:
        found = usual(self, *args)
        if refusals and refusals.pop():
            raise error
        return found

    monkeypatch.setattr(owner, name, method)


def goes_on_until_all_is_done(receipt: Receipt) -> None:
    process = ProcessInstance.objects.get(pk=str(receipt.process_id))
    assert (process.status, process.open_steps) == (Status.RUNNING, 1)
    drain(owner="B")
    assert fresh(process).status == Status.COMPLETED
    assert {run.status for run in process.step_runs.all()} == {"done"}


def losing_once(
    monkeypatch: pytest.MonkeyPatch, lose: Callable[[Any], list[bool]]
) -> None:
    """Have the first two changes that are stored together not all be written."""
    usual, races = group_commit.commit_changes, [1]

    def commit(changes: Any) -> group_commit.GroupCommit:
        if len(changes) == 2 and races and races.pop():
            return group_commit.GroupCommit(lose(changes))
        return usual(changes)

    monkeypatch.setattr(group_commit, "commit_changes", commit)


# Calls


def test_a_call_that_was_refused_once_ends_no_process_in_which_another_step_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    receipt = start_process(CallBesideTwo, Named("a"))
    [call] = calls(1)
    deadlock = OperationalError("deadlock detected")
    refusing_once(monkeypatch, WorkflowChange, "send", deadlock)
    with pytest.raises(OperationalError):
        call.store_result("a")
    call.store_result("a")  # as its worker does a moment later

    goes_on_until_all_is_done(receipt)


def test_a_refused_commit_and_another_workers_change_make_no_revision_that_matches(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    receipt = start_process(CallBesideTwo, Named("a"))
    [call] = calls(1)
    lost = OperationalError("the connection was lost at the commit")
    refusing_once(monkeypatch, WorkflowChange, "after_write", lost)
    with pytest.raises(OperationalError):
        call.store_result("a")
    [item] = step_runs.claim("default", "B", 1, 600, **CLAIMED)
    runner = StepRunner(WorkerSlice("default", "B"))
    runner.run(item.work)  # so that y begins
    runner.store(goes_on=False)
    call.store_result("a")

    goes_on_until_all_is_done(receipt)


def test_a_chain_of_calls_is_quick_again_after_a_race_that_was_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("a", "b"):
        start_process(Chain, Named(name))
    begun = calls(2)
    losing_once(monkeypatch, lambda changes: [False] * len(changes))
    alone = []
    while begun:
        alone.append([call.session.is_alone(call.run) for call in begun])
        begun = begun[0].store_results([(call, "x") for call in begun])

    assert alone == [[True, True]] * 4


# What is taken up


def test_a_step_begun_and_cancelled_by_one_commit_is_not_run(unhurried: None) -> None:
    CALLED.clear()
    start_process(First, Named("a"))
    Supervised().drain("default")

    assert CALLED == ["a", "b", "d"]


def test_a_step_that_this_worker_has_cancelled_before_it_began_is_not_run(
    quick: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draining, "UNSEEN", UNSEEN)
    CALLED.clear()
    start_process(First, Named("a"))
    drain(owner="A")

    assert CALLED == ["a", "b", "d"]


def test_what_follows_a_stored_result_is_not_lost_when_another_cannot_be_stored(
    unhurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        start_process(Pair, Named(name))
    started(16)
    usual = group_commit.commit_changes
    losing_once(monkeypatch, lambda changes: [*usual(changes[:1]).written, False])
    singly, refusals = Session.settle_singly, [1]

    def settle_singly(self: Session, *args: Any, **more: Any) -> StepRun | None:
        if refusals and refusals.pop():
            raise ProgrammingError("canceling statement due to statement timeout")
        return singly(self, *args, **more)

    monkeypatch.setattr(Session, "settle_singly", settle_singly)
    Supervised().drain("default")

    assert not ProcessInstance.objects.filter(finished_at=None).exists()


def test_a_step_whose_end_was_rolled_back_is_run(
    unhurried: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not left in the name of a worker that takes it for cancelled, while its lease is renewed."""
    CALLED.clear()
    start_process(First, Named("a"))
    started(16)
    worker = WorkerSlice("default", "A")
    runner = StepRunner(worker)
    first, second = step_runs.claim("default", "A", 2, 600, **CLAIMED)
    runner.run(first.work)
    runner.store()
    [begun] = runner.take()

    def refused(
        _session: Session, *_stored: object
    ) -> None:  # it is the last thing done
        raise ProgrammingError("the commit was refused")

    with monkeypatch.context() as patched:
        patched.setattr(Session, "learn", refused)
        patched.setattr(
            quick_results, "find_held_results", lambda _held: []
        )  # others have it now
        runner.run(second.work)
        runner.store()
    session = runner._sessions[begun.instance_id]
    with session.committing():  # as when another of its results is stored singly
        pass
    runner.run(begun)

    assert CALLED == ["a", "b", "a_too"]
