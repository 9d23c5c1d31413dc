"""Calls that a worker has prepared: their queue, what they return and save, and outcomes that are refused."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.db import OperationalError
from django.utils import timezone

from orchestrator import Skip, start_process
from orchestrator.definition import (
    AsyncStepContext,
    Workflow,
    case,
    route,
    secret,
    start,
    step,
)
from orchestrator.engine.change import incidents
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.loops.ready_calls import CallsToMake
from orchestrator.engine.sql.connection import (
    clear_uncertain_commits,
    has_uncertain_commit,
)
from orchestrator.engine.work.call_room import Room
from orchestrator.engine.work.calls import Call
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import StepRun
from orchestrator.queue import calls_queue, suppress_all_wakes
from orchestrator.testing import Process, started
from tests.services.crews import knowing

pytestmark = pytest.mark.django_db

QUEUE = calls_queue("default")
TOKEN = "token-4711"
wrong: list[Exception] = []
"""What the condition raises."""


@dataclass(frozen=True)
class Told:
    name: str = "Ito"
    token: str = secret(default=TOKEN)


async def ask(name: str) -> str:
    return name


async def ask_again(ask: str) -> str:
    return ask


async def give_up() -> str:
    return ""


def ask_here(name: str) -> str:
    return name


def is_good(answer: str) -> bool:
    for error in wrong:
        raise error
    return bool(answer)


async def save(context: AsyncStepContext) -> int:
    await context.save(3)
    page: int = context.saved
    return page


class Asks(Workflow):
    """One call."""

    Input = Told
    flow = (step(ask),)


class AsksHere(Workflow):
    """A plain step."""

    Input = Told
    flow = (step(ask_here),)


class Judged(Workflow):
    """A condition decides which call follows."""

    Input = Told
    flow = (start(ask), route(ask, case(is_good, to=ask_again), otherwise=give_up))


class Saves(Workflow):
    """A call that saves how far it is, and goes on."""

    flow = (step(save),)


known = knowing(Asks, AsksHere, Judged, Saves)


@pytest.fixture(autouse=True)
def nothing_wrong() -> Iterator[None]:
    wrong.clear()
    yield
    clear_uncertain_commits()


class Preparing:
    """A worker that prepares calls and awaits none of them."""

    def __init__(self) -> None:
        self.begun: list[Call] = []
        self.room = Room(lambda: self.begun, lambda: 8)
        self.to_make = CallsToMake(WorkerSlice(QUEUE, "A"), self.room)

    def prepare(self, most: int = 8) -> list[Call]:
        """Return the calls of ready work; it counts them as begun."""
        found = [self.to_make.prepare(one, None) for one in self.to_make.claim(most)]
        new = [call for call in found if call is not None]
        self.begun += new
        self.room.note_begun()
        return new


def launch(definition: type[Workflow]) -> Process:
    """Start a process, of which nothing has run."""
    with suppress_all_wakes():
        receipt = start_process(definition, definition.Input())
    assert receipt.process_id is not None
    return Process(receipt.process_id)


def test_what_an_awaited_function_returns_is_the_result_of_its_step() -> None:
    process = launch(Asks)
    [call] = Preparing().prepare()
    call.store_result(asyncio.run(call.wait()))

    assert (process.status, process.result) == ("completed", "Ito")


def test_a_visit_whose_function_waits_no_longer_goes_to_the_plain_queue() -> None:
    launch(AsksHere)
    StepRun.objects.update(queue=QUEUE)

    assert Preparing().prepare() == []
    run = StepRun.objects.get()
    assert (run.queue, run.status, run.attempt) == ("default", "ready", 0)


def test_a_call_that_has_returned_is_followed_by_the_next_one() -> None:
    launch(Judged)
    [call] = Preparing().prepare()
    wrong.append(ValueError("not yet"))
    call.store_result("Ito")
    wrong.clear()
    StepRun.objects.update(wake_at=timezone.now())

    [following] = Preparing().prepare()
    assert following.work == StepRun.objects.get(node="ask_again")


def test_what_a_call_has_saved_is_there_at_once() -> None:
    assert started(Saves).result == 3


# Refused by the database


def refused(call: Call) -> OperationalError:
    """Have the database refuse that a call passes itself over, and return its error."""

    def refuse(*_: object) -> None:
        raise OperationalError(f"the connection was lost at {TOKEN}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkflowChange, "send", refuse)
        with pytest.raises(OperationalError) as found:
            call.store_error(Skip("nothing to ask"))
    return found.value


def test_the_error_of_a_refused_outcome_is_told_without_secrets() -> None:
    launch(Asks)
    [call] = Preparing().prepare()
    said = incidents.error_text(refused(call))

    assert said.startswith("the connection was lost at ")
    assert TOKEN not in said


def test_a_worker_is_not_sure_of_a_refused_outcome_and_stores_it_again() -> None:
    process = launch(Asks)
    [call] = Preparing().prepare()
    refused(call)
    assert has_uncertain_commit()
    call.store_error(Skip("nothing to ask"))

    assert process.status == "completed"
    assert StepRun.objects.get().status == "skipped"
