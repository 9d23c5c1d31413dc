"""Repair: staged edits of a process, applied in one commit or not at all. The invariants are asked after each test."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User

from orchestrator.engine.operations import cancel, pause, plan_repair, repair, unpause
from orchestrator.engine.operations.repairing.edits import MOST, EditKind
from orchestrator.exceptions import PermissionMissing, StaleRevision, UnknownDefinition
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
from tests.apps.process_managers.failures import accept, refuse
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
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.doing import refused
from tests.services.operated import at_once, mistakes, operated, press

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

WELL = ("waiting", 0)


def data(**given: Any) -> dict[str, Any]:
    """Return an edit of a parcel's data."""
    empty = dict.fromkeys(("note", "place", "booking"), "")
    value = {"parcel_id": "P-1", "courier": "own", **empty, **given}
    return {"edit": "data", "value": value}


def move(step: str) -> dict[str, Any]:
    return {"edit": "move", "target": step}


def event(kind: str, **body: Any) -> dict[str, Any]:
    return {"edit": "event", "target": kind, "value": body}


def scan(place: str) -> dict[str, Any]:
    return event("ParcelScanned", parcel_id="P-1", place=place)


def repaired(parcel: ProcessInstance, *edits: Any, **request: Any) -> OperatorAction:
    """Repair a parcel, run nothing, and read the parcel anew."""
    action = repair(parcel.pk, list(edits), request=asked(**request))
    parcel.refresh_from_db()
    return action


def health(parcel: ProcessInstance) -> tuple[str, int]:
    """Return the status of a parcel, and how many incidents are open about it."""
    return parcel.status, parcel.incidents.open().count()


# What it does


def test_s7_4_several_edits_are_one_commit_with_a_row_of_before_and_after() -> None:
    parcel = place()
    edits = [data(note="by hand"), move("OnTheWay")]

    action = repaired(parcel, *edits, reason="the event was lost")

    after = {"step": "OnTheWay", "data": edits[0]["value"]}
    assert {"step": parcel.step, "data": parcel.data} == after
    assert parcel.status == "waiting"
    assert parcel.revision == action.before["revision"] + 1
    (checkpoint,) = Checkpoint.objects.filter(cause=f"operator:{action.key}")
    assert (checkpoint.steps, checkpoint.data) == (["OnTheWay"], parcel.data)
    assert (action.before["step"], action.before["data"]["note"]) == ("Packing", "")
    assert action.after.items() >= {**after, "edits": edits}.items()
    assert OperatorAction.objects.get().reason == "the event was lost"


def test_s7_1_a_move_issues_no_command_and_arms_the_deadline_of_the_step() -> None:
    parcel = place()
    issued = IssuedCommand.objects.count()

    repaired(parcel, move("OnTheWay"))

    *_, left, entered = parcel.step_runs.order_by("pk")
    assert IssuedCommand.objects.count() == issued
    assert (left.status, left.wake_at) == ("done", None)
    assert entered.wake_at == entered.started_at + timedelta(hours=72)
    pass_time(hours=73)
    assert ProcessInstance.objects.get().step == "Missing"


def test_s7_1_a_process_goes_on_from_the_step_to_which_it_was_moved_back() -> None:
    parcel = underway()

    repaired(parcel, move("Packing"))
    tell(parcel, ParcelPacked(4))
    tell(parcel, ParcelDelivered("P-1"))

    assert (parcel.step, parcel.status) == ("Delivered", "completed")


def test_s7_1_a_process_that_is_moved_to_its_end_has_completed() -> None:
    parcel = place()

    repaired(parcel, move("Delivered"))

    assert (parcel.status, parcel.step) == ("completed", "Delivered")
    assert parcel.finished_at is not None
    assert not parcel.step_runs.filter(finished_at=None).exists()


def test_s7_1_what_was_parked_is_taken_by_the_step_to_which_it_is_moved() -> None:
    parcel = place()
    tell(parcel, ParcelDelivered("P-1"))
    assert parcel.parked == 1

    operated(repair, parcel, [move("Missing")])

    assert (parcel.status, parcel.parked) == ("completed", 0)


