"""Claims, leases and fences: who holds the work may settle it, and nobody else; what is given back is uncharged."""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import Group

from orchestrator import Answer, CommandContext, start_process
from orchestrator.configuration.conf import conf
from orchestrator.engine.events.deadlines import fire_deadline
from orchestrator.engine.events.delivery import deliver_claimed
from orchestrator.engine.events.outbox import carry_out_command
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.batch import database_now
from orchestrator.engine.sql.connection import note_uncertain_commit
from orchestrator.engine.sql.table import Table
from orchestrator.engine.sql.tables import commands, events, step_runs
from orchestrator.engine.steps import runner, session
from orchestrator.engine.storage.results import Results
from orchestrator.engine.work import leases
from orchestrator.engine.work.leases import work_name
from orchestrator.engine.work.worker_slice import Reporting, WorkerSlice
from orchestrator.exceptions import HandlerMissing
from orchestrator.models import (
    Checkpoint,
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    Lost,
    ProcessInstance,
    StepRun,
    StepStatus,
    Verdict,
)
from orchestrator.queue import bell_count
from orchestrator.testing import pass_time
from orchestrator.testing.clock import move_times_back
from orchestrator.workers.current_worker import CurrentWorker
from tests.apps.process_managers.desk import accept, place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    Courier,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.together import raised, together
from tests.apps.watched.fixtures import watched
from tests.apps.watched.processes import Watched, WatchedInside
from tests.apps.watched.steps import Work, begun
from tests.services.doing import fresh, raising
from tests.services.explained import explained

