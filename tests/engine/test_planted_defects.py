"""Defects planted in a database with processes of every kind: each is found by the invariants, which says where.

What rows cannot tell is named with the test that finds it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from orchestrator import Answer, Permanent, send_event, start_process
from orchestrator.engine.invariants import CHECKS, violations
from orchestrator.engine.operations import pause
from orchestrator.models import (
    BulkOperation,
    InboxEvent,
    Incident,
    ProcessInstance,
    StepKind,
)
from orchestrator.testing import run
from tests.apps.patterns import unstorable
from tests.apps.patterns.patterns import Approved
from tests.apps.process_managers.desk import accept, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    Courier,
    CourierBooked,
    DepotOpened,
    ParcelDelivered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.random_graphs import journeys
from tests.services.asking import asked
from tests.services.bulk import begun, worked_on
from tests.services.operated import knowing

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

KINDS = (journeys.Journey, journeys.Standstill, journeys.TakenBack)

travellers = knowing(*KINDS, journeys.Errand, journeys.Visit, unstorable.Keyed)


@dataclass
class Town:
    """A database with processes that stand in every way."""

    live: ProcessInstance
    finished: ProcessInstance
    parked: ProcessInstance
    paused: ProcessInstance
    failed: ProcessInstance
    journey: ProcessInstance
    standstill: ProcessInstance
    taken_back: ProcessInstance
    waiting: ProcessInstance
    scan: InboxEvent
    """The event that is parked."""
    bulk: BulkOperation


def workflow(definition: Any, input: Any = None) -> ProcessInstance:
    given = definition.Input() if input is None else input
    process_id = start_process(definition, given).process_id
    run()
    return ProcessInstance.objects.get(pk=process_id)


@pytest.fixture
def town(handler: SetHandler, administrator: User) -> Town:
    """Return a database in which nothing is wrong."""

    def count(command: CountScan) -> Answer:
        if command.place == "nowhere":
            raise Permanent("no such place")
        return Answer("counted", CourierBooked(f"scanned in {command.place}"))

    handler(CountScan, count)
    live = underway("P-live", Courier.PARTNER)
    tell(live, ParcelScanned("P-live", "Nagoya"))
    finished = underway("P-finished", Courier.PARTNER)
    tell(finished, ParcelDelivered("P-finished"))
    parked = place("P-parked")
    scan = tell(parked, ParcelScanned("P-parked", "Kobe"))
    paused = place("P-paused")
    pause(paused.pk, False, request=asked(actor=administrator))
    accept(paused, ParcelPacked(1))
    failed = underway("P-failed")
    tell(failed, ParcelScanned("P-failed", "nowhere"))
    send_event(DepotOpened("east"), id="1")
    waiting = workflow(unstorable.Keyed, unstorable.Order("A"))
    journey, standstill, taken_back = map(workflow, KINDS)
    bulk = worked_on(begun(administrator, {"q": "P-live"}, 1, action="escalate"))
    parcels = (live, finished, parked, paused, failed)
    town = Town(*parcels, journey, standstill, taken_back, waiting, scan, bulk)
    assert violations() == []
    return town


def caused(process: ProcessInstance, kind: str) -> Any:
    return InboxEvent.objects.filter(process=process, caused_by__type=kind)


def process(row: ProcessInstance) -> Any:
    return ProcessInstance.objects.filter(pk=row.pk)


def parked(town: Town) -> Any:
    return InboxEvent.objects.filter(pk=town.scan.pk)


def without_a_command(town: Town) -> None:
    caused(town.live, "BookCourier").update(caused_by=None)
    town.live.commands.filter(type="BookCourier").delete()


def one_too_many(town: Town) -> None:
    row = town.live.commands.filter(type="CountScan").get()
    row.pk = uuid4()
    row.follow_ups = None
    row.save(force_insert=True)


def forget_the_wait(town: Town) -> None:
    """Leave an event lying that the wait of a workflow is for."""
    approved = {"type": Approved.__name__, "body": {"by": "Ito"}}
    parked(town).update(process=town.waiting.pk, wake_at=None, **approved)


def ignore_the_wait(town: Town) -> None:
    """Let a workflow have ignored the event that it waits for."""
    forget_the_wait(town)
    parked(town).update(verdict="ignored")


def visit(row: ProcessInstance) -> Any:
    return row.step_runs.filter(finished_at=None)


def in_hours(number: int) -> datetime:
    return timezone.now() + timedelta(hours=number)


def put_off(town: Town) -> None:
    """Let an event between two attempts wait for a month."""
    troubled = {"verdict": "received", "attempt": 1, "error": RAISED}
    parked(town).update(wake_at=in_hours(24 * 30), handled_at=None, **troubled)


RAISED = """Traceback (most recent call last):
  File "counting.py", line 1, in count
    raise ValueError("no")
