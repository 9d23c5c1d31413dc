"""What operators do: allowed, on the page they saw, once however often they press, with a reason, in the audit."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import AnonymousUser, User
from uuid6 import uuid7

from orchestrator import Permanent, send_event, start_process
from orchestrator.definition import Command
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import discard, escalate, redeliver, refusals, retry
from orchestrator.engine.sql.tables import events
from orchestrator.exceptions import PermissionMissing, StaleRevision
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
)
from orchestrator.testing import pass_time
from tests.apps.process_managers.desk import place, tell, underway, unknown
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    Courier,
    LabelTorn,
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
    RemindPacker,
)
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked
from tests.services.doing import Operation, did, fresh, raising, refused, taking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

PATIENCE = timedelta(seconds=61)
ADDRESS = "192.0.2.7"
NO, HUNG_UP = Permanent("no"), ConnectionError("no line")
SCANNED, DELIVERED = ParcelScanned("P-1", "Nagoya"), ParcelDelivered("P-1")


def trouble() -> int:
    return Incident.objects.open().count()


@pytest.fixture
def failed(handler: SetHandler) -> ProcessInstance:
    """Return a process whose booking has failed for good; a second attempt would work."""
    handler(BookCourier, raising(NO), after_commit=True)
    parcel = fresh(underway("P-1", Courier.PARTNER))
    assert parcel.status == "failed"
    handler(BookCourier, taking, after_commit=True)
    return parcel


# Retry


def test_retry_of_a_command_is_a_transition_of_its_own(failed: ProcessInstance) -> None:
    before = failed.revision
    action = did(retry, failed)
    command = IssuedCommand.objects.get(type="BookCourier")
    assert (command.status, command.attempt) == ("ready", 0)
    last = Checkpoint.objects.latest("revision")
    assert last.cause == f"operator:{action.key}"
    assert (last.revision, last.status) == (before + 1, "waiting")
    drain()

    assert (fresh(command).status, fresh(failed).status) == ("done", "waiting")
    assert trouble() == 0


def booking() -> ProcessInstance:
    return underway("P-1", Courier.PARTNER)


def scanning() -> ProcessInstance:
    parcel = underway()
    tell(parcel, SCANNED)
    return parcel


def reminding() -> ProcessInstance:
    parcel = place()
    pass_time(minutes=61)
    return parcel


@pytest.mark.parametrize(
    ("command", "fail", "error"),
    [
        (BookCourier, booking, HUNG_UP),
        (CountScan, scanning, HUNG_UP),
        (CountScan, scanning, NO),
        (RemindPacker, reminding, NO),
    ],
    ids=["command", "event", "event for good", "deadline for good"],
)
def test_retry_has_what_failed_tried_again_and_does_not_wait_for_its_backoff(
    command: type[Command],
    fail: Callable[[], ProcessInstance],
    error: Exception,
    handler: SetHandler,
) -> None:
    after_commit = command is BookCourier
    handler(command, raising(error), after_commit=after_commit)
    parcel = fresh(fail())
    assert parcel.status == ("failed" if error is NO else "retrying")
    handler(command, taking, after_commit=after_commit)
    did(retry, parcel)
    drain()

    assert IssuedCommand.objects.get(type=command.__name__).status == "done"
    assert fresh(parcel).status == "waiting"
    assert parcel.step_runs.get(finished_at=None).error == ""
    assert trouble() == 0


def test_failures_are_told_once(failed: ProcessInstance, handler: SetHandler) -> None:
    handler(BookCourier, raising(NO), after_commit=True)
    did(retry, failed)
    drain()

    assert (fresh(failed).status, trouble()) == ("failed", 1)


# Escalate


def test_escalate_raises_the_level_and_nothing_else() -> None:
    parcel = place()
    for _ in range(2):
        did(escalate, parcel)

    assert (parcel.escalation_level, parcel.step, parcel.revision) == (2, "Packing", 3)
    assert parcel.escalated_at is not None
    assert set(ProcessInstance.objects.escalated()) == {parcel}


def test_what_cannot_be_operated_on_is_refused() -> None:
    parcel = underway()
    refused("Nothing has failed", retry, parcel)
    tell(parcel, DELIVERED)
    refused("The process has ended", escalate, parcel)
    refused("there is no process", escalate, unknown())
    for operation in (redeliver, discard):
        refused("there is no event 12345", operation, 12345)


# Redeliver and discard


@pytest.fixture
def unexpected() -> InboxEvent:
    """Return an event that its process does not expect, of which people were told."""
    event = tell(place(), DELIVERED)
    pass_time(PATIENCE)
    assert Incident.objects.open().get().event_id == event.pk
    return fresh(event)


def test_a_redelivered_event_is_offered_again_and_kept(unexpected: InboxEvent) -> None:
    parcel = ProcessInstance.objects.get()
    did(redeliver, unexpected)
    drain()
    assert (fresh(unexpected).verdict, trouble()) == ("parked", 0)
    tell(parcel, ParcelPacked(3))

    assert (fresh(unexpected).verdict, fresh(parcel).status) == ("moved", "completed")
    assert trouble() == 0


def test_a_discarded_event_is_kept_and_offered_no_more(unexpected: InboxEvent) -> None:
    parcel = ProcessInstance.objects.get()
    did(discard, unexpected)
    tell(parcel, ParcelPacked(3))

    assert (fresh(unexpected).verdict, unexpected.wake_at) == ("discarded", None)
    assert (parcel.step, trouble()) == ("OnTheWay", 0)


def test_parked_and_rejected_events_are_discarded_and_settled_ones_left_alone() -> None:
    parcel = place()
    parked, rejected = tell(parcel, DELIVERED), tell(parcel, LabelTorn())
    for event in (parked, rejected):
        did(discard, event)
    pass_time(PATIENCE)
    assert (fresh(parked).verdict, trouble()) == ("discarded", 0)

    moved = tell(parcel, ParcelPacked(3))
    for operation in (redeliver, discard):
        refused("settled meanwhile: moved", operation, moved, error=StaleRevision)


def test_a_discarded_failed_event_leaves_its_process_well(handler: SetHandler) -> None:
    handler(CountScan, raising(NO))
    parcel = underway()
    did(discard, tell(parcel, SCANNED))

    assert (fresh(parcel).status, parcel.data["place"]) == ("waiting", "")


def test_a_failed_start_can_be_redelivered(handler: SetHandler) -> None:
    handler(PackParcel, raising(NO))
    receipt = start_process("shipping", ParcelOrdered("P-1"))
    drain()
    handler(PackParcel, taking)
    did(redeliver, InboxEvent.objects.get())
    drain()

    assert ProcessInstance.objects.get().pk == receipt.process_id
    assert trouble() == 0


@pytest.mark.parametrize("operation", [redeliver, discard])
def test_an_event_that_finds_its_process_just_then_is_left_alone(
    operation: Operation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process is locked before the event, and was not known yet."""
    event = send_event(ParcelPacked(3), id="1", process_id=uuid7()).number
    InboxEvent.objects.filter(pk=event).update(process=None)
    drain()
    parcel = place()
    lock = events.lock

    def found_meanwhile(number: int) -> Any:
        InboxEvent.objects.filter(pk=number).update(process=parcel)
        return lock(number)

    with monkeypatch.context() as patched:
        patched.setattr(events, "lock", found_meanwhile)
        why = "has found its process just now"
        refused(why, operation, event, error=StaleRevision)

    assert not OperatorAction.objects.filter(after__has_key="verdict").exists()


