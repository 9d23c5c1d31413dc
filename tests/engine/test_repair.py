"""Repair: staged edits of a process, applied in one commit or not at all. The invariants are asked after each test."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from orchestrator import Permanent
from orchestrator.engine.operations import (
    cancel,
    pause,
    plan_repair,
    repair,
    unpause,
)
from orchestrator.engine.operations.repairing.edits import MOST, EditKind
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
    UnknownDefinition,
)
from orchestrator.models import (
    Checkpoint,
    Definition,
    InboxEvent,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from orchestrator.testing import pass_time, run
from tests.apps.process_managers.desk import overdue, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    Courier,
    PackParcel,
    ParcelDelivered,
    ParcelPacked,
    ParcelScanned,
    RemindPacker,
)
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


def refuse(command: object) -> None:
    raise Permanent("no")


def data(**given: Any) -> dict[str, Any]:
    """Return an edit of a parcel's data."""
    value = {
        "parcel_id": "P-1",
        "courier": "own",
        "note": "",
        "place": "",
        "booking": "",
    }
    return {"edit": "data", "value": {**value, **given}}


def move(step: str) -> dict[str, Any]:
    return {"edit": "move", "target": step}


def event(kind: str, **body: Any) -> dict[str, Any]:
    return {"edit": "event", "target": kind, "value": body}


def again(parcel: ProcessInstance) -> ProcessInstance:
    parcel.refresh_from_db()
    return parcel


def mistakes(parcel: ProcessInstance, *edits: Any) -> dict[int, str]:
    """Return what is wrong with edits, by their places."""
    plan = plan_repair(parcel, list(edits))
    return {place: str(mistake) for place, mistake in plan.mistakes.items()}


# What it does


def test_s7_4_several_edits_are_one_commit_with_one_row_that_says_before_and_after() -> (
    None
):
    parcel = place()
    edits = [data(note="by hand"), move("OnTheWay")]

    action = repair(parcel.pk, edits, request=asked(reason="the event was lost"))

    again(parcel)
    assert (parcel.step, parcel.data["note"], parcel.status) == (
        "OnTheWay",
        "by hand",
        "waiting",
    )
    assert parcel.revision == action.before["revision"] + 1
    (checkpoint,) = Checkpoint.objects.filter(cause=f"operator:{action.key}")
    assert (checkpoint.steps, checkpoint.data) == (["OnTheWay"], parcel.data)
    assert (action.before["step"], action.before["data"]["note"]) == ("Packing", "")
    assert (action.after["step"], action.after["data"]) == ("OnTheWay", parcel.data)
    assert (action.after["edits"], action.reason) == (edits, "the event was lost")
    assert OperatorAction.objects.count() == 1


def test_s7_1_a_move_issues_no_command_and_arms_the_deadline_of_the_step() -> None:
    parcel = place()
    issued = IssuedCommand.objects.count()

    repair(parcel.pk, [move("OnTheWay")], request=asked())

    *_, left, entered = parcel.step_runs.order_by("pk")
    assert IssuedCommand.objects.count() == issued
    assert (left.status, left.wake_at) == ("done", None)
    assert entered.wake_at == entered.started_at + timedelta(hours=72)
    pass_time(hours=73)
    assert again(parcel).step == "Missing"


def test_s7_1_a_process_goes_on_from_the_step_to_which_it_was_moved_back() -> None:
    parcel = underway()

    repair(parcel.pk, [move("Packing")], request=asked())
    tell(parcel, ParcelPacked(4))
    tell(parcel, ParcelDelivered("P-1"))

    assert (parcel.step, parcel.status) == ("Delivered", "completed")


def test_s7_1_a_process_that_is_moved_to_its_end_has_completed() -> None:
    parcel = place()

    repair(parcel.pk, [move("Delivered")], request=asked())

    assert (again(parcel).status, parcel.step) == ("completed", "Delivered")
    assert parcel.finished_at is not None
    assert not parcel.step_runs.filter(finished_at=None).exists()


