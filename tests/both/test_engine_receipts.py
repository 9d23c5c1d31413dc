"""Accepting an event: stored once, whatever is repeated, and only if the caller's own transaction is."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.db import transaction

from orchestrator import Receipt, send_event, start_process
from orchestrator.engine.loops.drain import drain
from orchestrator.exceptions import ConflictingEvent, InvalidMessage
from orchestrator.models import (
    Definition,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    Verdict,
)
from orchestrator.queue import bell_count
from orchestrator.testing import run
from tests.apps.process_managers.desk import place, underway, unknown
from tests.apps.process_managers.messages import (
    DepotOpened,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import raised, together
from tests.services.doing import fresh, raising

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

ORDERED = ParcelOrdered("P-1")


# Repeats


def test_a_repeat_gets_the_first_receipt_again_and_is_counted() -> None:
    parcel = place()
    send = partial(send_event, ParcelPacked(3), id="1", source="depot")
    first = send(process_id=parcel.pk)
    for _ in range(2):
        run()
        again = send(process_id=parcel.pk)
    run()

    assert (again.number, again.process_id) == (first.number, first.process_id)
    assert (first.repeated, again.repeated) == (False, True)
    assert again.verdict == Verdict.MOVED
    assert fresh(parcel).revision == 2
    assert InboxEvent.objects.get(event_id="1").repeats == 2


def test_a_repeated_start_gives_the_process_id_of_the_first() -> None:
    first = start_process(Shipping, ORDERED, id="web-1", source="web")
    second = start_process(Shipping, ORDERED, id="web-1", source="web")
    drain()

    assert second.process_id == first.process_id
    assert second.repeated
    assert ProcessInstance.objects.get().pk == first.process_id


def test_the_same_id_from_another_source_is_another_event() -> None:
    parcel = underway()
    for source in ("depot", "van"):
        event = ParcelScanned("P-1", source)
        send_event(event, id="scan", source=source, process_id=parcel.pk)
    drain()

    assert fresh(parcel).revision == 4


def test_the_same_id_with_another_body_type_or_address_is_refused() -> None:
    parcel, other = place("P-1"), place("P-2")
    send = partial(send_event, id="1", source="depot")
    send(ParcelPacked(3), process_id=parcel.pk)

    for event, address in (
        (ParcelPacked(4), {"process_id": parcel.pk}),
        (ORDERED, {"process_id": parcel.pk}),
        (ParcelPacked(3), {"process_id": other.pk}),
        (ParcelPacked(3), {"correlation_key": "P-1"}),
    ):
        with pytest.raises(ConflictingEvent, match="depot sent event id '1' before"):
            send(event, **address)
    assert InboxEvent.objects.get(event_id="1").repeats == 0


@pytest.mark.django_db(transaction=True)
def test_a_refused_event_leaves_nothing_behind_and_spoils_no_transaction() -> None:
    send_event(DepotOpened("east"), id="1", source="depot")
    with transaction.atomic():
        with pytest.raises(ConflictingEvent):
            send_event(DepotOpened("west"), id="1", source="depot")
        start_process(Shipping, ORDERED, id="2")

    assert IssuedCommand.objects.count() == 1
    assert InboxEvent.objects.filter(event_id="2").exists()


# Names


def test_names_and_texts_that_cannot_be_stored_are_refused() -> None:
    steering = "the id must have no control characters"
    names: list[tuple[dict[str, Any], str]] = [
        ({"id": ""}, "the id must be a text that is not empty"),
        ({"id": "x" * 201}, "the id must have at most 200 characters"),
        *(({"id": id}, steering) for id in ("a\0", "a\nb", "\ud800")),
        ({"id": None}, "the id must be a text that is not empty"),
        ({"id": "1", "source": ""}, "the source must be a text that is not empty"),
        ({"id": "1", "source": "x" * 101}, "the source must have at most 100"),
        ({"id": "1", "correlation_key": "x" * 201}, "key must have at most 200"),
        ({"id": "1", "correlation_key": "\0"}, "key must have no control"),
    ]
    for given, said in names:
        with pytest.raises(InvalidMessage, match=said):
            send_event(ORDERED, **given)
    with pytest.raises(InvalidMessage, match="at most 200"):
        send_event(ParcelDelivered("x" * 201), id="1")
    for key, note in (("x" * 201, ""), ("P-1", "a\0b"), ("P-1", "\ud800")):
        with pytest.raises(InvalidMessage, match=None if note else "at most 200"):
            start_process(Shipping, ParcelOrdered(key, note=note), id="1")

    assert not InboxEvent.objects.exists()


# The caller's transaction


@pytest.mark.django_db(transaction=True)
def test_a_start_is_undone_with_its_transaction_and_rings_after_its_commit() -> None:
    with transaction.atomic():
        start_process(Shipping, ORDERED, id="1")
        send_event(ParcelPacked(3), id="2", process_id=unknown().pk)
        transaction.set_rollback(True)
    assert not InboxEvent.objects.exists()
    assert bell_count("default") == 0
    assert drain() == 0
    assert not ProcessInstance.objects.exists()

    with transaction.atomic():
        start_process(Shipping, ORDERED, id="1")
        assert bell_count("default") == 0
    assert bell_count("default") == 1


@pytest.mark.django_db(transaction=True)
def test_the_first_process_of_a_definition_may_be_undone() -> None:
    with pytest.MonkeyPatch.context() as patch:
        away = raising(RuntimeError("the database went away"))
        patch.setattr("orchestrator.engine.change.change.ProcessChange.write", away)
        start_process(Shipping, ORDERED, id="1")
        drain()
    assert not Definition.objects.exists()
    InboxEvent.objects.update(wake_at=InboxEvent.objects.get().received_at)
    drain()

    assert ProcessInstance.objects.get().definition == Definition.objects.get()


# At the same moment


@pytest.mark.django_db(transaction=True)
def test_the_same_start_or_event_at_the_same_moment_is_received_once() -> None:
    start = partial(start_process, Shipping, ORDERED, id="web-1", source="web")
    first = received_once(*[start] * 20)
    assert ProcessInstance.objects.get().pk == first.process_id

    scan = partial(send_event, ParcelScanned("P-1", "Nagoya"), id="scan")
    received_once(*[partial(scan, process_id=first.process_id)] * 10)


def received_once(*sends: Callable[[], Receipt]) -> Receipt:
    receipts: list[Receipt] = together(*sends)
    drain()

    assert raised(receipts) == []
    [number] = {receipt.number for receipt in receipts}
    [new] = [receipt for receipt in receipts if not receipt.repeated]
    assert {receipt.process_id for receipt in receipts} == {new.process_id}
    assert InboxEvent.objects.get(pk=number).repeats == len(sends) - 1
    return new