# Who may


def test_who_may_not_is_refused_and_nothing_is_done_but_a_row_written(
    failed: ProcessInstance, viewer: User, stranger: User
) -> None:
    event = tell(place("P-2"), LabelTorn())
    revision, no = failed.revision, "Your account may not do this."
    wanted = ((retry, failed), (escalate, failed), (redeliver, event), (discard, event))
    for actor in (viewer, stranger, AnonymousUser()):
        for operation, target in wanted:
            refused(no, operation, target, error=PermissionMissing, actor=actor)

    assert fresh(failed).revision == revision
    rows = OperatorAction.objects.order_by("pk")
    found = [(row.result, row.actor) for row in rows]
    thrice = [viewer, stranger, None]
    assert found == [("refused", who) for who in thrice for _ in wanted]
    assert (rows[0].instance_id, rows[0].detail) == (failed.pk, no)


def test_what_is_possible_is_said_with_its_reason(
    failed: ProcessInstance, operator: User, viewer: User
) -> None:
    well = place("P-2")
    said = refusals([failed, well], operator)
    retries = [said[one.pk]["retry"] for one in (failed, well)]
    assert retries == ["", "Nothing has failed"]
    assert said[failed.pk]["escalate"] == said[well.pk]["escalate"] == ""
    nothing = refusals([failed], viewer)[failed.pk]
    assert set(nothing.values()) == {"Your account may not do this."}


