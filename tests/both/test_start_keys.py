"""A start whose key a live process has: refused at the call, or shown at once where it had been accepted already."""

from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.db import transaction

from orchestrator import send_event, start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel, redeliver, restart
from orchestrator.exceptions import KeyTaken, OperationRefused
from orchestrator.models import InboxEvent, Incident, ProcessInstance, Verdict
from orchestrator.testing import started
from tests.apps.patterns import unstorable
from tests.apps.patterns.fixtures import flows
from tests.apps.process_managers.desk import finish, place, tell
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
)
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import raised, together
from tests.services.asking import asked
from tests.services.doing import fresh, taking

__all__ = ["flows"]

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "flows")]

ORDERED = ParcelOrdered("P-1")


@pytest.fixture(autouse=True)
def packing(handler: SetHandler) -> None:
    """Let a parcel be packed any number of times."""
    handler(PackParcel, taking)


# Refused at the call


def test_a_start_with_the_key_of_a_live_process_is_refused_at_the_call() -> None:
    parcel = place("P-1")
    by_key = partial(start_process, Shipping, ParcelOrdered("P-2"))

    for start in (
        partial(start_process, Shipping, ORDERED, id="another", source="web"),
        partial(by_key, correlation_key="P-1", id="another"),
        partial(start_process, Shipping, ORDERED, process_id=uuid4(), id="another"),
        partial(started, Shipping, ORDERED),
    ):
        with transaction.atomic():  # it stays usable
            with pytest.raises(KeyTaken, match="shipping with the key 'P-1'") as error:
                start()
            Group.objects.get_or_create(name="mine")
        taken = error.value
        named = (taken.definition, taken.key, taken.process_id)
        assert named == ("shipping", "P-1", parcel.pk)
        assert str(parcel.pk) in str(taken)
    assert Group.objects.filter(name="mine").exists()
    assert not InboxEvent.objects.filter(event_id="another").exists()
    assert drain() == 0
    start_process(Shipping, ORDERED, correlation_key="P-2")


def test_a_starting_event_that_is_only_sent_goes_to_the_live_process() -> None:
    parcel = place("P-1")
    send_event(ORDERED, id="sent")
    finish()
    assert InboxEvent.objects.get(event_id="sent").process_id == parcel.pk


def test_a_workflow_and_a_restart_name_the_process_that_has_the_key() -> None:
    live = start_process(unstorable.Keyed, unstorable.Order("A"), id="1")
    ended = start_process(unstorable.Keyed, unstorable.Order("B"), id="2")
    cancel(ended.process_id, request=asked())

    with pytest.raises(KeyTaken) as refused:
        start_process(unstorable.Keyed, unstorable.Order("A"), id="3")
    assert refused.value.process_id == live.process_id
    given = {"order": "A", "amount": 1, "note": ""}
    with pytest.raises(OperationRefused, match=str(live.process_id)):
        restart(ended.process_id, given, request=asked())


# Accepted before, taken at the delivery


def test_of_two_accepted_starts_the_second_is_shown_and_waits_for_the_key() -> None:
    first = start_process(Shipping, ORDERED, id="1", source="web")
    second = start_process(Shipping, ORDERED, id="2", source="web")
    while drain():
        pass
    event = InboxEvent.objects.get(pk=second.number)
    parcel = ProcessInstance.objects.get()
    assert parcel.pk == first.process_id
    assert (event.verdict, event.attempt, event.wake_at) == (Verdict.FAILED, 1, None)
    incident = Incident.objects.open().get()
    assert incident.event == event
    assert f"with the key 'P-1', the process {parcel.pk}" in incident.message

    tell(parcel, ParcelPacked(3))
    tell(parcel, ParcelDelivered("P-1"))
    redeliver(event.pk, request=asked())
    finish()
    assert fresh(event).verdict == Verdict.STARTED
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
    assert isinstance(refused, KeyTaken)
    assert refused.process_id == ProcessInstance.objects.get().pk