def test_s7_1_what_was_parked_is_taken_by_the_step_to_which_it_is_moved() -> None:
    parcel = place()
    tell(parcel, ParcelDelivered("P-1"))
    assert parcel.parked == 1

    repair(parcel.pk, [move("Missing")], request=asked())
    run()

    assert (again(parcel).status, parcel.parked) == ("completed", 0)


def test_s7_1_the_incident_of_a_deadline_is_resolved_when_its_step_is_left(
    handler: SetHandler,
) -> None:
    parcel = place()
    handler(RemindPacker, refuse)
    overdue(parcel)
    assert (parcel.status, parcel.incidents.open().count()) == ("failed", 1)

    repair(parcel.pk, [move("OnTheWay")], request=asked())

    assert again(parcel).status == "waiting"
    assert not parcel.incidents.open().exists()


def test_s7_1_the_same_of_one_that_stands_still(handler: SetHandler) -> None:
    parcel = place()
    handler(RemindPacker, refuse)
    overdue(parcel)
    pause(parcel.pk, request=asked())

    repair(parcel.pk, [move("OnTheWay")], request=asked())

    (entered,) = parcel.step_runs.filter(finished_at=None)
    assert again(parcel).status == "paused"
    assert (entered.wake_at, entered.remaining) == (None, timedelta(hours=72))
    unpause(parcel.pk, request=asked())
    assert again(parcel).status == "waiting"
    assert not parcel.incidents.open().exists()


def test_s7_1_an_event_is_added_and_handled_as_if_it_had_arrived() -> None:
    parcel = place(courier=Courier.PARTNER)

    action = repair(parcel.pk, [event("ParcelPacked", weight=3)], request=asked())
    run()

    row = InboxEvent.objects.get(source="repair")
    assert (row.event_id, row.verdict) == (f"{action.key}:0", "moved")
    assert (again(parcel).step, parcel.data["booking"]) == ("OnTheWay", "B-P-1")


def test_s7_1_a_command_that_failed_is_skipped_and_the_process_is_well_again(
    handler: SetHandler,
) -> None:
    handler(BookCourier, refuse, after_commit=True)
    parcel = underway(courier=Courier.PARTNER)
    command = parcel.commands.get(type="BookCourier")
    assert parcel.status == "failed"
    skipped = {"edit": "skip_command", "target": str(command.pk)}

    repair(
        parcel.pk,
        [skipped, data(courier="partner", booking="by phone")],
        request=asked(),
    )

    command.refresh_from_db()
    assert (command.status, again(parcel).status) == ("skipped", "waiting")
    assert parcel.data["booking"] == "by phone"
    assert not parcel.incidents.open().exists()


def test_s7_1_what_failed_is_tried_again_on_the_edited_data(
    handler: SetHandler,
) -> None:
    def read_place(command: CountScan) -> None:
        if command.place == "nowhere":
            raise Permanent("no such place")

    handler(CountScan, read_place)
    parcel = underway()
    failed = tell(parcel, ParcelScanned("P-1", "nowhere"))
    assert (parcel.status, failed.verdict) == ("failed", "failed")

    handler(CountScan, lambda command: None)
    repair(parcel.pk, [data(note="looked at"), {"edit": "retry"}], request=asked())
    run()

    failed.refresh_from_db()
    assert (failed.verdict, again(parcel).status) == ("moved", "waiting")
    assert (parcel.data["note"], parcel.data["place"]) == ("looked at", "nowhere")


# All or nothing


def test_s7_3_one_edit_that_cannot_be_made_leaves_everything_as_it_was() -> None:
    parcel = place()

    with pytest.raises(
        OperationRefused, match="move Nowhere cannot be made: the running"
    ):
        repair(parcel.pk, [data(note="x"), move("Nowhere")], request=asked())

    assert again(parcel).data["note"] == ""
    assert parcel.revision == 1
    assert OperatorAction.objects.get().result == "refused"


