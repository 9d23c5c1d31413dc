"""What `orchestrator.testing` promises: everything in one process, no real commit, no Redis, no waiting."""

import time
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import chain, repeat
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management.sql import emit_post_migrate_signal
from django.db import IntegrityError, connection, transaction
from django.db.models.sql.compiler import SQLCompiler
from django.test import TestCase
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from orchestrator import queue, send_event, start_process
from orchestrator.configuration.conf import conf
from orchestrator.definition import (
    Event,
    StepContext,
    Workflow,
    ask,
    each,
    fork,
    join,
    step,
    then,
    undo,
    wait,
)
from orchestrator.definition import run as sub_process
from orchestrator.engine.loops import drain as draining
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.sql.tables import events, step_runs
from orchestrator.engine.storage import definitions
from orchestrator.engine.work import leases
from orchestrator.exceptions import InvalidMessage, OperationRefused
from orchestrator.models import (
    Definition,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from orchestrator.queue import bell_count
from orchestrator.testing import (
    Process,
    failing,
    found,
    pass_time,
    registered,
    replaced,
    run,
    started,
)
from tests.apps.process_managers import handlers
from tests.apps.process_managers.fixtures import parcels
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    Courier,
    CourierBooked,
    DepotOpened,
    LabelTorn,
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
    RemindPacker,
)
from tests.apps.process_managers.processes import Shipping
from tests.services.cases import cases
from tests.services.operated import knowing
from tests.services.patience import A_MINUTE, bar
from tests.services.valkey import ValkeyServer