ValueError: no
"""

Defect = Callable[[Town], object]

PLANTED: list[tuple[str, str, Defect]] = [
    ("bulk: bulk operation {bulk} says 1 done, of 0", "an item of a bulk operation has lost its verdict",
     lambda t: t.bulk.items.update(verdict="waiting")),
    # What was blind: the outbox, what commands cause, and what lies parked
    ("model: revision 2 of {live} issued BookCourier, which is not there", "a command is not in the outbox",
     without_a_command),
    ("is done, but was never carried out", "a command is ticked off without having been carried out",
     lambda t: t.live.commands.filter(type="BookCourier").update(attempt=0)),
    ("is skipped, but was never given up", "a command is skipped without an action",
     lambda t: t.live.commands.filter(type="BookCourier").update(status="skipped")),
    ("model: BookCourier of revision 2 of {live} is not what was issued", "a command is altered",
     lambda t: t.live.commands.filter(type="BookCourier").update(body={"parcel_id": "P-other", "note": ""})),
    ("was issued by no transition", "a command is issued twice", one_too_many),
    ("caused 1 events, but 0 are in the inbox", "the event of a command after the commit is dropped",
     lambda t: caused(t.finished, "BookCourier").delete()),
    ("caused 1 events, but 0 are in the inbox", "the event of a command inside the transaction is dropped",
     lambda t: caused(t.live, "CountScan").delete()),
    ("parked: event {scan} is parked, but Packing of {parked} takes ParcelPacked",
     "a parked event lies that the present step takes",
     lambda t: parked(t).update(type="ParcelPacked", body={"weight": 3})),
    ("parked: event {scan} is parked, but", "a parked event lies that a workflow waits for", forget_the_wait),
    # What each kind of process must show besides
    ("dense_history: {finished} is at revision", "a checkpoint of a finished process is gone",
     lambda t: t.finished.checkpoints.filter(revision=2).delete()),
    ("conservation: event", "an event is received and nothing will look at it",
     lambda t: parked(t).update(verdict="received", wake_at=None)),
    ("model: {live} is not where its history ends", "the data of a live process is altered",
     lambda t: process(t.live).update(data={**t.live.data, "place": "Osaka"})),
    ("progress: {failed} has failed, but no incident tells of it", "the incident of a failed process is gone",
     lambda t: Incident.objects.filter(instance=t.failed).delete()),
    ("progress: {paused} is paused, but paused at None", "a paused process does not know since when",
     lambda t: process(t.paused).update(paused_at=None)),
    ("joins: {journey}: the join at leave counts 1 arrived", "a join has lost a branch",
     lambda t: t.journey.step_runs.filter(node="leave").update(arrived=1)),
    ("maps: the map see of {journey}", "a map has lost an element",
     lambda t: t.journey.step_runs.filter(node="see", item=1).delete()),
    ("results: the result of ride of {journey}", "a result is altered",
     lambda t: t.journey.step_runs.filter(node="ride").update(result=4)),
    ("fences: step run", "a settled step will be run again",
     lambda t: t.journey.step_runs.filter(node="ride").update(wake_at=timezone.now() + timedelta(hours=1))),
    ("progress: called of {standstill} waits, but nothing will wake it",
     "a sub-process has ended and its parent was not told",
     lambda t: t.standstill.children.update(finished_at=timezone.now(), status="completed")),
    ("undoing: {taken_back} is undone, but not exactly what was done",
     "a finished step of a compensated process was not undone",
     lambda t: t.taken_back.step_runs.filter(node="book", kind=StepKind.UNDO).delete()),
    ("outbox: event {scan} has been due since", "due work is taken by nobody",
     lambda t: parked(t).update(wake_at=timezone.now() - timedelta(minutes=5))),
    ("references: step run", "a visit is counted under another definition",
     lambda t: visit(t.live).update(stored_definition=t.journey.definition_id)),
    ("references: event", "an event belongs to a process that is gone", lambda t: parked(t).update(process=uuid4())),
    ("audit: checkpoint 2 of {paused} has no audit row", "nobody has paused a process",
     lambda t: t.paused.checkpoints.filter(revision=2).update(cause=f"operator:{uuid4()}")),
    # Times
    ("deadlines: Packing of {parked} has no deadline 1 any more", "a deadline is removed",
     lambda t: visit(t.parked).update(wake_at=None)),
    ("deadlines: deadline 1 of Packing of {parked} is too late", "a deadline is later than its row says",
     lambda t: visit(t.parked).update(wake_at=in_hours(3))),
    ("deadlines: Packing of {paused} has no deadline 1 any more", "a deadline is removed while its process is paused",
     lambda t: visit(t.paused).update(wake_at=None, remaining=None)),
    ("deadlines: deadline 1 of Packing of {parked} has passed without an effect", "a deadline has passed for nothing",
     lambda t: visit(t.parked).update(deadlines_fired=1, wake_at=in_hours(2))),
    ("leases: event {scan} is held until", "an event is held for long by a worker that is not there",
     lambda t: parked(t).update(owner="nobody", wake_at=in_hours(48), handled_at=None)),
    ("retries: event {scan} is tried again at", "the pause between two attempts is too long", put_off),
    # What people are told
    ("statuses: {live} is completed, but has not ended", "a live process says that it has completed",
     lambda t: process(t.live).update(status="completed")),
    ("statuses: {live} is running, but its newest checkpoint says waiting", "a process has a status of its own",
     lambda t: process(t.live).update(status="running")),
    ("statuses: {failed} is waiting, but some work of it has failed", "a process with a failed command says it waits",
     lambda t: (process(t.failed).update(status="waiting"), t.failed.checkpoints.update(status="waiting"))),
    ("incidents: incident", "an incident is open about a command that is done",
     lambda t: Incident.objects.filter(instance=t.failed).update(event=None, command=t.live.commands.first())),
    ("incidents: incident", "an incident is open about an event that was taken",
     lambda t: Incident.objects.filter(instance=t.failed).update(command=None, event=t.live.events.first())),
    ("discarded: event {scan} is discarded, but no person has discarded it", "no person has discarded an event",
     lambda t: parked(t).update(verdict="discarded", wake_at=None)),
    ("model: event {scan} is ignored, but no step of {parked} has ignored ParcelScanned", "an event is ignored by none",
     lambda t: parked(t).update(verdict="ignored", wake_at=None)),
    ("ignored: event {scan} is ignored, but no step of {waiting} ignores Approved", "a workflow has ignored an event",
     ignore_the_wait),
    # What identifies
    ("keys: event", "a process has lost the key of its start",
     lambda t: process(t.live).update(correlation_key="P-other")),
    ("body_hashes: event {scan} does not match its checksum", "the checksum of an event is altered",
     lambda t: parked(t).update(body_hash="0" * 64)),
    # What stands in the middle of a history, and what counts
    ("model: checkpoint 2 of {live} does not match its checksum", "the data of an earlier checkpoint is altered",
     lambda t: t.live.checkpoints.filter(revision=2).update(data={"parcel_id": "P-other"})),
    ("dense_history: {live} is at revision 1", "a process stands before the end of its history",
     lambda t: process(t.live).update(revision=1)),
    ("progress: {live} waits in OnTheWay, which is not its step", "a process stands in another step",
     lambda t: process(t.live).update(step="Packing")),
    ("sub_processes: called of {standstill} runs", "a sub-process is no child of its parent",
     lambda t: t.standstill.children.update(parent=None)),
    ("conservation: {parked} counts 0 parked events", "the number of parked events is wrong",
     lambda t: process(t.parked).update(parked=0)),
    ("progress: {waiting} counts 5 open steps, but has 1", "the number of open steps is wrong",
     lambda t: process(t.waiting).update(open_steps=5)),
    ("caused 1 events, but 0 are in the inbox", "an event names another command as its cause",
     lambda t: caused(t.live, "CountScan").update(caused_by=t.finished.commands.first())),
    # What is settled
    ("moved but does not say since when", "an event does not say since when it is settled",
     lambda t: t.live.events.filter(verdict="moved").update(handled_at=None)),
    ("fences: event", "an event that has moved its process will be handled again",
     lambda t: t.live.events.filter(verdict="moved").update(wake_at=in_hours(1))),
    ("fences: command", "a command that is done will be carried out again",
     lambda t: t.live.commands.filter(type="BookCourier").update(wake_at=in_hours(1))),
    ("bulk: bulk operation {bulk} has ended, but does not say when", "a bulk operation does not say when it ended",
     lambda t: BulkOperation.objects.update(finished_at=None)),
    ("statuses: {parked} is escalated to level 2, but since None", "a process is escalated and does not say since when",
     lambda t: process(t.parked).update(escalation_level=2)),
]  # fmt: skip

OUT_OF_SIGHT = {
    "a simple event handler was never called": "engine.test_engine_outbox.test_an_event_handler_reacts_once_an_event",
    "an effect inside the transaction is gone, though its command is done":
        "engine.test_order_promise.test_a_step_before_its_listing_is_noticed",
    "an effect outside was repeated under another key":
        "engine.test_engine_outbox.test_each_attempt_has_the_same_idempotency_key",
    "an accepted event was never stored":
        "reliability.test_commit_ambiguity.test_a_sender_whose_commit_was_cut_off_resends",
}  # fmt: skip
"""Defects that leave no trace in the rows, each with the test that finds it."""


def found(town: Town, defect: Defect) -> list[str]:
    """Return what the invariants find of a defect, which is undone then."""
    with transaction.atomic():
        defect(town)
        lines = violations()
        transaction.set_rollback(True)
    return lines


def test_every_planted_defect_is_found_where_it_is(town: Town) -> None:
    places = {name: getattr(row, "pk", row) for name, row in vars(town).items()}
    missed = []
    for said, name, defect in PLANTED:
        lines = found(town, defect)
        if not any(said.format(**places) in line for line in lines):
            missed.append((name, said.format(**places), lines))

    assert missed == []
    assert violations() == []


def test_every_rule_finds_one_of_them() -> None:
    named = {said.partition(":")[0] for said, _, _ in PLANTED if ": " in said}

    assert len(PLANTED) >= 52
    elsewhere = {"outbox", "stale_ids"}  # test_outside_ids has the last one
    assert {check.__name__ for check in CHECKS} - named <= elsewhere


@pytest.mark.parametrize("defect", OUT_OF_SIGHT)
def test_what_rows_cannot_tell_is_found_by_a_test(defect: str) -> None:
    module, _, name = OUT_OF_SIGHT[defect].rpartition(".")

    assert callable(getattr(import_module(f"tests.{module}"), name))


LEGAL: list[tuple[str, Defect]] = [
    ("a worker has just died, and its lease goes on for a moment",
     lambda t: parked(t).update(owner="dead", wake_at=timezone.now() + timedelta(seconds=9), handled_at=None)),
    ("a deadline was extended by a person",
     lambda t: visit(t.parked).update(wake_at=in_hours(5), extended=timedelta(hours=4))),
    ("a deadline of which the rest is stored, of a paused process",
     lambda t: visit(t.paused).update(remaining=timedelta(minutes=30))),
    ("the checksums of all events of a type are of a release with other fields",
     lambda t: InboxEvent.objects.filter(type="ParcelScanned").update(body_hash="0" * 64)),
]  # fmt: skip


def test_what_may_be_is_no_finding(town: Town) -> None:
    told = {name: lines for name, change in LEGAL if (lines := found(town, change))}

    assert told == {}


def test_a_pause_that_its_error_may_have_asked_for_is_no_finding(town: Town) -> None:
    asked_for = RAISED.replace("ValueError: no", "orchestrator.exceptions.Retry: later")

    def plant(town: Town) -> None:
        put_off(town)
        parked(town).update(error=asked_for)

    assert not any(line.startswith("retries") for line in found(town, plant))


def test_an_event_that_is_about_to_be_offered_is_in_order(town: Town) -> None:
    taken = {"type": "ParcelPacked", "body": {"weight": 3}}
    offered = {"wake_at": timezone.now(), "handled_at": None}

    lines = found(town, lambda t: parked(t).update(**offered, **taken))

    assert [line for line in lines if not line.startswith("body_hashes")] == []