@cases("paused", False, True)
def test_s7_1_the_incident_of_a_deadline_is_resolved_when_its_step_is_left(
    paused: bool, handler: SetHandler
) -> None:
    parcel = place()
    handler(RemindPacker, refuse)
    overdue(parcel)
    assert health(parcel) == ("failed", 1)
    if paused:
        pause(parcel.pk, request=asked())

    repaired(parcel, move("OnTheWay"))

    if paused:
        (entered,) = parcel.step_runs.filter(finished_at=None)
        assert parcel.status == "paused"
        assert (entered.wake_at, entered.remaining) == (None, timedelta(hours=72))
        operated(unpause, parcel)
    assert health(parcel) == WELL


def test_s7_1_an_event_is_added_and_handled_as_if_it_had_arrived() -> None:
    parcel = place(courier=Courier.PARTNER)

    action = repaired(parcel, event("ParcelPacked", weight=3))
    run()

    row = InboxEvent.objects.get(source="repair")
    assert (row.event_id, row.verdict) == (f"{action.key}:0", "moved")
    parcel.refresh_from_db()
    assert (parcel.step, parcel.data["booking"]) == ("OnTheWay", "B-P-1")


def test_s7_1_a_command_that_failed_is_skipped_and_the_process_is_well_again(
    handler: SetHandler,
) -> None:
    handler(BookCourier, refuse, after_commit=True)
    parcel = underway(courier=Courier.PARTNER)
    command = parcel.commands.get(type="BookCourier")
    assert parcel.status == "failed"
    skip = {"edit": "skip_command", "target": str(command.pk)}

    repaired(parcel, skip, data(courier="partner", booking="by phone"))

    command.refresh_from_db()
    assert (command.status, health(parcel)) == ("skipped", WELL)
    assert parcel.data["booking"] == "by phone"


def test_s7_1_what_failed_is_tried_again_on_edited_data(handler: SetHandler) -> None:
    handler(CountScan, refuse)
    parcel = underway()
    scanned = tell(parcel, ParcelScanned("P-1", "nowhere"))
    assert (parcel.status, scanned.verdict) == ("failed", "failed")

    handler(CountScan, accept)
    operated(repair, parcel, [data(note="looked at"), {"edit": "retry"}])

    scanned.refresh_from_db()
    assert (scanned.verdict, parcel.status) == ("moved", "waiting")
    assert (parcel.data["note"], parcel.data["place"]) == ("looked at", "nowhere")


# All or nothing


def test_s7_3_one_edit_that_cannot_be_made_leaves_everything_as_it_was() -> None:
    parcel = place()
    edits = [data(note="x"), move("Nowhere")]

    refused("move Nowhere cannot be made: the running", repair, parcel, edits)

    parcel.refresh_from_db()
    assert (parcel.data["note"], parcel.revision) == ("", 1)
    assert OperatorAction.objects.get().result == "refused"


def test_s7_3_a_process_that_has_moved_is_left_alone_and_says_what_moved_it() -> None:
    parcel = place()
    seen, late = parcel.revision, StaleRevision
    tell(parcel, ParcelPacked(3))

    moved, edits = r"ParcelPacked arrived at .* revision 2", [move("Missing")]
    refused(moved, repair, parcel, edits, error=late, expected_revision=seen)

    assert ProcessInstance.objects.get().step == "OnTheWay"


@pytest.mark.django_db(transaction=True)
def test_s7_3_of_two_who_press_at_once_one_repairs() -> None:
    parcel = place()
    seen = parcel.revision
    one = press(repair, parcel, [move("OnTheWay")], expected_revision=seen)
    other = press(repair, parcel, [move("Missing")], expected_revision=seen)
    (late,) = at_once(one, other)

    assert isinstance(late, StaleRevision)
    assert "operator did repair" in str(late)
    assert ProcessInstance.objects.get().revision == seen + 1


def test_s7_3_whoever_may_repairs_once_and_nothing_that_has_ended(viewer: User) -> None:
    parcel, press, edits = place(), asked(), [move("OnTheWay")]
    refused("", repair, parcel, edits, error=PermissionMissing, actor=viewer)
    assert ProcessInstance.objects.get().step == "Packing"

    first = repair(parcel.pk, edits, request=press)
    assert repair(parcel.pk, edits, request=press) == first
    assert ProcessInstance.objects.get().revision == 2
    cancel(parcel.pk, request=asked())
    refused("The process has ended", repair, parcel, [move("Missing")])