def test_s7_3_a_process_that_has_moved_meanwhile_is_left_alone_and_says_what_moved_it() -> (
    None
):
    parcel = place()
    seen = parcel.revision
    tell(parcel, ParcelPacked(3))

    with pytest.raises(StaleRevision, match=r"ParcelPacked arrived at .* revision 2"):
        repair(parcel.pk, [move("Missing")], request=asked(expected_revision=seen))

    assert again(parcel).step == "OnTheWay"


@pytest.mark.django_db(transaction=True)
def test_s7_3_of_two_who_press_at_once_one_repairs() -> None:
    parcel = place()
    seen = parcel.revision
    answers = together(
        partial(repair, parcel.pk, [move("OnTheWay")], request=asked(expected_revision=seen)),
        partial(repair, parcel.pk, [move("Missing")], request=asked(expected_revision=seen)),
    )  # fmt: skip
    (refused,) = raised(answers)

    assert isinstance(refused, StaleRevision)
    assert "operator did repair" in str(refused)
    assert again(parcel).revision == seen + 1


def test_s7_3_whoever_may_repairs_once_and_nothing_that_has_ended(viewer: User) -> None:
    parcel, press = place(), asked()
    with pytest.raises(PermissionMissing):
        repair(parcel.pk, [move("OnTheWay")], request=asked(actor=viewer))
    assert again(parcel).step == "Packing"

    first = repair(parcel.pk, [move("OnTheWay")], request=press)
    assert repair(parcel.pk, [move("OnTheWay")], request=press) == first
    assert again(parcel).revision == 2
    cancel(parcel.pk, request=asked())
    with pytest.raises(OperationRefused, match="The process has ended"):
        repair(parcel.pk, [move("Missing")], request=asked())


def test_s7_3_a_process_whose_code_is_gone_is_not_repaired() -> None:
    parcel = place()
    Definition.objects.update(version=99)
    try:
        with pytest.raises(OperationRefused, match="shipping"):
            repair(parcel.pk, [move("OnTheWay")], request=asked())
        with pytest.raises(UnknownDefinition):
            plan_repair(ProcessInstance.objects.get(), [move("OnTheWay")])
    finally:
        Definition.objects.update(version=1)


# What is wrong with an edit


MISTAKEN: list[tuple[dict[str, Any], str]] = [
    (move("Ordered"), "processes start there: none waits in it"),
    (move("Packing"), "it stands there now"),
    (move("Nowhere"), "the running code has no step Nowhere"),
    (data(courier="nobody"), "courier: Input should be 'own' or 'partner'"),
    (data(more=1), "more: Unexpected keyword argument"),
    (data(parcel_id="P-2"), "parcel_id: the process is found by it: it stays P-1"),
    (event("ParcelPacked", weight="3"), "weight: Input should be a valid integer"),
    (event("DepotOpened", depot="x"), "shipping takes no DepotOpened in any step"),
    (event("Nothing"), "shipping takes no Nothing in any step"),
    ({"edit": "redo", "target": "x"}, "Only a workflow has steps that run by themselves"),
    ({"edit": "skip", "target": "1", "value": 1}, "Only a workflow has steps that run by themselves"),
    ({"edit": "skip_command", "target": "x"}, "the process has no command x"),
]  # fmt: skip
"""Edits that cannot be made, and why."""


def test_s7_5_an_edit_that_cannot_be_made_says_why_and_where() -> None:
    parcel = place()
    done = parcel.commands.get(type="PackParcel")
    skipped = {"edit": "skip_command", "target": str(done.pk)}
    not_failed = "PackParcel is done: only what has failed can be skipped"

    found = [mistakes(parcel, edit) for edit, _ in (*MISTAKEN, (skipped, not_failed))]
    assert found == [{0: why} for _, why in (*MISTAKEN, (skipped, not_failed))]


