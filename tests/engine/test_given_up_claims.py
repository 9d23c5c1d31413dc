"""Claims that a worker gives up or loses: what is free then, what stays, and what a worker claims next."""

from collections.abc import Sequence
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

from orchestrator import Poll, start_process
from orchestrator.definition import Workflow, sleep, step, then
from orchestrator.definition.codec import digest
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.step_table import Turn
from orchestrator.engine.sql.table import Claimed
from orchestrator.engine.sql.tables import events, step_runs
from orchestrator.engine.steps.runner import CLAIMED
from orchestrator.engine.work import leases, step_claims, take_over, worker_slice
from orchestrator.engine.work.claims import (
    A_MOMENT,
    ClaimedElsewhere,
    Lines,
    postpone,
)
from orchestrator.engine.work.leases import work_name
from orchestrator.engine.work.step_claims import LOOK_SECONDS, StepClaims
from orchestrator.engine.work.worker_slice import Lateness, UnstoredResult
from orchestrator.models import InboxEvent, Lost, StepRun
from orchestrator.testing import started
from orchestrator.testing.clock import move_times_back
from tests.apps.process_managers.desk import accept, place
from tests.apps.process_managers.messages import ParcelPacked, ParcelScanned
from tests.services.crews import knowing

pytestmark = pytest.mark.usefixtures("parcels")

MINUTE = timedelta(minutes=1)


def work() -> str:
    return "new"


def ask_outside() -> None:
    raise Poll(MINUTE, within=60 * MINUTE)


class Working(Workflow):
    flow = (step(work),)


class Polling(Workflow):
    flow = (step(ask_outside),)


class Napping(Workflow):
    flow = (then(sleep(MINUTE, "nap"), work),)


known = knowing(Working, Polling, Napping)


def claimed(number: int = 1) -> list[StepRun]:
    """Return so many visits that worker A has claimed."""
    taken = step_runs.claim("default", "A", number, 60, **CLAIMED)
    assert len(taken) == number
    return [one.work for one in taken]


def begun(number: int = 1) -> list[StepRun]:
    """Start so many processes; return their visits, which worker A has claimed."""
    for _ in range(number):
        start_process(Working)
    return claimed(number)


# Visits


@pytest.mark.django_db
def test_who_takes_a_claim_over_is_told_whether_its_worker_still_held_it() -> None:
    names = [work_name(visit) for visit in begun()]

    assert take_over.yield_work("A", names) is True
    visit = StepRun.objects.get()
    assert (visit.status, visit.owner, visit.attempt) == ("ready", "", 0)
    assert take_over.yield_work("A", names) is False


@pytest.mark.django_db
def test_work_that_a_worker_goes_on_with_stays_claimed() -> None:
    mine, lost = begun(2)
    leases.end_leases(["A"], besides=[work_name(mine)])

    owners = StepRun.objects.values_list("pk", "owner")
    assert set(owners) == {(mine.pk, "A"), (lost.pk, "")}


@pytest.mark.django_db
def test_the_result_of_an_earlier_attempt_is_not_stored() -> None:
    [before] = begun()
    move_times_back(2 * MINUTE)
    claimed()
    old = UnstoredResult(before.pk, before.attempt, "old", digest("old"))
    take_over.store_returned("A", [old])

    visit = StepRun.objects.get()
    assert (visit.status, visit.owner, visit.result) == ("running", "A", None)
    assert (before.attempt, visit.attempt) == (1, 2)


@pytest.mark.django_db
def test_a_sleep_is_not_cut_off_with_its_worker() -> None:
    start_process(Napping)
    move_times_back(2 * MINUTE)
    [nap] = claimed()
    leases.end_leases(["A"], running={work_name(nap): Lost.CUT_OFF})

    visit = StepRun.objects.get()
    assert (visit.status, visit.owner, visit.lost) == ("waiting", "", "")


@pytest.mark.django_db
def test_a_step_that_polls_is_ready_for_its_next_call() -> None:
    process = started(Polling)

    visit = StepRun.objects.get()
    assert (process.status, visit.status, visit.owner) == ("running", "ready", "")


class Watched:
    """A worker's claims of visits, each of which comes full, by a clock that stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now, self.looks = 1000.0, 0
        clock = SimpleNamespace(monotonic=lambda: self.now)
        monkeypatch.setattr(step_claims, "time", clock)
        monkeypatch.setattr(step_runs, "claim", self._claim)
        monkeypatch.setattr(step_runs, "due_turns", self._look)
        self.claims = StepClaims("default", "A")

    def claim(self) -> int:
        """Claim two visits; return how often it was looked for those of others so far."""
        self.claims.claim(2, 60)
        return self.looks

    def _claim(self, *given: Any, **values: Any) -> list[Claimed[StepRun]]:
        return [Claimed(StepRun(pk=number)) for number in (1, 2)]

    def _look(self, queue: str) -> list[Turn]:
        self.looks += 1
        return [Turn("working", "ready")]


def test_a_worker_looks_for_other_definitions_once_in_a_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    watched = Watched(monkeypatch)
    assert [watched.claim() for _ in range(4)] == [0, 1, 1, 1]

    watched.now += LOOK_SECONDS
    assert [watched.claim() for _ in range(2)] == [2, 2]


# Events


def lines(*ahead: Sequence[int]) -> Lines:
    """Return the lines of events, numbered from 1, each with the numbers of those before it."""
    numbers = count(1)
    return Lines([Claimed(InboxEvent(pk=next(numbers)), frozenset(a)) for a in ahead])


def test_an_event_behind_one_that_was_not_settled_does_not_run() -> None:
    found = lines([], [1], [])
    first, second, third = found.mine
    found.stop(first)

    assert [found.may_run(one) for one in (second, third)] == [False, True]


def test_an_event_whose_first_one_is_claimed_elsewhere_is_too_early() -> None:
    found = lines([9], [])

    assert [one.work.pk for one in found.early] == [1]
    assert [one.work.pk for one in found.mine] == [2]


@pytest.mark.django_db
def test_an_event_behind_one_of_another_queue_is_due_again_in_a_moment() -> None:
    parcel = place()
    first = accept(parcel, ParcelPacked(3))
    second = accept(parcel, ParcelScanned("P-1", "Nara"))
    InboxEvent.objects.filter(pk=first).update(queue="slow")
    early = events.claim("default", "A", 2, 60)
    assert [one.work.pk for one in early] == [second]
    before = database_now()
    postpone("default", "A", early, ClaimedElsewhere())

    event = InboxEvent.objects.get(pk=second)
    assert event.wake_at is not None
    assert (event.owner, event.attempt) == ("", 0)
    assert event.wake_at >= before + A_MOMENT


# The time that a worker has


def test_a_worker_that_waits_as_long_as_it_runs_is_given_twice_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(monotonic=count(1).__next__)
    monkeypatch.setattr(worker_slice, "time", clock)
    monkeypatch.setattr(worker_slice, "_processor_times", lambda: (0.5, 0.5))
    lateness = Lateness()
    lateness.measure()

    assert lateness.factor == 2