def test_s7_3_a_process_whose_code_is_gone_is_not_repaired() -> None:
    parcel = place()
    Definition.objects.update(version=99)
    try:
        refused("shipping", repair, parcel, [move("OnTheWay")])
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

    shown = [*MISTAKEN, (skipped, not_failed)]
    assert [mistakes(parcel, edit) for edit, _ in shown] == [{0: y} for _, y in shown]


def test_s7_5_an_event_is_refused_after_a_move_to_the_end() -> None:
    edits = [move("Delivered"), event("ParcelDelivered", parcel_id="P-1")]

    why = "the process would have ended: nothing takes it"
    assert mistakes(place(), *edits) == {1: why}


def test_s7_5_whatever_is_no_list_of_edits_is_refused() -> None:
    parcel = place()
    bodies: list[Any] = [
        None, {}, "data", [1], [],
        [{"edit": "drop"}],
        [{"edit": "move"}],
        [move(1)],  # type: ignore[arg-type]
        [move("x" * 201)],
        [{**move("OnTheWay"), "value": 1}],
        [{"edit": "data", "value": {"note": "\0"}}],
        [{"edit": "retry"}] * 2,
        [move("OnTheWay"), move("Missing")],
        [event("ParcelScanned")] * (MOST + 1),
        [{"edit": "redo", "target": "<script>alert(1)</script>"}],
    ]  # fmt: skip
    for body in bodies:
        refused("", repair, parcel, body)

    assert ProcessInstance.objects.get().revision == 1


# What would run


def test_s7_2_a_plan_says_what_would_be_and_changes_nothing() -> None:
    parcel = underway()
    edits = [data(place="Nagoya"), move("Missing"), scan("Osaka"), scan("Kobe")]

    plan = plan_repair(parcel, edits)

    assert (plan.stands, plan.leaves, plan.refusal) == (["Missing"], ["OnTheWay"], "")
    ((edited),) = plan.edited
    assert (edited.before["place"], edited.after["place"]) == ("", "Nagoya")
    # The first scan finds it again, the second is counted.
    assert [(one.name, one.again) for one in plan.effects] == [("CountScan", False)]
    assert ProcessInstance.objects.get().revision == 2
    assert not OperatorAction.objects.exists()
    assert not InboxEvent.objects.filter(source="repair").exists()


def test_s7_2_a_command_that_was_carried_out_before_is_told_as_not_safe() -> None:
    parcel = underway()
    tell(parcel, ParcelScanned("P-1", "Osaka"))

    (effect,) = plan_repair(parcel, [scan("Osaka")]).unsafe

    assert (effect.name, effect.what) == ("CountScan", "command")


def test_s7_2_what_is_only_tried_again_keeps_its_idempotency_key_and_is_safe(
    handler: SetHandler,
) -> None:
    handler(BookCourier, refuse, after_commit=True)
    parcel = underway(courier=Courier.PARTNER)

    plan = plan_repair(parcel, [{"edit": "retry"}])

    (effect,) = plan.effects
    assert (effect.name, effect.again, effect.safe) == ("BookCourier", True, True)


def test_s7_2_planning_runs_no_handler(handler: SetHandler) -> None:
    parcel = place()
    handler(PackParcel, refuse)

    plan_repair(parcel, [event("ParcelPacked", weight=1)])

    assert not Group.objects.filter(name__startswith="scan").exists()
    assert StepRun.objects.filter(finished_at=None).get().node == "Packing"


def test_s7_2_the_edits_are_carried_out_in_one_order_however_they_were_staged() -> None:
    edits = [event("ParcelDelivered", parcel_id="P-1"), move("Missing"), data(note="x")]

    plan = plan_repair(place(), edits)

    kinds = [edit.kind for edit in plan.edits]
    assert kinds == [EditKind.DATA, EditKind.MOVE, EditKind.EVENT]
    assert plan.refusal == ""