__all__ = ["watched"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

LEASE = timedelta(seconds=conf().LEASE_SECONDS)
SECOND = timedelta(seconds=1)
SCANNED = ParcelScanned("P-1", "Nagoya")


def claim(table: Table[Any], owner: str, limit: int = 8) -> list[Any]:
    taken = table.claim("default", owner, limit, conf().LEASE_SECONDS)
    return [claimed.work for claimed in taken]


def waiting_scan() -> tuple[ProcessInstance, int]:
    parcel = underway()
    return parcel, accept(parcel, SCANNED)


def waiting_scans(number: int = 3) -> list[int]:
    """Return the numbers of events of so many processes, which wait."""
    parcels = [underway(f"P-{place}") for place in range(number)]
    return [accept(one, ParcelScanned(one.correlation_key, "x")) for one in parcels]


def booking_due() -> ProcessInstance:
    """Have a command after the commit due."""
    parcel = place("P-9", Courier.PARTNER)
    accept(parcel, ParcelPacked(3))
    deliver_claimed(claim(events, "A")[0])
    return parcel


# Claims


def test_a_claim_raises_the_attempt_and_sets_owner_and_lease() -> None:
    waiting_scan()
    assert events.claim("other", "A", 8, 10) == []
    [event] = claim(events, "A")

    assert (event.attempt, event.owner) == (1, "A")
    stored = InboxEvent.objects.get(pk=event.pk)
    assert (stored.attempt, stored.owner, stored.wake_at) == (1, "A", event.wake_at)
    assert abs(event.wake_at - stored.received_at - LEASE) < 5 * SECOND
    assert claim(events, "B") == []

    move_times_back(LEASE + SECOND)
    [event] = claim(events, "B")
    assert (event.attempt, event.owner) == (2, "B")
    move_times_back(LEASE + SECOND)
    drain()


def test_the_oldest_work_is_taken_first_and_no_more_than_asked_for() -> None:
    numbers = waiting_scans()

    assert [event.pk for event in claim(events, "A", 2)] == numbers[:2]
    assert [event.pk for event in claim(events, "B", 2)] == numbers[2:]


@pytest.mark.django_db(transaction=True)
def test_each_piece_of_work_is_claimed_once_however_many_claim() -> None:
    waiting_scans(12)
    owners = count()

    results = together(*[lambda: claim(events, f"worker {next(owners)}", 3)] * 6)
    drain()

    assert raised(results) == []
    taken = [event.pk for result in results for event in result]
    assert len(taken) == len(set(taken))
    move_times_back(LEASE + SECOND)
    drain()


# The end of a lease


def test_an_event_another_settled_is_refused_to_the_first(handler: SetHandler) -> None:
    counted: list[CommandContext] = []

    def count_scan(command: CountScan, context: CommandContext) -> None:
        counted.append(context)
        Group.objects.create(name=f"call {len(counted)}")

    handler(CountScan, count_scan)
    parcel, number = waiting_scan()
    [held] = claim(events, "A")
    move_times_back(LEASE + SECOND)
    drain(owner="B")
    deliver_claimed(held)

    parcel.refresh_from_db()
    event = InboxEvent.objects.get(pk=number)
    assert (event.verdict, event.attempt, event.error) == (Verdict.MOVED, 2, "")
    assert (parcel.revision, len(counted)) == (3, 2)
    assert counted[0].command_id == IssuedCommand.objects.get(type="CountScan").pk
    called = Group.objects.filter(name__startswith="call")
    assert [group.name for group in called] == ["call 1"]


def test_an_event_that_another_holds_is_refused_to_the_first_and_so_is_its_failure(
    handler: SetHandler,
) -> None:
    parcel, number = waiting_scan()
    [held] = claim(events, "A")
    move_times_back(LEASE + SECOND)
    [taken] = claim(events, "B")
    deliver_claimed(held)

    event = InboxEvent.objects.get(pk=number)
    assert (event.verdict, event.owner) == (Verdict.RECEIVED, "B")
    deliver_claimed(taken)
    handler(CountScan, raising(ConnectionError("no line")))
    deliver_claimed(held)
    assert (fresh(parcel).revision, parcel.status) == (3, "waiting")
    assert InboxEvent.objects.get(pk=number).error == ""
    assert not Incident.objects.exists()


def test_a_command_another_settled_is_refused_to_the_first(handler: SetHandler) -> None:
    keys: list[Any] = []

    def book(command: BookCourier, context: CommandContext) -> Answer:
        keys.append(context.command_id)
        return Answer(f"call {len(keys)}")

    handler(BookCourier, book, after_commit=True)
    booking_due()
    [held] = claim(commands, "A")
    move_times_back(LEASE + SECOND)
    drain(owner="B")
    carry_out_command(held, WorkerSlice("default", "A"))

    command = IssuedCommand.objects.get(type="BookCourier")
    assert (command.status, command.answer) == (CommandStatus.DONE, "call 1")
    assert keys == [command.pk, command.pk]


def test_a_deadline_that_another_has_fired_is_refused_to_the_first() -> None:
    parcel = deadline_due()
    [held] = claim(step_runs, "A")
    move_times_back(LEASE + SECOND)
    drain(owner="B")
    fire_deadline(held)

    assert Checkpoint.objects.filter(instance=parcel).count() == 2
    run = StepRun.objects.get(instance=parcel, finished_at=None)
    assert (run.deadlines_fired, run.error) == (1, "")


def deadline_due() -> ProcessInstance:
    parcel = place()
    move_times_back(timedelta(minutes=61))
    return parcel


@pytest.mark.parametrize(
    ("due", "table", "attempts"),
    [
        (lambda: waiting_scan()[0], events, conf().EVENT_ATTEMPTS),
        (booking_due, commands, 2),
        (deadline_due, step_runs, conf().EVENT_ATTEMPTS),
    ],
)
def test_work_whose_workers_died_in_every_attempt_is_set_aside(
    due: Callable[[], ProcessInstance], table: Table[Any], attempts: int
) -> None:
    parcel = due()
    for number in range(attempts):
        assert len(claim(table, f"dying {number}")) == 1
        move_times_back(LEASE + SECOND)
    drain()

    told = Incident.objects.open().get().message
    assert re.match(rf"WorkerDied: the worker died.*each of {attempts} attempts", told)
    assert fresh(parcel).status == "failed"


@pytest.mark.skipif(
    "postgresql" not in settings.DATABASES["default"]["ENGINE"],
    reason="SQLite asks for a list of keys once",
)
def test_a_claim_asks_once_for_the_keys_of_what_is_due() -> None:
    """Where they were joined with a table that was thought to be small, a claim took more than its limit."""
    with explained() as plans:
        claim(events, "A")

    assert "InitPlan" in plans[0]
    assert "Semi Join" not in plans[0]


# Renewing and ending


def test_only_the_work_of_those_who_live_is_renewed() -> None:
    waiting_scan()
    claim(events, "A")
    move_times_back(LEASE * 0.7)
    leases.renew_leases(["A"])
    move_times_back(LEASE * 0.4)
    assert claim(events, "B") == []
    leases.renew_leases(["B"])
    move_times_back(LEASE * 0.7)
    assert len(claim(events, "B")) == 1

    leases.end_leases(["B"])  # it is free at once, and this attempt uncharged
    event = InboxEvent.objects.get(type="ParcelScanned")
    assert (event.owner, event.attempt) == ("", 1)
    assert len(claim(events, "C")) == 1
    move_times_back(LEASE + SECOND)
    drain()


def test_renewing_looks_at_what_is_held_whatever_waits() -> None:
    now = database_now()
    waits = {"type": "ParcelScanned", "received_at": now, "wake_at": now + LEASE}
    InboxEvent.objects.bulk_create(
        InboxEvent(event_id=str(number), source="test", body={}, **waits)
        for number in range(500)
    )
    with explained() as plans:
        leases.renew_leases(["A", "B"])

    InboxEvent.objects.all().delete()
    assert {*re.findall("held_events|due_events", " ".join(plans))} == {"held_events"}


def test_the_work_that_a_dead_worker_had_in_hand_is_charged_and_no_other() -> None:
    """Work that kills its worker must not use up its neighbours' attempts."""
    numbers = waiting_scans()
    assert len(claim(events, "A")) == 3
    leases.end_leases(["A"], running={work_name(InboxEvent(pk=numbers[1])): Lost.DIED})

    held = InboxEvent.objects.filter(pk__in=numbers).order_by("pk")
    assert [*held.values_list("attempt", "owner")] == [(0, ""), (1, ""), (0, "")]
    drain()

    booking_due()
    [held] = claim(commands, "A")
    leases.end_leases(["A"], running={work_name(held): Lost.DIED})
    assert (fresh(held).attempt, held.owner) == (1, "")


def test_what_a_lost_answer_left_in_a_workers_name_is_freed() -> None:
    """The commit that settled one piece of work may have taken up the next, and the worker never heard of it."""
    worker = CurrentWorker()
    waiting_scan()
    assert len(claim(events, worker.owner)) == 1
    note_uncertain_commit()

    worker.drain("default")

    event = InboxEvent.objects.get(type="ParcelScanned")
    assert (event.verdict, event.owner) == (Verdict.MOVED, "")


# Draining


def test_a_worker_that_is_asked_to_stop_gives_back_what_it_has_not_begun() -> None:
    waiting_scans()
    answers = iter([False, True, True, True])
    assert drain(stop=lambda: next(answers)) == 1

    left = InboxEvent.objects.filter(type="ParcelScanned", verdict=Verdict.RECEIVED)
    assert list(left.values_list("attempt", "owner")) == [(0, "")] * 2
    assert drain() == 2


def test_a_long_batch_is_given_back_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draining, "BEGIN_SECONDS", -1.0)
    waiting_scans()
    drain()

    attempts = InboxEvent.objects.filter(type="ParcelScanned")
    assert list(attempts.values_list("attempt", "verdict")) == [(1, Verdict.MOVED)] * 3


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("workflow", [Watched, WatchedInside])
def test_a_step_whose_arguments_were_long_in_coming_is_claimed_anew_uncharged(
    workflow: type[Watched | WatchedInside], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease may have run out meanwhile, and others may have run it."""
    name = f"late {workflow.name}"
    waits = iter([conf().LEASE_SECONDS, 0.0])
    read, monotonic, passed = Results.arguments, time.monotonic, [0.0]
    clock = SimpleNamespace(monotonic=lambda: monotonic() + passed[0])

    def slowly(results: Results, *given: Any) -> dict[str, Any]:
        passed[0] += next(waits)
        return read(results, *given)

    monkeypatch.setattr(Results, "arguments", slowly)
    for module in (leases, runner, session):
        monkeypatch.setattr(module, "time", clock)
    start_process(workflow, Work(name, "sleep"))
    drain()

    assert list(waits) == []  # they were read twice
    assert len(begun(name)) == 1
    assert StepRun.objects.get(status=StepStatus.DONE).attempt == 1
    assert not Incident.objects.exists()


@pytest.mark.usefixtures("watched")
@pytest.mark.parametrize("workflow", [Watched, WatchedInside])
def test_what_goes_wrong_with_the_arguments_of_a_step_is_no_failure_of_its_function(
    workflow: type[Watched | WatchedInside], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also of one inside the commit: it is held, and goes on when the code that runs can read them."""

    def missing(*_: object) -> None:
        raise HandlerMissing("nothing runs for spend in the running code")

    name = f"missing {workflow.name}"
    with monkeypatch.context() as before:
        before.setattr(Results, "arguments", missing)
        start_process(workflow, Work(name, "sleep"))
        drain()
    assert begun(name) == []
    assert Incident.objects.get().kind == Incident.Kind.HANDLER_MISSING

    pass_time(hours=1)

    assert StepRun.objects.get().status == StepStatus.DONE
    assert not Incident.objects.open().exists()


def test_a_time_slice_ends_and_the_bell_is_rung_for_the_rest() -> None:
    waiting_scan()
    assert (drain(seconds=0), bell_count("default")) == (0, 1)
    drain()


def test_each_piece_of_work_says_how_long_it_may_take() -> None:
    limits: list[float] = []

    @contextmanager
    def watch(
        seconds: float, work: str, heartbeat: float | None = None
    ) -> Iterator[Reporting]:
        limits.append(seconds)
        assert work
        yield nullcontext

    accept(place("P-1", Courier.PARTNER), ParcelPacked(3))
    drain(watch=watch)

    assert limits == [conf().EVENT_TIMEOUT, 3, conf().EVENT_TIMEOUT]