__all__ = ["parcels"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


class Choice(StrEnum):
    YES = "yes"
    NO = "no"


class TicketIssued(Event):
    number: str


@dataclass(frozen=True)
class Request:
    traveller: str
    nights: int = 2


ITO = Request("Ito")
AWAY = ConnectionError("away")


def quote(traveller: str, nights: int) -> int:
    return nights * 100


def book(quote: int, context: StepContext) -> str:
    return f"booked for {quote} in attempt {context.attempt}"


def unbook(book: str) -> None:
    Group.objects.create(name=f"undone: {book}")


def depart(book: str, issued: TicketIssued) -> str:
    return f"{book}, {issued.number}"


class Journey(Workflow):
    Input = Request
    correlation = "traveller"
    approve = ask("approve", Choice)
    ticket = wait(TicketIssued, "ticket", gives="issued", deadline=timedelta(days=2))
    flow = (then(quote, approve, book, ticket, depart), undo(book, by=unbook))


def nights(nights: int) -> list[int]:
    return list(range(nights))


def sleep(night: int) -> str:
    return f"night {night}"


def wake(sleep: list[str]) -> int:
    return len(sleep)


class Stay(Workflow):
    Input = Request
    flow = (each(nights, over="", do=sleep, into=wake, item="night"),)


def pack(traveller: str) -> str:
    return "packed"


def leave(stay: int, pack: str) -> str:
    return f"{stay} nights, {pack}"


class Holiday(Workflow):
    Input = Request
    stay = sub_process(Stay, "stay")
    flow = (fork(quote, into=[stay, pack]), join(stay, pack, into=leave))


journeys = knowing(Journey, Stay, Holiday)


def shipped(parcel_id: str = "P-1", courier: Courier = Courier.OWN) -> Process:
    return started(Shipping, ParcelOrdered(parcel_id, courier))


def by_partner() -> Process:
    """A parcel that is packed and goes by a partner, whom a handler books after the commit."""
    parcel = shipped(courier=Courier.PARTNER)
    parcel.send(ParcelPacked(3))
    return parcel


def approved(request: Request = ITO) -> Process:
    """A journey that is approved, and waits for its ticket."""
    journey = started(Journey, request)
    journey.answer("approve", Choice.YES)
    return journey


# Running


def test_the_order_of_work_does_not_depend_on_how_fast_the_machine_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Workers hand on what they come to late; here is nobody else."""
    journeys = [approved(Request(name)) for name in ("Ada", "Bo")]
    monkeypatch.setattr(draining, "BEGIN_SECONDS", -1.0)
    departing = list[int]()

    def counted(book: str, issued: TicketIssued) -> str:
        departing.append(StepRun.objects.filter(node="depart").count())
        return issued.number

    with replaced(depart, counted):
        for journey in journeys:
            send_event(TicketIssued("T-1"), id=str(journey.id), process_id=journey.id)
        run()

    assert departing == [2, 2]


def test_a_process_runs_to_its_end_in_the_tests_own_process() -> None:
    parcel = shipped(courier=Courier.PARTNER)
    verdicts = [parcel.send(ParcelPacked(3)), parcel.send(ParcelDelivered("P-1"))]

    assert (parcel.status, verdicts) == ("completed", ["moved", "moved"])
    assert parcel.path == ["Ordered", "Packing", "OnTheWay", "Delivered"]
    assert parcel.commands == [PackParcel("P-1", ""), BookCourier("P-1", "")]
    assert parcel.data == Shipping.Data("P-1", Courier.PARTNER, booking="B-P-1")


def test_commands_of_one_transition_come_in_the_order_issued() -> None:
    parcel = by_partner()
    for number in range(3):
        parcel.send(ParcelScanned("P-1", str(number)))

    places = [c.place for c in parcel.commands if isinstance(c, CountScan)]
    assert places == ["0", "1", "2"]


def test_a_workflow_is_answered_and_told_and_gives_its_result() -> None:
    journey = started(Journey, ITO)
    assert (journey.status, journey.open_steps) == ("waiting", ["approve"])
    journey.answer("approve", Choice.YES)
    assert journey.result is None
    journey.send(TicketIssued("T-1"))

    assert journey.path == ["quote", "approve", "book", "ticket", "depart"]
    assert journey.result == "booked for 200 in attempt 1, T-1"
    assert journey.result_of("approve") is Choice.YES
    assert journey.result_of("ticket") == TicketIssued("T-1")
    assert (journey.data, journey.commands) == (ITO, [])


def test_what_a_process_waits_for_may_come_early() -> None:
    journey = started(Journey, ITO)

    assert journey.send(TicketIssued("T-1")) == "parked"
    journey.answer("approve", "yes")
    assert journey.status == "completed"


def test_branches_maps_and_sub_processes_run_too() -> None:
    holiday = started(Holiday, Request("Ito", 3))
    (stay,) = holiday.children

    assert holiday.result == "3 nights, packed"
    assert holiday.path == ["quote", "pack", "stay", "leave"]
    assert stay.path == ["nights", "sleep", "wake"]
    assert stay.result_of("sleep") == ["night 0", "night 1", "night 2"]


def test_a_cancelled_process_is_undone() -> None:
    journey = approved()
    journey.cancel()

    assert (journey.status, journey.path[-1]) == ("cancelled", "undo book")
    assert Group.objects.filter(name__startswith="undone").count() == 1


def test_only_processes_that_the_code_under_test_started_are_found() -> None:
    with pytest.raises(LookupError, match="no process of journey with the key 'Ito'"):
        found(Journey, "Ito")
    start_process(Journey, ITO)
    start_process(Shipping, ParcelOrdered("P-1"))
    run()
    assert found(Journey).open_steps == ["approve"]
    assert found(Shipping, "P-1").path == ["Ordered", "Packing"]

    shipped("P-2")
    with pytest.raises(LookupError, match="there is 2 processes of shipping"):
        found(Shipping)


def test_a_start_that_fails_is_told_at_once() -> None:
    with (
        failing(PackParcel, ValueError("no paper")),
        pytest.raises(AssertionError, match=r"started no shipping.*no paper"),
    ):
        shipped()
    with pytest.raises(InvalidMessage):
        started(Journey, "Ito")


def test_a_handle_says_how_its_process_stands_and_what_failed_is_retried() -> None:
    with failing(quote, ValueError("no price")):
        journey = started(Journey, ITO)
        pass_time(hours=1)

    assert repr(journey) == "<journey Ito: failed in quote; ValueError: no price>"
    assert journey.incidents == ["ValueError: no price"]
    journey.retry()
    assert journey.open_steps == ["approve"]


def test_what_a_process_cannot_do_is_refused(stranger: User) -> None:
    journey = started(Journey, ITO)

    with pytest.raises(LookupError, match="book does not ask now"):
        journey.answer("book", Choice.YES)
    with pytest.raises(OperationRefused, match="'maybe' is not one of yes, no"):
        journey.answer("approve", "maybe")
    with pytest.raises(OperationRefused):
        journey.answer("approve", Choice.YES, by=stranger)
    for name in ("book", "boook"):
        with pytest.raises(LookupError, match=f"{name} has no result"):
            journey.result_of(name)
    ended = r"nothing is due and it has not ended.*approve"
    with pytest.raises(AssertionError, match=ended):
        journey.finish()
    assert journey.open_steps == ["approve"]


# Time


def test_deadlines_fire_one_after_the_other_as_a_clock_would_reach_them() -> None:
    parcel = shipped(courier=Courier.PARTNER)
    pass_time(minutes=59)
    assert RemindPacker("P-1") not in parcel.commands
    pass_time(minutes=2)
    assert RemindPacker("P-1") in parcel.commands
    assert parcel.instance.escalation_level == 0
    pass_time(hours=2)

    assert parcel.instance.escalation_level == 2
    at = parcel.instance.escalated_at
    assert at is not None
    assert timezone.now() - at < timedelta(minutes=2)  # at 3 h; 3 h 1 min are over


def test_what_passed_before_a_deadline_fired_counts_for_what_it_led_to() -> None:
    parcel = by_partner()
    pass_time(hours=71)
    other = shipped("P-2")
    pass_time(timedelta(hours=2))

    assert parcel.path[-1] == "Missing"
    assert other.commands == [PackParcel("P-2", ""), RemindPacker("P-2")]
    missing = parcel.instance.step_runs.get(node="Missing")
    assert timedelta(minutes=59) < timezone.now() - missing.started_at


def test_pauses_between_attempts_pass() -> None:
    with failing(book, AWAY, times=2), failing(BookCourier, AWAY, times=1):
        parcel, journey = by_partner(), approved()
        assert journey.status == parcel.status == "retrying"
        pass_time(seconds=conf().BACKOFF_SECONDS)
        assert journey.status == "retrying"
        pass_time(minutes=1)

    assert journey.result_of("book") == "booked for 200 in attempt 3"
    assert parcel.data.booking == "B-P-1"


def test_patience_with_an_event_ends() -> None:
    parcel = shipped()
    number = send_event(ParcelPacked(1), id="1").number
    assert parcel.send(ParcelScanned("P-1", "Kobe")) == "parked"
    pass_time(seconds=conf().PATIENCE_SECONDS - 30)
    assert parcel.incidents == []
    pass_time(seconds=31)

    assert parcel.incidents == ["ParcelScanned is not expected in step Packing"]
    assert InboxEvent.objects.get(pk=number).verdict == "unrouted"


def test_the_lease_of_a_worker_that_died_ends() -> None:
    start_process(Journey, ITO)
    (claimed,) = step_runs.claim("default", "lost worker", 1, 10, status="running")
    run()
    assert StepRun.objects.get().owner == "lost worker"
    pass_time(seconds=11)

    assert found(Journey).open_steps == ["approve"]
    assert StepRun.objects.get(pk=claimed.work.pk).attempt == 2


def test_what_waits_behind_what_a_lost_worker_holds_comes_after_it() -> None:
    parcel = shipped()
    scans = InboxEvent.objects.filter(event_id__in=["1", "2"]).order_by("pk")
    send_event(ParcelScanned("P-1", "Kobe"), id="1", process_id=parcel.id)
    events.claim("default", "lost worker", 1, 1)
    send_event(ParcelScanned("P-1", "Nara"), id="2", process_id=parcel.id)
    run()
    assert scans[0].owner == "lost worker"

    pass_time(seconds=2)

    assert [scan.verdict for scan in scans] == ["parked", "parked"]


def test_time_may_pass_for_one_process_alone() -> None:
    parcel, other = shipped("P-1"), shipped("P-2")
    pass_time(hours=1, only=parcel.id)

    assert RemindPacker("P-1") in parcel.commands
    assert RemindPacker("P-2") not in other.commands


def test_a_process_is_brought_to_its_end_through_all_its_pauses() -> None:
    with failing(sleep, AWAY, times=3):
        holiday = started(Holiday, ITO)
        assert holiday.status == "waiting"
        holiday.finish()

    assert holiday.result == "2 nights, packed"


def test_time_does_not_run_backwards() -> None:
    with pytest.raises(ValueError, match="does not run backwards"):
        pass_time(hours=1, minutes=-61)


def test_a_year_passes_in_a_moment() -> None:
    parcel = shipped()
    begun = time.monotonic()
    pass_time(days=365)

    assert parcel.instance.escalation_level == 1
    assert time.monotonic() - begun < bar(5)


def test_that_nothing_is_due_is_asked_in_one_statement() -> None:
    run()
    with CaptureQueriesContext(connection) as sent:
        run()
    (look,) = (query["sql"] for query in sent if "SELECT" in query["sql"])

    tables = (kind._meta.db_table for kind in (InboxEvent, IssuedCommand, StepRun))
    assert all(table in look for table in tables)


def test_which_definition_it_is_of_is_asked_without_composing_a_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parcel = shipped().instance
    with monkeypatch.context() as meanwhile:
        meanwhile.delattr(SQLCompiler, "execute_sql")

        assert definitions.definition_of(parcel) is Shipping


def test_work_that_finds_no_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.testing.clock.MOST_PIECES", 40)

    def scan_again(command: CountScan) -> ParcelScanned:
        return ParcelScanned(command.parcel_id, "again")

    parcel = by_partner()
    with (
        replaced(CountScan, scan_again),
        pytest.raises(AssertionError, match=r"the work finds no end.*ParcelScanned"),
    ):
        parcel.send(ParcelScanned("P-1", "Kobe"))


# Replacing


def test_a_step_is_replaced_until_the_end_of_the_block() -> None:
    with (
        replaced(quote, lambda traveller, nights: 1),
        replaced("pack", lambda traveller: "replaced"),
    ):
        first = started(Holiday, ITO)
    second = started(Holiday, ITO)
    with replaced(quote, lambda traveller, nights: "much"):
        third = started(Journey, ITO)

    assert (first.result_of("quote"), first.result) == (1, "2 nights, replaced")
    assert (second.result_of("quote"), second.result) == (200, "2 nights, packed")
    assert third.status == "failed"
    assert "the result of quote" in third.incidents[0]


def test_handlers_are_replaced_by_command_function_and_name() -> None:
    seen: list[object] = []

    def book(command: BookCourier) -> CourierBooked:
        seen.append(command)
        return CourierBooked("by command")

    with (
        replaced(BookCourier, book),
        replaced(handlers.pack_parcel, seen.append),
        replaced("RemindPacker", lambda command, context: seen.append(context.attempt)),
        replaced("greet_depot", seen.append),
    ):
        parcel = shipped(courier=Courier.PARTNER)
        pass_time(hours=1)
        parcel.send(ParcelPacked(3))
        send_event(DepotOpened("Kobe"), id="1")
        run()

    assert parcel.data.booking == "by command"
    orders = [PackParcel("P-1", ""), 1, BookCourier("P-1", ""), DepotOpened("Kobe")]
    assert seen == orders
    assert not Group.objects.exists()


@cases(
    "what, by, said",
    ("qoute", print, "no step, command or event handler is called 'qoute'; is it quote?"),
    (timezone.now, print, "now is neither a step's nor a handler's function"),
    (LabelTorn, print, "LabelTorn is neither a step's nor a handler's function"),
    ("nights", nights, "several functions run as nights: "),
    (quote, lambda traveller: 1, "cannot stand in for quote(traveller, nights)"),
    (PackParcel, lambda: None, "cannot stand in for pack_parcel(command)"),
)  # fmt: skip
def test_what_does_not_fit_cannot_be_replaced(what: Any, by: Any, said: str) -> None:
    class Other(Workflow):
        Input = Request
        flow = (step(wake_up, "nights"),)

    error = TypeError if "cannot stand in" in said else LookupError
    with registered(Other), pytest.raises(error) as told, replaced(what, by):
        pass

    assert said in str(told.value)


def wake_up(nights: int) -> list[int]:
    return []


def test_definitions_are_known_within_the_block_or_the_test_only(
    procession_registered: Any, procession_replaced: Any
) -> None:
    class Alone(Workflow):
        Input = Request
        flow = (quote,)

    with registered(Alone):
        assert started(Alone, ITO).result == 200
    ProcessInstance.objects.all().delete()
    with pytest.raises(Exception, match="no definition alone"):
        started(Alone, ITO)
    procession_registered(Alone)
    procession_replaced(quote, lambda traveller, nights: 7)
    assert started(Alone, ITO).result == 7
    ProcessInstance.objects.all().delete()


# Without commits


def test_a_statement_that_fails_in_a_step_undoes_itself_alone() -> None:
    def quote(traveller: str, nights: int) -> int:
        Group.objects.create(name="once")
        try:
            Group.objects.create(name="once")
        except IntegrityError:
            return Group.objects.filter(name="once").count()
        return 0

    def several(traveller: str) -> str:
        Group.objects.bulk_create([Group(name="twice"), Group(name="twice")])
        return "packed"

    assert connection.in_atomic_block
    with replaced("quote", quote), replaced("pack", several):
        holiday = started(Holiday, ITO)

    assert (holiday.result_of("quote"), holiday.status) == (1, "retrying")
    assert not Group.objects.filter(name="twice").exists()


def test_a_step_whose_statement_fails_is_tried_again() -> None:
    Group.objects.create(name="taken")

    def quote(traveller: str, nights: int) -> int:
        with transaction.atomic():
            Group.objects.create(name="half")
            Group.objects.create(name="taken")
        return 1

    with replaced("quote", quote):
        journey = started(Journey, ITO)
        assert journey.status == "retrying"
        assert not Group.objects.filter(name="half").exists()
        Group.objects.filter(name="taken").delete()
        pass_time(minutes=1)

    assert journey.result_of("quote") == 1


def test_a_handler_whose_statement_fails_after_the_commit_is_tried_again() -> None:
    Group.objects.create(name="taken")

    def book(command: BookCourier) -> CourierBooked:
        Group.objects.create(name="taken")
        return CourierBooked("B-1")

    with replaced(BookCourier, book):
        parcel = by_partner()
        assert parcel.status == "retrying"
        Group.objects.filter(name="taken").delete()
        pass_time(minutes=1)

    assert parcel.data.booking == "B-1"


def test_a_lost_lease_does_not_cost_the_tests_own_transaction() -> None:
    def quote(traveller: str, nights: int) -> int:
        leases.end_leases(list(StepRun.objects.values_list("owner", flat=True)))
        return 1

    Group.objects.create(name="before")
    with replaced("quote", quote):
        start_process(Journey, ITO)
        stop = chain([False] * 3, repeat(True))
        drain(stop=lambda: next(stop))

    assert Group.objects.filter(name="before").exists()
    assert StepRun.objects.get().result is None
    run()
    assert found(Journey).open_steps == ["approve"]


class OrdinaryTestCase(TestCase):
    """Django's own test case, with what it shares between its tests."""

    process: Process

    @classmethod
    def setUpTestData(cls) -> None:
        cls.process = shipped()

    def test_each_test_begins_where_the_shared_data_ends(self) -> None:
        self.process.send(ParcelPacked(3))
        assert self.process.open_steps == ["OnTheWay"]

    def test_and_so_does_the_next(self) -> None:
        assert self.process.open_steps == ["Packing"]
        pass_time(hours=1)
        assert RemindPacker("P-1") in self.process.commands

    def test_hooks_of_commits_may_be_called_though_nothing_is_committed(self) -> None:
        with self.captureOnCommitCallbacks(execute=True):
            journey = started(Journey, ITO)
        assert journey.open_steps == ["approve"]

    def test_what_was_rolled_back_is_forgotten(self) -> None:
        assert started(Journey, ITO).open_steps == ["approve"]


# Without Redis


@pytest.mark.django_db(transaction=True)
def test_no_bell_is_rung_where_commits_are_real(procession_quiet: None) -> None:
    by_partner()
    pass_time(hours=1)
    start_process(Shipping, ParcelOrdered("P-2"))
    assert bell_count("default") == 0
    run()

    assert found(Shipping, "P-2").open_steps == ["Packing"]


@pytest.mark.django_db(transaction=True)
def test_redis_may_be_away(
    valkey: ValkeyServer,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    valkey.stop()
    monkeypatch.setattr(queue, "SILENCE_SECONDS", A_MINUTE)
    monkeypatch.setitem(queue._silent, "until", 0.0)  # as before, when this is over
    begun = time.monotonic()
    parcel = by_partner()
    pass_time(hours=1)
    assert parcel.data.booking == "B-P-1"
    assert "doorbell" not in caplog.text

    for name in ("P-2", "P-3"):
        start_process(Shipping, ParcelOrdered(name))
    run()
    assert found(Shipping, "P-3").open_steps == ["Packing"]
    assert caplog.text.count("the doorbell is out of reach") == 1
    assert time.monotonic() - begun < bar(5)


@pytest.mark.django_db(transaction=True)
def test_what_is_known_of_the_tables_is_forgotten_when_they_are_emptied() -> None:
    row = definitions.row_key(Shipping)
    assert definitions.row_key(Shipping) == row
    Definition.objects.all().delete()
    emit_post_migrate_signal(0, False, "default")  # as Django does between two tests

    assert definitions.row_key(Shipping) != row
