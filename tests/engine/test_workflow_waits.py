"""Steps that wait for something outside: events that come early, late or twice, decisions, deadlines."""

from datetime import timedelta
from itertools import count

import pytest
from django.contrib.auth.models import User

from orchestrator import send_event
from orchestrator.definition import Event
from orchestrator.engine.change.workflows.retrying import troubled_visits
from orchestrator.engine.change.workflows.workflow_change import WorkflowChange
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel, decide, pause, retry
from orchestrator.engine.sql.batch import database_now
from orchestrator.models import (
    Cause,
    CauseKind,
    Checkpoint,
    InboxEvent,
    Incident,
    ProcessInstance,
    StepStatus,
)
from orchestrator.testing import pass_time
from tests.apps.compensation import journal, processes, steps
from tests.apps.compensation.fixtures import known, trips
from tests.apps.compensation.journal import done
from tests.apps.compensation.steps import VisaGranted
from tests.apps.patterns.desk import finished, go_on, launch, results, statuses, visit
from tests.apps.process_managers.together import raised, together
from tests.services.operated import operated, outcome, press

__all__ = ["known", "trips"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("trips")]

DAYS = timedelta(days=2, seconds=1)
numbers = count(1)


def tell(process: ProcessInstance, event: Event) -> InboxEvent:
    """Send an event to a process; nothing is run."""
    name = f"event {next(numbers)}"
    send_event(event, id=name, source="consulate", process_id=process.pk)
    return InboxEvent.objects.get(event_id=name)


def verdict(event: InboxEvent) -> str:
    event.refresh_from_db()
    return event.verdict


def change_of(process: ProcessInstance) -> WorkflowChange:
    """Begin a change of a process, which is not written."""
    return WorkflowChange.of(process, Cause.of(CauseKind.OPERATOR), database_now())


# Events


def test_the_event_is_the_result_of_the_step_that_waited() -> None:
    process = finished(processes.Visa)
    assert (process.status, process.step) == ("waiting", "wait_for_visa_granted")
    event = tell(process, VisaGranted("V-1"))

    assert outcome(process, "show") == ("completed", "V-1")
    assert results(process)["wait_for_visa_granted"] == {"number": "V-1"}
    assert verdict(event) == "moved"
    checkpoint = Checkpoint.objects.get(cause=f"event:{event.pk}")
    assert checkpoint.revision == event.revision


def test_an_event_that_comes_before_the_step_waits_is_kept_for_it() -> None:
    send_event(VisaGranted("V-1"), id="1", source="x", correlation_key="Ito")
    process, other = finished(processes.Visa), launch(processes.Visa, "Sato", 2)
    event = tell(other, VisaGranted("V-2"))

    assert outcome(process, "show") == ("completed", "V-1")
    assert (go_on(other).status, verdict(event)) == ("completed", "moved")
    assert not Incident.objects.exists()

    cancelled = operated(cancel, finished(processes.Visa))
    event = tell(cancelled, VisaGranted("V-3"))
    assert go_on(cancelled).status == "cancelled"
    assert verdict(event) == "unexpected"


def test_an_event_that_comes_while_the_step_before_runs_is_kept_for_it() -> None:
    process = launch(processes.Visa)
    told: list[InboxEvent] = []

    def meanwhile() -> None:
        told.append(tell(process, VisaGranted("V-1")))
        drain()  # another worker
        assert verdict(told[0]) == "parked"

    steps.during["apply"] = meanwhile
    assert (go_on(process).status, verdict(told[0])) == ("completed", "moved")


def test_an_event_that_nothing_waited_for_is_shown_when_its_process_has_ended() -> None:
    process = launch(processes.Visa)

    def meanwhile() -> None:
        tell(process, VisaGranted("V-1"))
        tell(process, VisaGranted("V-2"))

    steps.during["apply"] = meanwhile
    go_on(process)
    first, second = InboxEvent.objects.order_by("pk")

    assert (first.verdict, second.verdict) == ("moved", "unexpected")
    assert "was parked until the process had ended" in second.error


def test_an_event_to_a_process_that_has_ended_is_shown() -> None:
    process, visa = finished(processes.Choice), finished(processes.Visa)
    tell(visa, VisaGranted("V-1"))
    go_on(visa)
    late = [tell(visa, VisaGranted("V-2")), tell(process, VisaGranted("V-3"))]
    go_on(process)

    assert [verdict(event) for event in late] == ["unexpected", "unexpected"]
    assert Incident.objects.filter(kind="unexpected_event").count() == 2
    assert process.status == "completed"


@pytest.mark.parametrize("early", [False, True])
def test_two_waits_for_one_event_take_one_each_the_older_first(early: bool) -> None:
    process = launch(processes.TwoVisas) if early else finished(processes.TwoVisas)
    for _ in range(2):  # the same once more
        send_event(VisaGranted("V-1"), id="1", source="x", process_id=process.pk)
    if not early:
        found = statuses(go_on(process))
        assert (found["first"], found["second"]) == ("done", "waiting")
    tell(process, VisaGranted("V-2"))

    assert outcome(process, "show_both") == ("completed", ["V-1", "V-2"])


