"""What waits outside, in tests of an application: run where everything else is, in the test's own transaction."""

import pytest

from orchestrator import start_process
from orchestrator.definition import AsyncStepContext, StepContext, Workflow, step, undo
from orchestrator.engine.work import leases
from orchestrator.engine.work.calls import Call
from orchestrator.exceptions import InvalidDefinition
from orchestrator.models import IssuedCommand, StepRun
from orchestrator.queue import calls_queue
from orchestrator.testing import replaced, started
from orchestrator.workers.caller import Caller
from orchestrator.workers.current_worker import CurrentWorker
from orchestrator.workers.event_loop import Flight
from orchestrator.workers.shared_memory.calls import SharedCalls
from tests.apps.waiting_calls import processes as p
from tests.apps.waiting_calls.fixtures import forgotten, waiting_calls
from tests.apps.waiting_calls.ways import entries
from tests.services.cases import cases

__all__ = ["forgotten", "waiting_calls"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("waiting_calls")]


def test_what_a_call_saves_and_reports_is_stored() -> None:
    process = started(p.Reports, p.Told("a")).finish()

    run = StepRun.objects.get(instance=process.id)
    assert (process.result, run.saved, run.attempt) == (2, 2, 3)
    assert run.progress == {"done": 3, "total": 3, "message": "page 3"}


def test_plain_steps_such_that_wait_and_the_elements_of_a_map_are_run() -> None:
    assert started(p.Mixed, p.Told("a")).result == "A!!"
    assert started(p.ManyCalls, p.ManyCalls.Input(["a", "b"])).result == 2


def test_commands_are_carried_out_and_what_they_cause_comes_back() -> None:
    process = started(p.Calling, p.Wanted("a"))

    assert process.status == "completed"
    assert [entry.name for entry in entries()] == ["a in a thread", "a"]


def test_what_waits_outside_has_a_queue_of_its_own() -> None:
    process = started(p.Mixed, p.Told("a"))
    started(p.Calling, p.Wanted("a"))

    runs = StepRun.objects.filter(instance=process.id).order_by("pk")
    here, calls = "default", calls_queue("default")
    assert [run.queue for run in runs] == [here, calls, calls, here]
    assert {command.queue for command in IssuedCommand.objects.all()} == {calls}


def test_a_call_that_others_took_over_while_it_was_prepared_is_not_begun(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that is still the worker's own begins, however long that took."""
    for name in ("a", "b"):
        start_process(p.OneCall, p.Told(name))
    CurrentWorker().drain("default")
    caller = Caller(calls_queue("default"), CurrentWorker(), SharedCalls(4))
    begun = list[Flight]()
    monkeypatch.setattr(caller.loop, "begin", begun.extend)
    prepared, late = caller.to_make.prepare, iter([False, True])
    monkeypatch.setattr(leases, "lease_may_end", lambda since: next(late))

    def long_in_coming(work: StepRun, before: Call | None) -> Call | None:
        call = prepared(work, before)
        StepRun.objects.filter(instance__data__name="a").update(owner="another")
        return call

    monkeypatch.setattr(caller.to_make, "prepare", long_in_coming)
    caller._claim()

    [own] = StepRun.objects.filter(owner=caller.worker.owner)
    assert [flight.call.work for flight in begun] == [own]
    assert [call.work for call in caller.flights] == [own]
    assert list(late) == []


def test_a_plain_function_stands_in_for_one_that_waits() -> None:
    def answer(prepare: str, how: str) -> str:
        return "42"

    with replaced(p.ask_model, answer):
        assert started(p.Mixed, p.Told("a")).result == "42!!"


def test_a_generator_is_no_result_of_a_call() -> None:
    async def answer(prepare: str, how: str) -> object:
        return (letter for letter in prepare)

    with replaced(p.ask_model, answer):
        process = started(p.Mixed, p.Told("a"))
    [incident] = process.incidents
    assert "a generator has no value yet" in incident


async def awaits(context: StepContext) -> None:
    """Would hold up all others."""


def blocks(context: AsyncStepContext) -> None:
    """Could not await it."""


@cases(
    "function, reason",
    (awaits, "awaits is asynchronous: annotate context with AsyncStepContext"),
    (blocks, "blocks is a plain function: annotate context with StepContext"),
)
def test_the_context_is_that_of_the_function(function: object, reason: str) -> None:
    with pytest.raises(InvalidDefinition, match=reason):
        type("Wrong", (Workflow,), {"flow": (step(function),)})  # type: ignore[arg-type]


def test_what_waits_outside_undoes_no_transactional_step() -> None:
    prepare = step(p.prepare, transactional=True)
    given = {"Input": p.Told, "flow": (prepare, undo(prepare, by=p.give_up))}
    with pytest.raises(InvalidDefinition, match="inside the commit: write a plain"):
        type("Wrong", (Workflow,), given)


def test_a_visit_goes_where_it_belongs_when_its_function_waits_since_a_deploy() -> None:
    process = started(p.OneCall, p.Told("a", "fail"))
    StepRun.objects.update(queue="default")
    process.retry()

    assert StepRun.objects.get().queue == calls_queue("default")
