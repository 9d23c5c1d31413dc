"""Delivering an event: one commit with the new step, the data, the commands, the events they caused and the verdict."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from uuid6 import uuid7

from orchestrator import Answer, CommandContext, send_event, start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.exceptions import InvalidMessage, UnknownDefinition, UnknownEventType
from orchestrator.models import (
    Checkpoint,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import run
from tests.apps.process_managers.desk import early, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    Courier,
    CourierBooked,
    DepotOpened,
    LabelTorn,
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
    ParcelWeighed,
)
from tests.apps.process_managers.processes import Shipping
from tests.services.cases import cases
from tests.services.doing import fresh

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

ORDERED = ParcelOrdered("P-1")


def stands(process: ProcessInstance) -> tuple[str, str, int]:
    return process.step, process.status, process.revision


# Starting


def test_a_starting_event_starts_a_process() -> None:
    receipt = start_process(Shipping, ORDERED, id="web-1", source="web")
    assert receipt.verdict == "received"
    run()

    process = ProcessInstance.objects.get()
    assert process.pk == receipt.process_id
    assert (process.name, process.correlation_key) == ("shipping", "P-1")
    assert stands(process) == ("Packing", "waiting", 1)
    nothing_yet = dict.fromkeys(("note", "place", "booking"), "")
    assert process.data == {"parcel_id": "P-1", "courier": "own", **nothing_yet}
    assert process.summary == "Parcel P-1"
    assert InboxEvent.objects.get().verdict == "started"


def test_the_caller_may_choose_the_process_id() -> None:
    chosen = uuid7()
    receipt = start_process(Shipping, ORDERED, process_id=chosen)
    run()

    assert receipt.process_id == ProcessInstance.objects.get().pk == chosen


def test_only_a_starting_event_starts_a_known_definition() -> None:
    with pytest.raises(UnknownDefinition, match="no definition flying"):
        start_process("flying", ORDERED)
    why = r"ParcelPacked does not start shipping; .*ParcelOrdered"
    with pytest.raises(InvalidMessage, match=why):
        start_process(Shipping, ParcelPacked(3))

    assert not InboxEvent.objects.exists()


def test_an_event_for_a_key_goes_to_the_live_process_of_that_key() -> None:
    parcel = place("P-1")
    found = [early("P-1", event) for event in (ORDERED, ParcelPacked(3))]

    assert [event.verdict for event in found] == ["parked", "moved"]
    assert {event.process_id for event in found} == {parcel.pk}
    assert ProcessInstance.objects.count() == 1


# Moving


def test_each_transition_leaves_a_checkpoint_and_each_visit_a_row() -> None:
    parcel = place()
    event = tell(parcel, ParcelPacked(3))
    assert stands(parcel) == ("OnTheWay", "waiting", 2)
    assert (event.verdict, event.revision, event.wake_at) == ("moved", 2, None)
    assert event.process_id == parcel.pk
    assert event.handled_at is not None

    rows = list(Checkpoint.objects.filter(instance=parcel).order_by("revision"))
    events = InboxEvent.objects.order_by("pk")
    assert [(r.revision, r.cause, r.edge, r.steps, r.status) for r in rows] == [
        (1, f"event:{events[0].pk}", "e0", ["Packing"], "waiting"),
        (2, f"event:{events[1].pk}", "e1", ["OnTheWay"], "waiting"),
    ]
    assert all(row.data["parcel_id"] == "P-1" for row in rows)

    runs = StepRun.objects.filter(instance=parcel).order_by("pk")
    assert [(run.node, run.status) for run in runs] == [
        ("Ordered", "done"),
        ("Packing", "done"),
        ("OnTheWay", "waiting"),
    ]
    assert runs[1].finished_at == runs[2].started_at
    assert runs[2].finished_at is None


def test_a_row_that_stays_changes_the_data_and_the_final_step_ends_it() -> None:
    parcel = underway()
    visits = StepRun.objects.filter(instance=parcel, finished_at=None)
    visit = visits.get()
    tell(parcel, ParcelScanned("P-1", "Nagoya"))
    assert stands(parcel) == ("OnTheWay", "waiting", 3)
    assert parcel.data["place"] == "Nagoya"
    assert visits.get() == visit

    tell(parcel, CourierBooked("B-7"))
    assert parcel.data["booking"] == "B-7"

    tell(parcel, ParcelDelivered("P-1"))
    assert (parcel.step, parcel.status) == ("Delivered", "completed")
    assert parcel.finished_at is not None
    assert not visits.exists()
    assert not StepRun.objects.filter(instance=parcel).exclude(wake_at=None).exists()


def test_a_guard_decides_by_the_stored_data() -> None:
    parcels = underway("P-1"), underway("P-2", Courier.PARTNER)
    rows = IssuedCommand.objects.order_by("revision")

    assert [[row.type for row in rows.filter(instance=one)] for one in parcels] == [
        ["PackParcel"],
        ["PackParcel", "BookCourier"],
    ]


def test_an_events_own_field_is_its_key_and_the_process_id_goes_before_it() -> None:
    parcels = [underway(key) for key in ("P-1", "P-2", "P-3")]
    tell(parcels[0], ParcelDelivered("P-2"))
    send_event(ParcelDelivered("P-3"), id="1")
    run()

    found = [fresh(process).status for process in parcels]
    assert found == ["completed", "waiting", "completed"]


UNEXPECTED = "colour: Unexpected keyword argument"


@cases(
    "name, data, error, said",
    ("ParcelEaten", {}, UnknownEventType, "knows the event type 'ParcelEaten'"),
    ("ParcelPacked", {}, InvalidMessage, "weight: Field required"),
    ("ParcelPacked", {"weight": "3"}, InvalidMessage, "weight: "),
    ("ParcelPacked", {"weight": 3, "colour": "red"}, InvalidMessage, UNEXPECTED),
    ("ParcelPacked", {"weight": float("nan")}, InvalidMessage, "weight: NaN"),
)
def test_an_event_by_name_that_does_not_fit_is_refused_and_nothing_is_stored(
    name: str, data: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        send_event(name, data, id="1")

    assert not InboxEvent.objects.exists()


@cases("process_id", "7", "not an id", "")
def test_a_process_id_is_a_uuid(process_id: str) -> None:
    with pytest.raises(InvalidMessage, match="must be a UUID"):
        send_event(ParcelPacked(3), id="1", process_id=process_id)


# Commands inside the transaction


def test_a_definition_is_stored_once_and_a_command_with_its_transition() -> None:
    parcel = place()

    command = IssuedCommand.objects.get()
    assert (command.type, command.revision) == ("PackParcel", 1)
    assert command.instance_id == parcel.pk
    assert command.body == {"parcel_id": "P-1", "note": ""}
    assert (command.delivery, command.status) == ("in_transaction", "done")
    assert Group.objects.filter(name="packed P-1").exists()

    row, graph = parcel.definition, Shipping.graph()
    assert (row.name, row.version, row.graph) == ("shipping", 1, graph.to_json())
    assert row.fingerprint == graph.fingerprint()
    assert place("P-2").definition == Definition.objects.get() == row


@cases(
    "answer, kept",
    ("in a large box", "in a large box"),
    ("x" * 300 + "\0", "x" * 200),
    ("a\0b\ud800", "a\ufffdb?"),
)
def test_handlers_say_how_it_went(answer: str, kept: str, handler: SetHandler) -> None:
    handler(PackParcel, lambda command: Answer(answer))
    place()

    assert IssuedCommand.objects.get().answer == kept


def test_a_handler_may_ask_for_the_context(handler: SetHandler) -> None:
    seen: list[CommandContext] = []
    handler(PackParcel, lambda command, context: seen.append(context))
    parcel, command = place(), IssuedCommand.objects.get()

    assert seen == [CommandContext(parcel.pk, command.pk, 1, "P-1")]


# Follow-up events


def test_an_event_that_a_handler_gives_meets_the_new_step(handler: SetHandler) -> None:
    handler(PackParcel, lambda command: ParcelPacked(3))
    parcel = place()

    assert stands(parcel) == ("OnTheWay", "waiting", 2)
    followed = InboxEvent.objects.get(type="ParcelPacked")
    assert (followed.verdict, followed.process_id) == ("moved", parcel.pk)
    assert followed.caused_by_id == IssuedCommand.objects.get(type="PackParcel").pk


def test_several_follow_ups_keep_their_order(handler: SetHandler) -> None:
    scans = [ParcelScanned("P-1", where) for where in ("Nagoya", "Osaka")]
    follow_ups = [ParcelPacked(3), *scans, ParcelDelivered("P-1")]
    handler(PackParcel, lambda command: follow_ups)
    parcel = place()

    assert stands(parcel) == ("Delivered", "completed", 5)
    assert parcel.data["place"] == "Osaka"


def test_a_follow_up_for_nobodys_process_finds_its_way(handler: SetHandler) -> None:
    handler(PackParcel, lambda command: DepotOpened("east"))
    place()

    event = InboxEvent.objects.get(type="DepotOpened")
    assert (event.verdict, event.process_id) == ("reacted", None)
    assert Group.objects.filter(name="depot east").exists()


@pytest.mark.parametrize("returned", ["text", 3, {"a": 1}, [PackParcel("P-1", "")]])
def test_a_handler_that_gives_more_fails(handler: SetHandler, returned: object) -> None:
    handler(PackParcel, lambda command: returned)
    start_process(Shipping, ORDERED)
    run()

    event = InboxEvent.objects.get()
    assert event.verdict == "received"
    assert "a handler returns events" in event.error
    assert not ProcessInstance.objects.exists()


# Dispositions


def test_what_is_ignored_or_rejected_moves_nothing_the_latter_is_told() -> None:
    parcel = place()
    event = tell(parcel, ParcelWeighed(3))
    assert (event.verdict, event.revision) == ("ignored", None)
    assert not Incident.objects.exists()

    event = tell(parcel, LabelTorn())
    incident = Incident.objects.open().get()
    assert (incident.kind, incident.step) == ("rejected_event", "Packing")
    assert incident.message == "LabelTorn is rejected in step Packing"
    assert (event.verdict, incident.event_id) == ("rejected", event.pk)
    assert stands(parcel) == ("Packing", "waiting", 1)


# Definitions


def test_nothing_is_done_twice_when_nothing_is_due() -> None:
    place()

    assert drain() == 0


def test_a_process_id_is_a_time_ordered_uuid() -> None:
    first, second = place("P-1"), place("P-2")

    assert first.pk < second.pk
    assert (type(first.pk), first.pk.version) == (UUID, 7)
    assert second.started_at - first.started_at < timedelta(minutes=1)
