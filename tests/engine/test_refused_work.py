"""Work that the database refuses for a moment: it is kept or tried again, with longer and longer pauses."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from django.db import OperationalError

from orchestrator.containers import LruCache
from orchestrator.engine.sql.connection import clear_uncertain_commits
from orchestrator.engine.sql.tables import events
from orchestrator.engine.work import keeping, releasing
from orchestrator.engine.work.failures import fail_work
from orchestrator.engine.work.keeping import store_outcome
from orchestrator.engine.work.worker_slice import WorkerSlice
from orchestrator.models import InboxEvent, StepRun
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import accept, place
from tests.apps.process_managers.messages import ParcelPacked
from tests.services.doing import fresh

pytestmark = pytest.mark.usefixtures("parcels")

CUT = OperationalError("the line was cut")


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Begin without a refusal, and leave none behind."""
    monkeypatch.setattr(releasing, "REFUSALS", LruCache(10))
    yield
    clear_uncertain_commits()


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Let each pause after a refusal be the longest possible; return these, in seconds."""
    found: list[float] = []

    def uniform(least: float, most: float) -> float:
        found.append(most)
        return most

    monkeypatch.setattr("random.uniform", uniform)
    return found


def claimed() -> InboxEvent:
    """Return the one event that is due, claimed."""
    [taken] = events.claim("default", "A", 1, 60)
    return taken.work


def refused(times: int) -> InboxEvent:
    """Return an event after so many attempts that the database has refused."""
    accept(place(), ParcelPacked(3))
    for _ in range(times):
        event = claimed()
        fail_work(event, CUT)
        move_times_back(timedelta(seconds=30))
    return fresh(event)


@pytest.mark.django_db
def test_refused_work_is_tried_again_uncharged_and_nobody_has_taken_it_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level("INFO", "orchestrator"):
        event = refused(1)

    assert (event.owner, event.attempt, event.error) == ("", 0, "")
    assert "is tried again" in caplog.text
    assert "taken over" not in caplog.text


@pytest.mark.django_db
def test_the_pauses_of_refused_work_grow_by_half(longest: list[float]) -> None:
    refused(3)

    assert longest == [0.5, 0.75, 1.125]


@pytest.mark.django_db
def test_work_that_is_refused_too_often_in_a_row_is_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(releasing, "FREE_IN_A_ROW", 1)
    event = refused(2)

    assert (event.owner, event.attempt) == ("", 1)
    assert "OperationalError: the line was cut" in event.error


def test_the_pauses_of_a_kept_outcome_double_up_to_the_longest(
    longest: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    answers: list[Exception | None] = [*[CUT] * 7, None]
    monkeypatch.setattr(keeping, "sleep", pauses.append)

    def store() -> str:
        if answer := answers.pop(0):
            raise answer
        return "stored"

    here = WorkerSlice("default", "A")
    assert store_outcome(StepRun(pk=1), here, store) == "stored"
    assert pauses == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, keeping.LONGEST_PAUSE]
