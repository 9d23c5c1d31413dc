"""What a failed attempt leads to: what is stored of it, and what becomes of the process and of its incidents."""

from datetime import timedelta
from typing import Any

import pytest

from orchestrator import Permanent, start_process
from orchestrator.definition import Event, Workflow, join, start, step, then, wait
from orchestrator.engine.sql.tables import events, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.engine.work.backoff import delay
from orchestrator.engine.work.failures import (
    fail_work,
    failure_columns,
    resolve_left_visits,
)
from orchestrator.exceptions import HandlerMissing, NoCase
from orchestrator.models import Incident, Lost, StepRun
from orchestrator.models.step_run import CALLS
from orchestrator.testing import Process, failing, pass_time, run, started
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import accept, place, tell
from tests.apps.process_managers.messages import ParcelPacked
from tests.services.cases import cases
from tests.services.crews import knowing
from tests.services.doing import fresh

pytestmark = pytest.mark.usefixtures("parcels")

ELSEWHERE = "elsewhere"
"""A queue without a worker."""


class Rung(Event):
    number: int


def work() -> None:
    """Does nothing."""


def other() -> None:
    """Does nothing."""


def both() -> str:
    return "one of both is enough"


def hear(rung: Rung) -> int:
    return rung.number


class Working(Workflow):
    flow = (step(work),)


class Either(Workflow):
    """One of two branches is enough."""

    first, second = step(work, retries=0), step(other, queue=ELSEWHERE)
    flow = (start(first, second), join(first, second, into=both, wait_for="any"))


class Expecting(Workflow):
    """Waits for an event for a minute, and makes its graph anew; while it `fails` it makes none."""

    waits_for = (Rung,)
    fails = False

    @staticmethod
    def flow(input: object) -> list[object]:
        if Expecting.fails:
            raise ConnectionError("no graph")
        bell = wait(Rung, "bell", gives="rung", deadline=timedelta(minutes=1))
        return [then(bell, hear)]


known = knowing(Working, Either, Expecting)


# Steps


@pytest.mark.django_db
def test_a_step_that_is_tried_again_shows_it_and_forgets_earlier_refusals() -> None:
    process = Process(start_process(Working).process_id)
    StepRun.objects.update(given_back=3)
    with failing(work, ConnectionError("no line")):
        run()

    visit = StepRun.objects.get()
    assert (process.status, visit.status) == ("retrying", "retrying")
    assert (visit.attempt, visit.given_back) == (1, 0)


@pytest.mark.django_db
def test_a_step_that_declines_is_not_tried_again_and_is_known_to_have_declined() -> (
    None
):
    with failing(work, Permanent("no")):
        process = started(Working)

    visit = StepRun.objects.get()
    assert (process.status, visit.status) == ("failed", "failed")
    assert (visit.attempt, visit.declined) == (1, True)


@pytest.mark.django_db
def test_a_branch_that_fails_is_no_trouble_where_the_other_one_is_enough() -> None:
    process = Process(start_process(Either).process_id)
    with failing(work, ConnectionError("no line")):
        run("default")

    assert (process.status, process.incidents) == ("running", [])
    assert process.open_steps == ["other"]


@cases(
    "called, columns, calls",
    (5.0, {"attempt": 2}, 2),
    (0.0, {"attempt": 2}, 1),
    (0.0, {"attempt": 2, "lost": Lost.CUT_OFF}, 2),
    (0.0, {"attempt": 3, "progress": {CALLS: 1}}, 1),
)
def test_a_failure_tells_how_often_the_function_was_called(
    called: float, columns: dict[str, Any], calls: int
) -> None:
    visit = StepRun(**columns)
    visit.called = called
    told = failure_columns(visit, NoCase("no way on"))["result"]

    assert told["attempts"] == calls


def test_pauses_between_attempts_double() -> None:
    found = [delay(attempt, 3.0).total_seconds() for attempt in range(1, 6)]

    assert found == [3, 6, 12, 24, 48]


# Waits and events


@pytest.mark.django_db
def test_a_wait_goes_on_though_its_graph_cannot_be_made_at_its_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = started(Expecting)
    with monkeypatch.context() as patch:
        patch.setattr(Expecting, "fails", True)
        definitions.forget_definitions()
        pass_time(minutes=1, seconds=5)
    visit = StepRun.objects.get()
    assert (visit.status, visit.attempt) == ("waiting", 0)
    assert Incident.objects.get().kind == Incident.Kind.HANDLER_MISSING

    process.send(Rung(7))
    assert (process.status, process.result) == ("completed", 7)


@pytest.mark.django_db
def test_an_event_that_failed_shows_on_its_process() -> None:
    parcel = place()
    accept(parcel, ParcelPacked(3))
    [claimed] = events.claim("default", "A", 1, 60)
    fail_work(claimed.work, ConnectionError("no line"))

    assert fresh(parcel).status == "retrying"


@pytest.mark.django_db
def test_an_incident_about_missing_code_is_resolved_once_its_step_was_left() -> None:
    parcel = place()
    move_times_back(timedelta(minutes=61))
    [claimed] = step_runs.claim("default", "A", 1, 60)
    fail_work(claimed.work, HandlerMissing("nothing reminds the packer"))
    assert resolve_left_visits() == 0

    tell(parcel, ParcelPacked(3))
    assert Process(parcel.pk).incidents == ["nothing reminds the packer"]
    assert (resolve_left_visits(), resolve_left_visits()) == (1, 0)
    assert Incident.objects.get().resolution == "its step was left"