# The page they saw


def test_a_page_that_is_not_up_to_date_is_refused_with_what_changed() -> None:
    parcel = place()
    tell(parcel, ParcelPacked(3))

    changed = "The process has changed since the page was loaded: ParcelPacked"
    why = f"{changed}.*now at revision 2, the page showed 1"
    refused(why, escalate, parcel, error=StaleRevision, expected_revision=1)


def test_a_seen_revision_counts_and_the_faster_is_named(administrator: User) -> None:
    parcel = place()
    faster = did(escalate, parcel, actor=administrator, expected_revision=1)
    assert faster.result == "done"

    why = "administrator did escalate at"
    refused(why, escalate, parcel, error=StaleRevision, expected_revision=1)


# Once


def test_the_same_press_again_gives_the_first_answer(failed: ProcessInstance) -> None:
    press = asked(expected_revision=failed.revision)
    first = retry(failed.pk, request=press)
    drain()

    assert retry(failed.pk, request=press).pk == first.pk
    assert Checkpoint.objects.filter(cause__startswith="operator:").count() == 1


def test_a_refused_press_again_gets_the_first_refusal() -> None:
    parcel, key = place(), uuid4()
    for _ in range(2):
        refused("Nothing has failed", retry, parcel, key=key)

    assert OperatorAction.objects.count() == 1


def test_a_key_stands_for_one_action() -> None:
    first, second, key = place("P-1"), place("P-2"), uuid4()
    did(escalate, first, key=key)

    for operation, target in ((escalate, second), (retry, first)):
        refused("this key was used for another action", operation, target, key=key)


@pytest.mark.django_db(transaction=True)
def test_twenty_presses_at_one_moment_have_one_effect(failed: ProcessInstance) -> None:
    parcel, event = place("P-2"), tell(place("P-3"), DELIVERED)
    for operation, target, seen in (
        (escalate, parcel, 1),
        (escalate, parcel, None),
        (retry, failed, failed.revision),
        (discard, event, None),
    ):
        request = asked(expected_revision=seen)
        answers = together(*[partial(operation, target.pk, request=request)] * 20)
        assert raised(answers) == []
        assert len({answer.pk for answer in answers}) == 1

    assert (fresh(parcel).escalation_level, parcel.revision) == (2, 3)
    assert OperatorAction.objects.count() == 4


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_only_one_wins(operator: User, administrator: User) -> None:
    both = (operator, administrator)
    requests = [asked(actor=actor, expected_revision=1) for actor in both]
    escalated = partial(escalate, place().pk)
    answers = together(*[partial(escalated, request=request) for request in requests])

    [error] = raised(answers)
    assert isinstance(error, StaleRevision)
    assert "did escalate at" in str(error)
    results = OperatorAction.objects.values_list("result", flat=True)
    assert sorted(results) == ["done", "refused"]


# The audit


def test_each_action_leaves_one_row(failed: ProcessInstance, operator: User) -> None:
    seen = {"expected_revision": failed.revision}
    given = {"reason": "the line is back", "key": uuid4(), "address": ADDRESS, **seen}
    action = did(retry, failed, **given)

    row = OperatorAction.objects.get()
    assert row == action
    by = {"action": "retry", "actor": operator, "actor_name": "operator"}
    told = {"instance_id": failed.pk, **by, **given}
    assert {name: getattr(row, name) for name in told} == told
    assert (row.before["status"], row.after["status"]) == ("failed", "waiting")
    assert row.after["revision"] == failed.revision


def test_a_reason_is_given_and_made_storable() -> None:
    parcel = place()
    for reason in ("", "  \n", "x" * 2001):
        why = "say why, in at most 2000 characters"
        refused(why, escalate, parcel, reason=reason)
    assert fresh(parcel).escalation_level == 0

    assert did(escalate, parcel, reason="a\0b\ud800").reason == "a\ufffdb?"


def test_an_action_is_undone_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    parcel = place()

    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the database went away")

    monkeypatch.setattr(OperatorAction, "save", fail)
    refused("the database went away", escalate, parcel, error=RuntimeError)

    assert (fresh(parcel).escalation_level, parcel.revision) == (0, 1)
