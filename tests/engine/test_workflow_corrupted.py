"""Results that went bad and cannot be computed again: an event's is taken from the event, else people are told."""

from typing import Any

import pytest

from orchestrator import send_event
from orchestrator.engine.operations import cancel, decide, resume, retry, skip
from orchestrator.models import (
    InboxEvent,
    Incident,
    ProcessInstance,
    Status,
    StepRun,
    StepStatus,
)
from tests.apps.patterns import lost
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import complaint, finished, go_on, results, visit, visits
from tests.apps.patterns.fixtures import flows, press
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.operated import decided, operated, outcome, skipped

__all__ = ["flows", "press"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("flows", "press")]

WAIT = "wait_for_approved"


def approve(process: ProcessInstance, by: str) -> ProcessInstance:
    send_event(p.Approved(by), id=f"from {by}", process_id=process.pk)
    return go_on(process)


def told() -> ProcessInstance:
    """Run a process until its event is there, and a step on another queue is to run before it is read."""
    return approve(finished(lost.Told), "Ada")


def spoil(process: ProcessInstance, node: str, **values: Any) -> None:
    """Change what is stored of a step as no engine would."""
    run = visits(process, node)[-1]
    StepRun.objects.filter(pk=run.pk).update(**values or {"result": 999})


def read(process: ProcessInstance) -> ProcessInstance:
    """Run the step on the other queue, and then the one that reads."""
    return go_on(go_on(process, "press"))


def held_up() -> ProcessInstance:
    """Run a process whose decision went bad until the step that reads it."""
    process = finished(lost.Answered)
    decide(process.pk, visit(process, "answer").pk, "yes", request=asked())
    spoil(process, "answer")
    return read(process)


def stopped(process: ProcessInstance) -> tuple[str, str, str]:
    """Return the status of a process, and the kind and step of what people are told."""
    incident = complaint(process)
    return process.status, incident.kind, incident.step


# An event


@pytest.mark.parametrize("bad", [{"result": 999}, {"checksum": "0" * 64}])
def test_what_an_event_gave_is_taken_from_the_event_again(bad: dict[str, Any]) -> None:
    process = told()
    spoil(process, WAIT, **bad)

    assert outcome(read(process), "after_event") == ("completed", "Ada")
    second = visits(process, WAIT)[1]
    assert (second.round, second.redo, second.status) == (2, True, "done")
    assert (second.result, second.left) == ({"by": "Ada"}, second.entered)
    assert visit(process, "after_event").attempt == 1
    assert not Incident.objects.exists()


@cases("body", {"by": "Mallory"}, {"by": 5}, None)
def test_an_event_that_is_bad_too_is_not_taken_and_people_are_told(body: Any) -> None:
    process = told()
    spoil(process, WAIT)
    event = InboxEvent.objects.filter(process=process)
    event.update(body=body) if body else event.update(verdict="discarded")

    assert stopped(read(process)) == ("failed", "corrupted_data", "after_event")
    incident = complaint(process)
    assert f"the stored result of {WAIT} does not match" in incident.message
    assert f"have {WAIT} sent another one, or skip it" in incident.message
    event.update(body={"by": "Ada"}, verdict="moved")
    assert outcome(approve(process, "Bo"), "after_event") == ("completed", "Bo")
    assert not Incident.objects.open().exists()


def test_what_a_person_gave_in_place_of_an_event_is_not_taken_from_one() -> None:
    process = finished(lost.Told)
    skip(process.pk, visit(process, WAIT).pk, {"by": "Ada"}, request=asked())
    spoil(process, WAIT)

    read(go_on(process))

    assert stopped(process) == ("failed", "corrupted_data", "after_event")
    assert outcome(skipped(process, WAIT, {"by": "Bo"}), "after_event")[1] == "Bo"


def test_an_event_that_a_step_does_not_believe_is_not_given_to_it_again() -> None:
    process = approve(finished(lost.Disbelieving), "Eve")

    assert stopped(process) == ("failed", "corrupted_data", "disbelieve")
    assert "Eve may not approve" in complaint(process).message
    assert outcome(approve(process, "Ada"), "disbelieve") == ("completed", "Ada")


# A decision


def test_a_decision_that_went_bad_is_made_again_by_a_person() -> None:
    process = held_up()

    assert stopped(process) == ("failed", "corrupted_data", "after_answer")
    told = "decide answer again, or skip it with its result"
    assert told in complaint(process).message
    question = visits(process, "answer")[-1]
    assert (question.status, question.redo) == (StepStatus.WAITING, True)
    assert outcome(decided(process, choice="no"), "after_answer") == ("completed", "no")
    assert not Incident.objects.open().exists()
    assert visit(process, "after_answer").attempt == 1


def test_trying_again_without_deciding_changes_nothing() -> None:
    process = held_up()
    operated(retry, process)

    assert stopped(process) == ("failed", "corrupted_data", "after_answer")
    assert [run.status for run in visits(process, "answer")] == ["done", "waiting"]
    retry(process.pk, request=asked())
    assert outcome(decided(process), "after_answer") == ("completed", "yes")
    assert visit(process, "after_answer").attempt == 1


def test_a_process_that_needs_a_decision_again_can_be_resumed_or_cancelled() -> None:
    process, other = held_up(), held_up()
    resume(process.pk, 1, request=asked())
    cancel(other.pk, request=asked())

    assert go_on(process).status == Status.WAITING
    read(decided(process, choice="no"))
    assert results(process)["after_answer"] == "no"
    assert go_on(other).status == Status.CANCELLED
    assert not Incident.objects.open().exists()
