"""What a workflow's start or change leaves to others: to other workers, to events that wait, and to people."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import pytest
from pytest_django import DjangoCaptureOnCommitCallbacks

from orchestrator import (
    ProcessStart,
    registry,
    send_event,
    start_process,
    start_processes,
)
from orchestrator.definition import (
    Event,
    Workflow,
    ask,
    catch,
    each,
    start,
    step,
    then,
    wait,
)
from orchestrator.definition.workflow.rows import FlowRow
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import events, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.models import (
    Cause,
    CauseKind,
    InboxEvent,
    Incident,
    ProcessInstance,
    StepKind,
    StepRun,
    StepStatus,
)
from orchestrator.testing import Process, pass_time, run, started
from tests.services.crews import knowing
from tests.services.noting import noting
from tests.services.written_rows import bells

__all__ = ["bells"]

stored = pytest.mark.django_db

BY_ITEM = 'ORDER BY "orchestrator_steprun"."item" ASC LIMIT 1'
"""The end of the query of the next element that waits outside a window."""
NOW = datetime(2026, 1, 1, tzinfo=UTC)


class Answer(StrEnum):
    YES = "yes"


class Phoned(Event):
    name: str


class Rang(Event):
    bell: str


@dataclass(frozen=True)
class Caller:
    name: str


@dataclass(frozen=True)
class Pages:
    number: int


def copy() -> None: ...


def hear(call: Phoned) -> str:
    return call.name


def open_door(ring: Rang) -> str:
    return ring.bell


def devices() -> list[int]:
    return [1, 2]


def update(item: int) -> int:
    return item


def count(update: list[int]) -> int:
    return len(update)


def report() -> None:
    raise ConnectionError("no line")


def file() -> None: ...


def explain() -> None: ...


call, ring = wait(Phoned, "call"), wait(Rang, "ring")
gate, beside = ask("gate", Answer), ask("beside", Answer)


class Copying(Workflow):
    flow = (start(copy),)


class Printing(Workflow):
    flow = (start(step(copy, "print")),)


class Calling(Workflow):
    """Waits for a call, by the caller's name."""

    Input = Caller
    correlation = "name"
    flow = (then(call, hear),)


class Gated(Workflow):
    """Takes one ring after an answer; another question stays open."""

    flow = (start(gate, beside), then(gate, ring, open_door))


class Stamping(Workflow):
    """Has a step for each page."""

    Input = Pages

    @staticmethod
    def flow(input: Pages) -> list[FlowRow]:
        return [then(*(step(copy, f"page_{n + 1}") for n in range(input.number)))]


class Updating(Workflow):
    """Updates one device at a time, on another queue."""

    flow = (
        each(devices, over="", do=step(update, queue="press"), into=count, window=1),
    )


class Whole(Workflow):
    """Updates all devices at once."""

    flow = (each(devices, over="", do=update, into=count),)


class Reporting(Workflow):
    """Explains a report that could not be made."""

    name = "reporting"
    flow = (
        then(step(report, retries=0), file),
        catch(report, error=ConnectionError, to=explain),
    )


class OtherReporting(Workflow):
    name = "reporting"
    flow = (then(step(report, "tell", retries=0), file),)


known = knowing(Copying, Printing, Calling, Gated, Stamping, Updating, Whole, Reporting)


@contextmanager
def other_release() -> Iterator[None]:
    """Run the code in which the report has another name."""
    definitions.forget_definitions()
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(registry.definitions, ("reporting", 1), OtherReporting)
        yield
    definitions.forget_definitions()


# To other workers


@stored
def test_the_due_visits_of_each_definition_have_a_turn_of_their_own() -> None:
    start_process(Copying)
    start_process(Printing)

    turns = sorted(step_runs.due_turns("default"))
    assert turns == [("copying", "ready"), ("printing", "ready")]


@stored
def test_an_event_stays_with_its_worker_while_a_process_with_its_key_starts() -> None:
    send_event(Phoned("Aoi"), id="1")
    events.claim("default", "another worker", 1, 10)
    start_process(Calling, Caller("Aoi"))

    event = InboxEvent.objects.get()
    assert (event.owner, event.attempt) == ("another worker", 1)


@stored
def test_each_of_several_that_start_together_has_the_graph_of_its_own_input() -> None:
    start_processes([ProcessStart(Stamping, Pages(number)) for number in (2, 3)])

    graphs = ProcessInstance.objects.values_list("definition", flat=True)
    assert len(set(graphs)) == 2


@stored
def test_the_next_element_of_a_window_rings_for_its_queue(
    bells: list[str],
    django_capture_on_commit_callbacks: DjangoCaptureOnCommitCallbacks,
) -> None:
    start_process(Updating)
    drain()
    with django_capture_on_commit_callbacks(execute=True):
        drain("press")

    assert sorted(bells) == ["default", "press"]


@stored
@pytest.mark.parametrize(("definition", "looks"), [(Updating, 1), (Whole, 0)])
def test_only_where_a_map_has_a_window_is_the_next_element_looked_for(
    definition: type[Workflow], looks: int
) -> None:
    with noting() as statements:
        process = started(definition)

    assert process.result == 2
    assert sum(BY_ITEM in sql for sql, _ in statements) == looks


# To events that wait


@stored
def test_an_event_stays_parked_when_the_only_wait_for_its_type_is_over() -> None:
    process = started(Gated)
    assert [process.send(Rang(bell)) for bell in "AB"] == ["parked", "parked"]
    second = InboxEvent.objects.latest("pk")
    parked_at = second.handled_at
    process.answer("gate", Answer.YES)

    assert (process.open_steps, process.result_of("open_door")) == (["beside"], "A")
    second.refresh_from_db()
    assert (second.verdict, second.handled_at) == ("parked", parked_at)


# To people


@stored
def test_what_was_told_of_a_step_is_resolved_by_the_way_that_it_went_instead() -> None:
    process = Process(start_process(Reporting).process_id)
    with other_release():
        run()
        assert process.incidents == ["reporting has no step report now"]
    pass_time(minutes=1)

    assert process.path == ["report", "explain"]
    assert Incident.objects.get().resolution == "went another way"


def test_a_failed_visit_leaves_its_incident_to_what_follows_the_failure() -> None:
    plan = Reporting.static
    assert plan is not None
    cause = Cause.of(CauseKind.START)
    change = WorkflowChange(ProcessInstance(), cause, NOW, plan, "default")
    visit = StepRun(node="report", kind=StepKind.STEP, error="no line")
    change.close(visit, StepStatus.FAILED)

    assert [mark.touched.table for mark in change.marks] == [StepRun._meta.db_table]
