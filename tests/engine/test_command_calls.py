"""Commands whose handlers wait outside: how many of them one worker calls at once, and how their outcome is stored."""

import pytest
from django.db import transaction

from orchestrator import Answer, send_event
from orchestrator.engine.events.outbox import settle_command
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.loops.ready_calls import CallsToMake
from orchestrator.engine.work.call_room import Room
from orchestrator.engine.work.calls import Call
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import IssuedCommand
from orchestrator.queue import calls_queue
from tests.apps.waiting_calls.fixtures import waiting_calls
from tests.apps.waiting_calls.processes import Wanted
from tests.services.doing import fresh

__all__ = ["waiting_calls"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("waiting_calls")]

ME = "this worker"


def issue(*names: str) -> list[IssuedCommand]:
    """Return the ready commands of so many processes, each for a call in a thread, of which a worker makes two."""
    for name in names:
        send_event(Wanted(name), id=name)
    drain()
    return list(IssuedCommand.objects.filter(type="CallInThread"))


def prepare_calls() -> list[Call]:
    """Have a worker with room for four calls claim the commands that are due; return its calls, which do not begin."""
    calls = list[Call]()
    room = Room(lambda: calls, lambda: 4 - len(calls))
    to_make = CallsToMake(WorkerSlice(calls_queue("default"), ME), room)
    for command in to_make.claim(4):
        call = to_make.prepare(command, None)
        calls += [call] if call is not None else []
    return calls


def test_a_command_whose_handler_has_as_many_threads_as_it_may_is_left_to_other_workers() -> (
    None
):
    commands = issue("a", "b", "c")
    assert len(prepare_calls()) == 2

    found = [(fresh(one).owner, one.attempt) for one in commands]
    assert sorted(found) == [("", 0), (ME, 1), (ME, 1)]


def test_the_call_of_a_command_may_be_made_again_after_its_worker_was_lost() -> None:
    """Its handler knows a repeat by the idempotency key."""
    issue("a")

    assert [call.idempotent for call in prepare_calls()] == [True]


def test_the_outcome_of_a_command_is_not_stored_inside_the_transaction_of_another() -> (
    None
):
    """Its rollback would forget what was done outside."""
    [command] = issue("a")
    with transaction.atomic(), pytest.raises(RuntimeError, match="durable"):
        settle_command(command, Answer(""))

    assert fresh(command).status == "ready"