def test_s7_5_an_event_is_refused_after_a_move_to_the_end() -> None:
    edits = [move("Delivered"), event("ParcelDelivered", parcel_id="P-1")]

    assert mistakes(place(), *edits) == {
        1: "the process would have ended: nothing takes it"
    }


def test_s7_5_whatever_is_no_list_of_edits_is_refused() -> None:
    parcel = place()
    bodies: list[Any] = [
        None,
        {},
        "data",
        [1],
        [{"edit": "drop"}],
        [{"edit": "move"}],
        [{"edit": "move", "target": 1}],
        [{"edit": "move", "target": "x" * 201}],
        [{"edit": "move", "target": "OnTheWay", "value": 1}],
        [{"edit": "data", "value": {"note": "\0"}}],
        [{"edit": "retry"}] * 2,
        [{"edit": "move", "target": "OnTheWay"}, {"edit": "move", "target": "Missing"}],
        [{"edit": "event", "target": "ParcelScanned", "value": {}}] * (MOST + 1),
        [{"edit": "redo", "target": "<script>alert(1)</script>"}],
        [],
    ]
    for body in bodies:
        with pytest.raises(OperationRefused):
            repair(parcel.pk, body, request=asked())

    assert again(parcel).revision == 1


# What would run


def test_s7_2_a_plan_says_what_would_be_and_changes_nothing() -> None:
    parcel = underway()
    edits = [
        data(place="Nagoya"),
        move("Missing"),
        event("ParcelScanned", parcel_id="P-1", place="Osaka"),
        event("ParcelScanned", parcel_id="P-1", place="Kobe"),
    ]

    plan = plan_repair(parcel, edits)

    assert (plan.stands, plan.leaves, plan.refusal) == (["Missing"], ["OnTheWay"], "")
    ((edited),) = plan.edited
    assert (edited.before["place"], edited.after["place"]) == ("", "Nagoya")
    # The first scan finds it again, the second is counted.
    assert [(one.name, one.again) for one in plan.effects] == [("CountScan", False)]
    assert again(parcel).revision == 2
    assert not OperatorAction.objects.exists()
    assert not InboxEvent.objects.filter(source="repair").exists()


def test_s7_2_a_command_that_was_carried_out_before_is_told_as_not_safe() -> None:
    parcel = underway()
    tell(parcel, ParcelScanned("P-1", "Osaka"))

    scan = event("ParcelScanned", parcel_id="P-1", place="Osaka")
    (effect,) = plan_repair(parcel, [scan]).unsafe

    assert (effect.name, effect.what) == ("CountScan", "command")


def test_s7_2_what_is_only_tried_again_keeps_its_idempotency_key_and_is_safe(
    handler: SetHandler,
) -> None:
    handler(BookCourier, refuse, after_commit=True)
    parcel = underway(courier=Courier.PARTNER)

    plan = plan_repair(parcel, [{"edit": "retry"}])

    assert [(one.name, one.again, one.safe) for one in plan.effects] == [
        ("BookCourier", True, True)
    ]


def test_s7_2_planning_runs_no_handler(handler: SetHandler) -> None:
    parcel = place()
    handler(PackParcel, refuse)

    plan_repair(parcel, [event("ParcelPacked", weight=1)])

    assert not Group.objects.filter(name__startswith="scan").exists()
    assert StepRun.objects.filter(finished_at=None).get().node == "Packing"


def test_s7_2_the_edits_are_carried_out_in_one_order_however_they_were_staged() -> None:
    edits = [
        event("ParcelDelivered", parcel_id="P-1"),
        move("Missing"),
        data(note="x"),
    ]

    plan = plan_repair(place(), edits)

    kinds = [edit.kind for edit in plan.edits]
    assert kinds == [EditKind.DATA, EditKind.MOVE, EditKind.EVENT]
    assert plan.refusal == ""
