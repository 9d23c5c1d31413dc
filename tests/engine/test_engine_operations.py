"""What operators do: allowed, on the page they saw, once however often they press, with a reason, in the audit."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, User
from uuid6 import uuid7

from orchestrator import Permanent, send_event, start_process
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import (
    ActionRequest,
    discard,
    escalate,
    redeliver,
    refusals,
    retry,
)
from orchestrator.engine.storage.tables import events
from orchestrator.exceptions import (
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
from orchestrator.models import (
    Checkpoint,
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
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

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

Operation = Callable[..., OperatorAction]
PATIENCE = timedelta(seconds=61)
ADDRESS = "192.0.2.7"


def possible(process: ProcessInstance, user: Any) -> dict[str, str]:
    """Return for each action why it cannot be done now."""
    return refusals([process], user)[process.pk]


def pressed(*, seen: int | None = None, **given: Any) -> ActionRequest:
    return asked(expected_revision=seen, address=ADDRESS, **given)


def refuse(command: object) -> None:
    raise Permanent("no")


@pytest.fixture
def failed(handler: SetHandler) -> ProcessInstance:
    """Return a process whose booking has failed for good; a second attempt would work."""
    handler(BookCourier, refuse, after_commit=True)
    parcel = underway("P-1", Courier.PARTNER)
    parcel.refresh_from_db()
    assert parcel.status == Status.FAILED
    handler(BookCourier, lambda command: None, after_commit=True)
    return parcel


# Retry


def test_retry_has_a_failed_command_tried_again_by_a_transition_of_its_own(
    failed: ProcessInstance,
) -> None:
    action = retry(failed.pk, request=pressed())
    command = IssuedCommand.objects.get(type="BookCourier")
    assert (command.status, command.attempt) == (CommandStatus.READY, 0)
    checkpoint = Checkpoint.objects.latest("revision")
    assert checkpoint.cause == f"operator:{action.key}"
    assert checkpoint.revision == failed.revision + 1
    assert checkpoint.status == Status.WAITING
    drain()

    command.refresh_from_db()
    failed.refresh_from_db()
    assert command.status == CommandStatus.DONE
    assert failed.status == Status.WAITING
    assert not Incident.objects.open().exists()


def test_retry_does_not_wait_for_the_backoff_of_a_command(handler: SetHandler) -> None:
    def fail(command: object) -> None:
        raise ConnectionError("no line")

    handler(BookCourier, fail, after_commit=True)
    parcel = underway("P-1", Courier.PARTNER)
    handler(BookCourier, lambda command: None, after_commit=True)
    retry(parcel.pk, request=pressed())
    drain()

    assert IssuedCommand.objects.get(type="BookCourier").status == CommandStatus.DONE


@pytest.mark.parametrize("error", [ConnectionError("no line"), Permanent("no")])
def test_retry_has_an_event_tried_again_and_does_not_wait_for_its_backoff(
    error: Exception, handler: SetHandler
) -> None:
    def fail(command: object) -> None:
        raise error

    handler(CountScan, fail)
    parcel = underway()
    event = tell(parcel, ParcelScanned("P-1", "Nagoya"))
    assert parcel.status in (Status.RETRYING, Status.FAILED)
    InboxEvent.objects.filter(pk=event.pk, wake_at__isnull=False).update(
        wake_at=event.received_at + timedelta(hours=1)
    )
    handler(CountScan, lambda command: None)
    retry(parcel.pk, request=pressed())
    drain()

    event.refresh_from_db()
    parcel.refresh_from_db()
    assert (event.verdict, parcel.data["place"]) == (Verdict.MOVED, "Nagoya")
    assert parcel.status == Status.WAITING
    assert not Incident.objects.open().exists()


def test_retry_has_a_failed_deadline_tried_again(handler: SetHandler) -> None:
    handler(RemindPacker, refuse)
    parcel = place()
    pass_time(timedelta(minutes=61))
    handler(RemindPacker, lambda command: None)
    retry(parcel.pk, request=pressed())
    drain()

    parcel.refresh_from_db()
    assert parcel.status == Status.WAITING
    run = StepRun.objects.get(instance=parcel, finished_at=None)
    assert (run.deadlines_fired, run.error) == (1, "")
    assert not Incident.objects.open().exists()


def test_what_fails_again_after_a_retry_is_one_open_incident(
    failed: ProcessInstance, handler: SetHandler
) -> None:
    handler(BookCourier, refuse, after_commit=True)
    retry(failed.pk, request=pressed())
    drain()

    failed.refresh_from_db()
    assert failed.status == Status.FAILED
    assert Incident.objects.open().count() == 1


# Escalate


def test_escalate_raises_the_level_and_nothing_else() -> None:
    parcel = place()
    escalate(parcel.pk, request=pressed())
    escalate(parcel.pk, request=pressed())

    parcel.refresh_from_db()
    assert (parcel.escalation_level, parcel.step, parcel.revision) == (2, "Packing", 3)
    assert parcel.escalated_at is not None
    assert set(ProcessInstance.objects.escalated()) == {parcel}


def test_what_cannot_be_operated_on_is_refused() -> None:
    parcel = underway()
    with pytest.raises(OperationRefused, match="Nothing has failed"):
        retry(parcel.pk, request=pressed())
    tell(parcel, ParcelDelivered("P-1"))
    with pytest.raises(OperationRefused, match="The process has ended"):
        escalate(parcel.pk, request=pressed())
    with pytest.raises(OperationRefused, match="there is no process"):
        escalate(unknown().pk, request=pressed())
    for operation in (redeliver, discard):
        with pytest.raises(OperationRefused, match="there is no event 12345"):
            operation(12345, request=pressed())


# Redeliver and discard


@pytest.fixture
def unexpected() -> InboxEvent:
    """Return an event that its process does not expect, of which people were told."""
    event = tell(place(), ParcelDelivered("P-1"))
    pass_time(PATIENCE)
    event.refresh_from_db()
    assert Incident.objects.open().get().event_id == event.pk
    return event


def test_a_redelivered_event_is_offered_again(unexpected: InboxEvent) -> None:
    parcel = ProcessInstance.objects.get()
    redeliver(unexpected.pk, request=pressed())
    tell(parcel, ParcelPacked(3))

    unexpected.refresh_from_db()
    parcel.refresh_from_db()
    assert unexpected.verdict == Verdict.MOVED
    assert parcel.status == Status.COMPLETED
    assert not Incident.objects.open().exists()


def test_a_redelivered_event_has_fresh_patience(unexpected: InboxEvent) -> None:
    redeliver(unexpected.pk, request=pressed())
    drain()

    unexpected.refresh_from_db()
    assert unexpected.verdict == Verdict.PARKED
    assert not Incident.objects.open().exists()


def test_a_discarded_event_is_kept_and_offered_no_more(unexpected: InboxEvent) -> None:
    discard(unexpected.pk, request=pressed())
    tell(ProcessInstance.objects.get(), ParcelPacked(3))

    unexpected.refresh_from_db()
    assert (unexpected.verdict, unexpected.wake_at) == (Verdict.DISCARDED, None)
    assert not Incident.objects.open().exists()
    assert ProcessInstance.objects.get().step == "OnTheWay"


def test_parked_and_rejected_events_can_be_discarded_and_settled_ones_are_left_alone() -> (
    None
):
    parcel = place()
    parked, rejected = tell(parcel, ParcelDelivered("P-1")), tell(parcel, LabelTorn())
    for event in (parked, rejected):
        discard(event.pk, request=pressed())
    pass_time(PATIENCE)
    parked.refresh_from_db()
    assert parked.verdict == Verdict.DISCARDED
    assert not Incident.objects.open().exists()

    moved = tell(parcel, ParcelPacked(3))
    for operation in (redeliver, discard):
        with pytest.raises(StaleRevision, match="settled meanwhile: moved"):
            operation(moved.pk, request=pressed())


def test_a_failed_event_can_be_discarded_and_its_process_is_well(
    handler: SetHandler,
) -> None:
    handler(CountScan, refuse)
    parcel = underway()
    event = tell(parcel, ParcelScanned("P-1", "Nagoya"))
    discard(event.pk, request=pressed())

    parcel.refresh_from_db()
    assert (parcel.status, parcel.data["place"]) == (Status.WAITING, "")


def test_a_failed_start_can_be_redelivered(handler: SetHandler) -> None:
    handler(PackParcel, refuse)
    receipt = start_process("shipping", ParcelOrdered("P-1"))
    drain()
    handler(PackParcel, lambda command: None)
    redeliver(receipt.number, request=pressed())
    drain()

    assert ProcessInstance.objects.get().pk == receipt.process_id
    assert not Incident.objects.open().exists()


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
        with pytest.raises(StaleRevision, match="has found its process just now"):
            operation(event, request=pressed())

    assert not OperatorAction.objects.filter(after__has_key="verdict").exists()


# Who may


def test_who_may_not_is_refused_and_nothing_is_done_but_a_row_written(
    failed: ProcessInstance, viewer: User, stranger: User
) -> None:
    event = tell(place("P-2"), LabelTorn())
    revision = failed.revision
    for actor in (viewer, stranger, AnonymousUser()):
        for operation, target in (
            (retry, failed.pk),
            (escalate, failed.pk),
            (redeliver, event.pk),
            (discard, event.pk),
        ):
            with pytest.raises(PermissionMissing, match="Your account may not do this"):
                operation(target, request=pressed(actor=actor))

    failed.refresh_from_db()
    assert failed.revision == revision
    rows = OperatorAction.objects.order_by("pk")
    assert [(row.result, row.actor) for row in rows] == [
        *[("refused", viewer)] * 4,
        *[("refused", stranger)] * 4,
        *[("refused", None)] * 4,
    ]
    assert rows[0].instance_id == failed.pk
    assert rows[0].detail == "Your account may not do this."


def test_what_is_possible_is_said_with_its_reason(
    failed: ProcessInstance, operator: User, viewer: User
) -> None:
    said = possible(failed, operator)
    assert (said["retry"], said["escalate"]) == ("", "")
    said = possible(place("P-2"), operator)
    assert (said["retry"], said["escalate"]) == ("Nothing has failed", "")
    no = "Your account may not do this."
    assert set(possible(failed, viewer).values()) == {no}


# The page they saw


def test_a_page_that_is_not_up_to_date_is_refused_with_what_changed() -> None:
    parcel = place()
    tell(parcel, ParcelPacked(3))

    with pytest.raises(StaleRevision) as refused:
        escalate(parcel.pk, request=pressed(seen=1))
    assert "The process has changed since the page was loaded: ParcelPacked" in str(
        refused.value
    )
    assert "now at revision 2, the page showed 1" in str(refused.value)


def test_the_revision_that_was_seen_is_accepted_and_who_was_faster_is_named(
    administrator: User,
) -> None:
    parcel = place()
    faster = pressed(actor=administrator, seen=1)
    assert escalate(parcel.pk, request=faster).result == "done"

    with pytest.raises(StaleRevision, match="administrator did escalate at"):
        escalate(parcel.pk, request=pressed(seen=1))


# Once


def test_the_same_press_again_gives_the_first_answer(failed: ProcessInstance) -> None:
    request = pressed(seen=failed.revision)
    first = retry(failed.pk, request=request)
    drain()
    second = retry(failed.pk, request=request)

    assert second.pk == first.pk
    assert Checkpoint.objects.filter(cause__startswith="operator:").count() == 1


def test_a_refused_press_again_gets_the_first_refusal() -> None:
    parcel = place()
    request = pressed()
    for _ in range(2):
        with pytest.raises(OperationRefused, match="Nothing has failed"):
            retry(parcel.pk, request=request)

    assert OperatorAction.objects.count() == 1


def test_a_key_stands_for_one_action() -> None:
    first, second = place("P-1"), place("P-2")
    request = pressed()
    escalate(first.pk, request=request)

    with pytest.raises(OperationRefused, match="this key was used for another action"):
        escalate(second.pk, request=request)
    with pytest.raises(OperationRefused, match="this key was used for another action"):
        retry(first.pk, request=request)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("seen", [None, 1])
def test_twenty_presses_at_the_same_moment_have_one_effect(seen: int | None) -> None:
    parcel = place()
    press = partial(escalate, parcel.pk, request=pressed(seen=seen))
    answers = together(*[press] * 20)

    assert raised(answers) == []
    assert len({answer.pk for answer in answers}) == 1
    parcel.refresh_from_db()
    assert (parcel.escalation_level, parcel.revision) == (1, 2)
    assert OperatorAction.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_twenty_presses_of_retry_and_of_discard_have_one_effect(
    failed: ProcessInstance,
) -> None:
    event = tell(place("P-2"), ParcelDelivered("P-2"))
    for press in (
        partial(retry, failed.pk, request=pressed(seen=failed.revision)),
        partial(discard, event.pk, request=pressed()),
    ):
        answers = together(*[press] * 20)
        assert raised(answers) == []
        assert len({answer.pk for answer in answers}) == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_at_the_same_moment_one_wins_and_the_other_is_told(
    operator: User, administrator: User
) -> None:
    parcel = place()
    calls = [
        partial(escalate, parcel.pk, request=pressed(actor=actor, seen=1))
        for actor in (operator, administrator)
    ]
    answers = together(*calls)

    [error] = raised(answers)
    assert isinstance(error, StaleRevision)
    assert "did escalate at" in str(error)
    results = OperatorAction.objects.values_list("result", flat=True)
    assert sorted(results) == ["done", "refused"]


# The audit


def test_each_action_leaves_one_row(failed: ProcessInstance, operator: User) -> None:
    request = pressed(seen=failed.revision, reason="the line is back")
    action = retry(failed.pk, request=request)

    row = OperatorAction.objects.get()
    assert row == action
    assert (row.action, row.actor, row.actor_name) == ("retry", operator, "operator")
    assert (row.reason, row.address, row.key) == (
        "the line is back",
        ADDRESS,
        request.key,
    )
    assert (row.instance_id, row.expected_revision) == (failed.pk, failed.revision)
    assert row.before["status"] == "failed"
    assert row.after["status"] == "waiting"
    assert row.after["revision"] == failed.revision + 1


def test_a_reason_is_given_and_made_storable() -> None:
    parcel = place()
    for reason in ("", "  \n", "x" * 2001):
        with pytest.raises(
            OperationRefused, match="say why, in at most 2000 characters"
        ):
            escalate(parcel.pk, request=pressed(reason=reason))
    parcel.refresh_from_db()
    assert parcel.escalation_level == 0

    escalate(parcel.pk, request=pressed(reason="a\0b\ud800"))
    assert OperatorAction.objects.latest("pk").reason == "a\ufffdb?"


def test_an_action_is_undone_with_its_audit_row(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parcel = place()

    def fail(*args: object, **kwargs: object) -> None:
        raise RuntimeError("the database went away")

    monkeypatch.setattr(OperatorAction, "save", fail)
    with pytest.raises(RuntimeError):
        escalate(parcel.pk, request=pressed())
    parcel.refresh_from_db()

    assert (parcel.escalation_level, parcel.revision) == (0, 1)
