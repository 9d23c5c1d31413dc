"""Delivering an event: one commit with the new step, the data, the commands, the events they caused and the verdict."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from uuid6 import uuid7

from orchestrator import Answer, CommandContext, send_event, start_process
from orchestrator.engine.drain import drain
from orchestrator.engine.invariants import CHECKS
from orchestrator.exceptions import (
    InvalidMessage,
    UnknownDefinition,
    UnknownEventType,
)
from orchestrator.models import (
    Checkpoint,
    Definition,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
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

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

ORDERED = ParcelOrdered("P-1")


# Starting


def test_a_starting_event_starts_a_process() -> None:
    receipt = start_process(Shipping, ORDERED, id="web-1", source="web")
    assert receipt.verdict == Verdict.RECEIVED
    run()

    process = ProcessInstance.objects.get()
    assert process.pk == receipt.process_id
    assert (process.name, process.correlation_key) == ("shipping", "P-1")
    assert (process.step, process.status, process.revision) == (
        "Packing",
        Status.WAITING,
        1,
    )
    assert process.data == {
        "parcel_id": "P-1",
        "courier": "own",
        "note": "",
        "place": "",
        "booking": "",
    }
    assert process.summary == "Parcel P-1"
    assert InboxEvent.objects.get().verdict == Verdict.STARTED


def test_the_caller_may_choose_the_process_id() -> None:
    chosen = uuid7()
    receipt = start_process(Shipping, ORDERED, process_id=chosen)
    run()

    assert receipt.process_id == chosen
    assert ProcessInstance.objects.get().pk == chosen


def test_only_a_starting_event_starts_a_known_definition() -> None:
    assert start_process("shipping", ORDERED).process_id is not None
    with pytest.raises(UnknownDefinition, match="no definition flying"):
        start_process("flying", ORDERED)
    with pytest.raises(
        InvalidMessage, match=r"ParcelPacked does not start shipping; .*ParcelOrdered"
    ):
        start_process(Shipping, ParcelPacked(3))

    assert InboxEvent.objects.count() == 1


def test_a_starting_event_without_an_address_starts_a_process_too() -> None:
    send_event(ORDERED, id="1")
    run()

    assert ProcessInstance.objects.get().correlation_key == "P-1"


def test_an_event_for_a_key_goes_to_the_live_process_of_that_key() -> None:
    parcel = place("P-1")
    again = early("P-1", ORDERED)

    assert ProcessInstance.objects.count() == 1
    assert (again.verdict, again.process_id) == (Verdict.PARKED, parcel.pk)

    event = early("P-1", ParcelPacked(3))

    assert (event.verdict, event.process_id) == (Verdict.MOVED, parcel.pk)


def test_a_key_may_be_used_again_once_its_process_has_ended() -> None:
    first = underway("P-1")
    tell(first, ParcelDelivered("P-1"))
    Group.objects.all().delete()
    send_event(ORDERED, id="again")
    run()

    assert ProcessInstance.objects.filter(correlation_key="P-1").count() == 2
    assert ProcessInstance.objects.live().get().step == "Packing"


# Moving


def test_an_event_moves_its_process_to_the_next_step() -> None:
    parcel = place()
    event = tell(parcel, ParcelPacked(3))

    assert (parcel.step, parcel.status, parcel.revision) == (
        "OnTheWay",
        Status.WAITING,
        2,
    )
    assert (event.verdict, event.revision, event.process_id) == (
        Verdict.MOVED,
        2,
        parcel.pk,
    )
    assert event.handled_at is not None
    assert event.wake_at is None


def test_each_transition_leaves_a_checkpoint_and_each_visit_of_a_step_is_a_row() -> (
    None
):
    parcel = underway()
    rows = list(Checkpoint.objects.filter(instance=parcel).order_by("revision"))

    events = InboxEvent.objects.order_by("pk")
    assert [(r.revision, r.cause, r.edge, r.steps) for r in rows] == [
        (1, f"event:{events[0].pk}", "e0", ["Packing"]),
        (2, f"event:{events[1].pk}", "e1", ["OnTheWay"]),
    ]
    assert all(row.status == Status.WAITING for row in rows)
    assert all(row.data["parcel_id"] == "P-1" for row in rows)

    runs = StepRun.objects.filter(instance=parcel).order_by("pk")
    assert [(run.node, run.status) for run in runs] == [
        ("Ordered", "done"),
        ("Packing", "done"),
        ("OnTheWay", "waiting"),
    ]
    assert runs[1].finished_at == runs[2].started_at
    assert runs[2].finished_at is None


def test_a_row_that_stays_changes_the_data_until_the_final_step_ends_the_process() -> (
    None
):
    parcel = underway()
    visit = StepRun.objects.get(instance=parcel, finished_at=None)
    tell(parcel, ParcelScanned("P-1", "Nagoya"))

    assert (parcel.step, parcel.data["place"], parcel.revision) == (
        "OnTheWay",
        "Nagoya",
        3,
    )
    assert StepRun.objects.get(instance=parcel, finished_at=None) == visit

    tell(parcel, CourierBooked("B-7"))

    assert parcel.data["booking"] == "B-7"

    tell(parcel, ParcelDelivered("P-1"))

    assert (parcel.step, parcel.status) == ("Delivered", Status.COMPLETED)
    assert parcel.finished_at is not None
    assert not StepRun.objects.filter(instance=parcel, finished_at=None).exists()
    assert not StepRun.objects.filter(instance=parcel).exclude(wake_at=None).exists()


def test_a_guard_decides_by_the_stored_data() -> None:
    own, partner = underway("P-1"), underway("P-2", Courier.PARTNER)

    def issued(parcel: ProcessInstance) -> list[str]:
        rows = IssuedCommand.objects.filter(instance=parcel).order_by("revision")
        return list(rows.values_list("type", flat=True))

    assert issued(own) == ["PackParcel"]
    assert issued(partner) == ["PackParcel", "BookCourier"]


def test_an_events_own_field_is_its_key_and_the_process_id_goes_before_it() -> None:
    first, second, third = underway("P-1"), underway("P-2"), underway("P-3")
    tell(first, ParcelDelivered("P-2"))
    send_event(ParcelDelivered("P-3"), id="1")
    run()

    for process in (second, third):
        process.refresh_from_db()
    found = [process.status for process in (first, second, third)]
    assert found == ["completed", "waiting", "completed"]


def test_an_event_by_name_is_read_strictly() -> None:
    parcel = place()
    send_event("ParcelPacked", {"weight": 3}, id="1", process_id=str(parcel.pk))
    run()

    parcel.refresh_from_db()
    assert parcel.step == "OnTheWay"


@pytest.mark.parametrize(
    ("name", "data", "error", "said"),
    [
        ("ParcelEaten", {}, UnknownEventType, "knows the event type 'ParcelEaten'"),
        ("ParcelPacked", {}, InvalidMessage, "weight: Field required"),
        ("ParcelPacked", {"weight": "3"}, InvalidMessage, "weight: "),
        (
            "ParcelPacked",
            {"weight": 3, "colour": "red"},
            InvalidMessage,
            "colour: Unexpected keyword argument",
        ),
        ("ParcelPacked", {"weight": float("nan")}, InvalidMessage, "weight: NaN"),
    ],
)
def test_an_event_that_does_not_fit_is_refused_and_nothing_is_stored(
    name: str, data: dict[str, object], error: type[Exception], said: str
) -> None:
    with pytest.raises(error) as refused:
        send_event(name, data, id="1")

    assert said in str(refused.value)
    assert not InboxEvent.objects.exists()


@pytest.mark.parametrize("process_id", ["7", "not an id", ""])
def test_a_process_id_is_a_uuid(process_id: str) -> None:
    with pytest.raises(InvalidMessage, match="must be a UUID"):
        send_event(ParcelPacked(3), id="1", process_id=process_id)


# Commands inside the transaction


def test_the_definition_is_stored_once_with_its_graph_and_a_command_with_its_transition() -> (
    None
):
    parcel = place()

    command = IssuedCommand.objects.get()
    assert (command.type, command.instance_id, command.revision) == (
        "PackParcel",
        parcel.pk,
        1,
    )
    assert command.body == {"parcel_id": "P-1", "note": ""}
    assert (command.delivery, command.status) == ("in_transaction", "done")
    assert Group.objects.filter(name="packed P-1").exists()

    row = Definition.objects.get(name="shipping")
    assert parcel.definition == row
    assert (row.version, row.fingerprint) == (1, Shipping.graph().fingerprint())
    assert row.graph == Shipping.graph().to_json()

    other = place("P-2")

    assert Definition.objects.count() == 1
    assert parcel.definition_id == other.definition_id


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        ("in a large box", "in a large box"),
        ("x" * 300 + "\0", "x" * 200),
        ("a\0b\ud800", "a\ufffdb?"),
    ],
    ids=["text", "long", "bad"],
)
def test_a_handler_may_say_how_it_went(
    answer: str, kept: str, handler: SetHandler
) -> None:
    handler(PackParcel, lambda command: Answer(answer))
    place()

    assert IssuedCommand.objects.get().answer == kept


def test_a_handler_may_ask_for_the_context(handler: SetHandler) -> None:
    seen: list[CommandContext] = []
    handler(PackParcel, lambda command, context: seen.append(context))
    parcel = place()

    [context] = seen
    assert context == CommandContext(
        parcel.pk, IssuedCommand.objects.get().pk, 1, "P-1"
    )


# Follow-up events


def test_an_event_that_a_handler_returns_meets_the_new_step(
    handler: SetHandler,
) -> None:
    handler(PackParcel, lambda command: ParcelPacked(3))
    parcel = place()

    assert (parcel.step, parcel.revision) == ("OnTheWay", 2)
    followed = InboxEvent.objects.get(type="ParcelPacked")
    assert followed.verdict == Verdict.MOVED
    assert followed.caused_by_id == IssuedCommand.objects.get(type="PackParcel").pk
    assert followed.process_id == parcel.pk


def test_several_follow_ups_keep_their_order(handler: SetHandler) -> None:
    handler(
        PackParcel,
        lambda command: [
            ParcelPacked(3),
            ParcelScanned("P-1", "Nagoya"),
            ParcelScanned("P-1", "Osaka"),
            ParcelDelivered("P-1"),
        ],
    )
    parcel = place()

    assert (parcel.status, parcel.data["place"]) == (Status.COMPLETED, "Osaka")
    assert parcel.revision == 5


def test_a_follow_up_that_is_not_for_its_own_process_finds_its_way(
    handler: SetHandler,
) -> None:
    handler(PackParcel, lambda command: DepotOpened("east"))
    place()

    event = InboxEvent.objects.get(type="DepotOpened")
    assert (event.verdict, event.process_id) == (Verdict.REACTED, None)
    assert Group.objects.filter(name="depot east").exists()


@pytest.mark.parametrize("returned", ["text", 3, {"a": 1}, [PackParcel("P-1", "")]])
def test_a_handler_that_returns_something_else_fails(
    handler: SetHandler, returned: object
) -> None:
    handler(PackParcel, lambda command: returned)
    start_process(Shipping, ORDERED)
    run()

    event = InboxEvent.objects.get()
    assert event.verdict == Verdict.RECEIVED
    assert "a handler returns events" in event.error
    assert not ProcessInstance.objects.exists()


# Dispositions


def test_what_is_ignored_or_rejected_moves_nothing_and_the_latter_is_an_incident() -> (
    None
):
    parcel = place()
    event = tell(parcel, ParcelWeighed(3))

    assert (event.verdict, event.revision) == (Verdict.IGNORED, None)
    assert (parcel.step, parcel.revision) == ("Packing", 1)
    assert not Incident.objects.exists()

    event = tell(parcel, LabelTorn())

    assert event.verdict == Verdict.REJECTED
    incident = Incident.objects.open().get()
    assert (incident.kind, incident.event_id, incident.step) == (
        "rejected_event",
        event.pk,
        "Packing",
    )
    assert incident.message == "LabelTorn is rejected in step Packing"
    assert (parcel.step, parcel.revision) == ("Packing", 1)


# Definitions


def test_nothing_is_done_twice_when_nothing_is_due() -> None:
    place()

    assert drain() == 0


def test_the_invariants_hold_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    underway()
    call_command("check_invariants")

    said = f"{len(CHECKS)} invariants, 0 violations\n"
    assert capsys.readouterr().out == said


def test_events_are_handled_in_the_order_of_their_arrival() -> None:
    parcel = underway()
    for number, place_ in enumerate(["Nagoya", "Osaka", "Kobe"]):
        event = ParcelScanned("P-1", place_)
        send_event(event, id=f"scan {number}", process_id=parcel.pk)
    run()

    places = Checkpoint.objects.filter(instance=parcel).order_by("revision")
    assert [row.data["place"] for row in places] == ["", "", "Nagoya", "Osaka", "Kobe"]


def test_a_process_id_is_a_time_ordered_uuid() -> None:
    first, second = place("P-1"), place("P-2")

    assert first.pk < second.pk
    assert isinstance(first.pk, UUID)
    assert first.pk.version == 7
    assert second.started_at - first.started_at < timedelta(minutes=1)
