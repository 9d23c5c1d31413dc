"""A start whose key a live process has: refused at the call, or shown at once where it had been accepted already."""

from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.db import transaction

from orchestrator import send_event, start_process
from orchestrator.engine.drain import drain
from orchestrator.engine.operations import ActionRequest, cancel, redeliver, restart
from orchestrator.exceptions import KeyTaken, OperationRefused
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Verdict
from orchestrator.testing import started
from tests.apps.patterns import unstorable
from tests.apps.patterns.fixtures import flows
from tests.apps.process_managers.desk import finish, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
)
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import raised, together

__all__ = ["flows"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "flows")]

ORDERED = ParcelOrdered("P-1")


@pytest.fixture(autouse=True)
def packing(handler: SetHandler) -> None:
    """Let a parcel be packed any number of times."""
    handler(PackParcel, lambda command: None)


# Refused at the call


def test_a_start_with_the_key_of_a_live_process_is_refused_at_the_call() -> None:
    parcel = place("P-1")

    with pytest.raises(KeyTaken, match="a live shipping with the key 'P-1'") as refused:
        start_process(Shipping, ORDERED, id="another", source="web")

    assert (refused.value.definition, refused.value.key, refused.value.process_id) == (
        "shipping",
        "P-1",
        parcel.pk,
    )
    assert str(parcel.pk) in str(refused.value)
    assert not InboxEvent.objects.filter(event_id="another").exists()
    assert drain() == 0


def test_a_start_by_a_key_that_is_given_is_refused_too() -> None:
    place("P-1")

    with pytest.raises(KeyTaken, match="'P-1'"):
        start_process(Shipping, ParcelOrdered("P-2"), correlation_key="P-1")
    start_process(Shipping, ORDERED, correlation_key="P-2")


def test_a_start_by_a_process_id_of_its_own_is_refused_too() -> None:
    place("P-1")

    with pytest.raises(KeyTaken):
        start_process(Shipping, ORDERED, process_id=uuid4())


def test_the_same_start_again_is_a_repeat_while_its_process_lives() -> None:
    first = start_process(Shipping, ORDERED, id="web-1", source="web")
    finish()
    again = start_process(Shipping, ORDERED, id="web-1", source="web")

    assert (again.process_id, again.repeated) == (first.process_id, True)
    assert again.verdict == Verdict.STARTED


def test_a_refused_start_leaves_the_callers_transaction_usable() -> None:
    place("P-1")
    with transaction.atomic():
        with pytest.raises(KeyTaken):
            start_process(Shipping, ORDERED)
        Group.objects.create(name="mine")

    assert Group.objects.filter(name="mine").exists()


def test_the_key_is_free_when_its_process_has_ended() -> None:
    tell(underway("P-1"), ParcelDelivered("P-1"))
    start_process(Shipping, ORDERED, id="again")
    finish()

    assert ProcessInstance.objects.live().get().correlation_key == "P-1"


def test_a_starting_event_that_is_only_sent_goes_to_the_live_process() -> None:
    parcel = place("P-1")
    receipt = send_event(ORDERED, id="sent")
    finish()

    assert InboxEvent.objects.get(pk=receipt.number).process_id == parcel.pk


def test_a_test_is_told_in_the_same_way() -> None:
    parcel = started(Shipping, ORDERED)

    with pytest.raises(KeyTaken, match=str(parcel.id)):
        started(Shipping, ORDERED)


def test_a_workflow_names_the_process_that_has_the_key() -> None:
    first = start_process(unstorable.Keyed, unstorable.Order("A"), id="1")

    with pytest.raises(KeyTaken) as refused:
        start_process(unstorable.Keyed, unstorable.Order("A"), id="2")
    assert refused.value.process_id == first.process_id


def test_a_restart_names_the_process_that_has_the_key(administrator: User) -> None:
    live = start_process(unstorable.Keyed, unstorable.Order("A"), id="1")
    ended = start_process(unstorable.Keyed, unstorable.Order("B"), id="2")
    cancel(ended.process_id, request=ActionRequest(administrator, uuid4(), "wrong"))

    request = ActionRequest(administrator, uuid4(), "the other order")
    given = {"order": "A", "amount": 1, "note": ""}
    with pytest.raises(OperationRefused, match=str(live.process_id)):
        restart(ended.process_id, given, request=request)


# Accepted before, taken at the delivery


def accepted_twice() -> tuple[InboxEvent, ProcessInstance]:
    """Accept two starts of one key before either process starts; return the second, and the first one's process."""
    first = start_process(Shipping, ORDERED, id="1", source="web")
    second = start_process(Shipping, ORDERED, id="2", source="web")
    while drain():
        pass
    event = InboxEvent.objects.get(pk=second.number)
    return event, ProcessInstance.objects.get(pk=first.process_id)


def test_of_two_accepted_starts_the_second_is_shown_at_once() -> None:
    event, parcel = accepted_twice()

    assert ProcessInstance.objects.get() == parcel
    assert (event.verdict, event.attempt, event.wake_at) == (Verdict.FAILED, 1, None)
    incident = Incident.objects.open().get()
    assert incident.event == event
    assert f"with the key 'P-1', the process {parcel.pk}" in incident.message


def test_what_was_shown_starts_when_it_is_redelivered_to_a_free_key(
    administrator: User,
) -> None:
    event, parcel = accepted_twice()
    tell(parcel, ParcelPacked(3))
    tell(parcel, ParcelDelivered("P-1"))
    redeliver(event.pk, request=ActionRequest(administrator, uuid4(), "the next one"))
    finish()

    event.refresh_from_db()
    assert event.verdict == Verdict.STARTED
    assert ProcessInstance.objects.live().get().pk == event.process_id
    assert not Incident.objects.open().exists()


@pytest.mark.django_db(transaction=True)
def test_two_starts_at_the_same_moment_give_one_process_and_one_answer() -> None:
    start = partial(start_process, Shipping, ORDERED, source="web")
    results = together(partial(start, id="1"), partial(start, id="2"))
    together(drain, drain)
    finish()

    process = ProcessInstance.objects.get()
    refused = [error for error in raised(results) if isinstance(error, KeyTaken)]
    shown = Incident.objects.open().filter(message__contains=str(process.pk))
    assert len(refused) + shown.count() == 1
    assert len(raised(results)) == len(refused)


@pytest.mark.django_db(transaction=True)
def test_two_workflows_at_the_same_moment_give_one_process_and_one_refusal() -> None:
    start = partial(start_process, unstorable.Keyed, unstorable.Order("A"))
    results = together(partial(start, id="1"), partial(start, id="2"))

    [refused] = raised(results)
    process = ProcessInstance.objects.get()
    assert isinstance(refused, KeyTaken)
    assert refused.process_id == process.pk