def test_a_graph_made_from_the_input_waits_for_events_that_its_class_names() -> None:
    send_event(VisaGranted("V-1"), id="1", source="x", correlation_key="Ito")
    process = finished(processes.Countries, "Ito", 2)
    assert (process.status, process.step) == ("waiting", "visa_2")
    tell(process, VisaGranted("V-2"))

    assert outcome(process, "travel") == ("completed", "Ito is away")
    visas = [results(process)[f"visa_{number}"] for number in (1, 2)]
    assert visas == [{"number": "V-1"}, {"number": "V-2"}]


@pytest.mark.django_db(transaction=True)
def test_events_that_come_at_the_same_moment_settle_one_wait_each() -> None:
    process = finished(processes.TwoVisas)
    for number in range(4):
        tell(process, VisaGranted(f"V-{number}"))
    assert not raised(together(drain, drain, drain))
    assert go_on(process).status == "completed"
    verdicts = InboxEvent.objects.values_list("verdict", flat=True)
    assert sorted(verdicts) == ["moved", "moved", "unexpected", "unexpected"]
    assert done.count("show_both") == 1


def test_a_change_expects_no_event_for_a_wait_that_it_has_settled() -> None:
    """Also before it is written."""
    process = finished(processes.Visa)
    change = change_of(process)
    assert change.awaited_types() == {"VisaGranted"}
    change.close_open(visit(process, "wait_for_visa_granted"), StepStatus.DONE)

    assert change.awaited_types() == set()


# Deadlines


def test_after_its_deadline_a_wait_goes_the_other_way_and_takes_no_event() -> None:
    process = finished(processes.Patient)
    pass_time(DAYS)
    event = tell(process, VisaGranted("V-1"))

    assert outcome(process, "close") == ("completed", "reminded Ito")
    found = statuses(process)
    assert (found["reminded"], found["show"]) == ("cancelled", "not_taken")
    assert (process.escalation_level, verdict(event)) == (0, "unexpected")


def test_an_event_before_the_deadline_goes_the_usual_way() -> None:
    process = finished(processes.Patient)
    tell(process, VisaGranted("V-1"))
    go_on(process)
    pass_time(DAYS)

    assert results(process)["close"] == "V-1"
    assert statuses(process)["remind"] == "not_taken"
    assert "remind" not in done


def test_without_another_way_people_are_told_and_it_waits_on() -> None:
    process = finished(processes.Pressed)
    pass_time(DAYS)
    go_on(process)
    run = visit(process, "wait_for_visa_granted")
    assert (process.status, process.escalation_level) == ("waiting", 1)
    assert (run.status, run.wake_at, run.deadlines_fired) == ("waiting", None, 1)
    pass_time(DAYS)
    assert go_on(process).escalation_level == 1

    tell(process, VisaGranted("V-1"))
    assert go_on(process).status == "completed"


def test_a_question_has_a_deadline_too() -> None:
    process = finished(processes.Asked)
    pass_time(DAYS)
    assert (go_on(process).status, done) == ("completed", ["apply", "rest"])
    assert statuses(process)["answer"] == "cancelled"


@pytest.mark.django_db(transaction=True)
def test_of_a_deadline_and_a_decision_one_wins(operator: User) -> None:
    for _ in range(5):
        journal.forget()
        process = finished(processes.Asked)
        run = visit(process, "answer")
        process.step_runs.filter(pk=run.pk).update(wake_at=process.started_at)
        together(drain, press(decide, process, run.pk, "yes"))
        assert go_on(process).status == "completed"
        assert done in (["apply", "rest"], ["apply", "travel"])


def late_in_vain() -> ProcessInstance:
    """Return a process whose deadline has passed, and could not be carried out."""
    process = finished(processes.Patient)

    def broken(*args: object) -> None:
        raise ValueError("not today")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("orchestrator.engine.steps.waiting_steps._late", broken)
        pass_time(DAYS)
    return process


def test_a_deadline_that_this_code_cannot_carry_out_is_tried_again() -> None:
    process = late_in_vain()
    run = visit(process, "reminded")
    assert (run.status, run.wake_at is not None) == ("waiting", True)
    assert "not today" in run.error

    operated(retry, process)
    assert results(process)["close"] == "reminded Ito"
    assert not Incident.objects.open().exists()


def test_a_deadline_that_waits_for_another_attempt_is_in_trouble() -> None:
    change = change_of(late_in_vain())

    assert [run.node for run in troubled_visits(change)] == ["reminded"]


def test_such_a_deadline_is_in_trouble_also_while_its_process_is_paused() -> None:
    """It keeps the time that was left, and is due at no moment."""
    process = operated(pause, late_in_vain())
    run = visit(process, "reminded")
    assert (run.wake_at, run.remaining is not None) == (None, True)

    assert list(troubled_visits(change_of(process))) == [run]
