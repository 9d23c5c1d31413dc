"""Many events at once: one statement for hundreds, in their order, each answered as if it had come alone."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Any

import pytest
from django.db import OperationalError, connection, transaction
from django.test.utils import CaptureQueriesContext

from orchestrator import Envelope, Receipt, send_event, send_events, start_process
from orchestrator.definition import ProcessManager, during, when
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.processes.events import send_all_events
from orchestrator.engine.storage import receipts
from orchestrator.exceptions import (
    ConflictingEvent,
    EventRefused,
    InvalidMessage,
    UnknownEventType,
)
from orchestrator.models import InboxEvent, IssuedCommand, ProcessInstance, Verdict
from orchestrator.queue import bell_count
from orchestrator.testing import registered
from tests.apps.process_managers.desk import underway, unknown
from tests.apps.process_managers.fixtures import known
from tests.apps.process_managers.messages import (
    DepotOpened,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import raised, together

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

by_postgresql = pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="SQLite is in this process"
)

ORDERED = ParcelOrdered("P-1")


class ParcelCounting(ProcessManager):
    """Counts what is ordered: a second definition that an order starts."""

    class Step(StrEnum):
        NOT_COUNTED = "NotCounted"
        COUNTED = "Counted"

    @dataclass(frozen=True)
    class Data:
        parcel_id: str

    correlation = "parcel_id"

    transitions = (during(Step.NOT_COUNTED, when(ParcelOrdered).go_to(Step.COUNTED)),)


@pytest.fixture
def counting() -> Iterator[None]:
    """Let two definitions listen to an order."""
    yield from known(ParcelCounting)


def scans(parcel: ProcessInstance, *places: str) -> list[Envelope]:
    """Envelopes of one scan a place, each with the place as its id."""
    return [
        Envelope(
            ParcelScanned("P-1", place), id=place, source="van", process_id=parcel.pk
        )
        for place in places
    ]


def sent() -> list[str]:
    """The ids of the events received from the van, in the order of their receipts."""
    events = InboxEvent.objects.filter(source="van").order_by("id")
    return list(events.values_list("event_id", flat=True))


# One exchange


def exchanges(send: Callable[[], object]) -> list[str]:
    """Return what is sent to the database meanwhile."""
    with CaptureQueriesContext(connection) as asked:
        send()
    return [query["sql"] or "" for query in asked]


@by_postgresql
@pytest.mark.django_db(transaction=True)
def test_events_are_received_in_one_exchange_with_the_database() -> None:
    parcel = underway()
    scan = partial(send_event, ParcelScanned("P-1", "Nagoya"), process_id=parcel.pk)
    for send in (
        partial(scan, id="1"),
        partial(send_event, DepotOpened("east"), id="2"),  # with its reaction
        partial(start_process, Shipping, ParcelOrdered("P-2")),
    ):
        assert len(exchanges(send)) == 1
    assert IssuedCommand.objects.filter(delivery="reaction").count() == 1

    asked = exchanges(partial(send_events, scans(parcel, *map(str, range(300)))))
    assert sum("INSERT" in sql for sql in asked) == 1
    assert len(asked) <= 3  # with what begins and ends the transaction
    with registered(ParcelCounting):
        assert len(exchanges(partial(send_event, ORDERED, id="of both"))) == 1
    assert InboxEvent.objects.filter(event_id="of both").count() == 2
    InboxEvent.objects.filter(target="parcel-counting").delete()


# Many


def test_many_events_are_handled_in_the_order_in_which_they_were_sent() -> None:
    parcel = underway()
    found = [receipt.number for receipt in send_events(scans(parcel, *"dbca"))]

    assert sent() == list("dbca")
    assert found == sorted(found)
    drain()
    moved = InboxEvent.objects.filter(source="van").order_by("revision")
    assert list(moved.values_list("event_id", flat=True)) == list("dbca")


def test_events_of_all_kinds_are_each_received_as_if_they_came_alone() -> None:
    parcel, by_name = underway(), {"parcel_id": "P-1", "place": "Kobe"}
    envelopes = [
        Envelope(ParcelOrdered("P-2"), id="order"),
        Envelope(DepotOpened("east"), id="depot", source="depots"),
        Envelope(ParcelDelivered("P-9"), id="key", correlation_key="P-9"),
        *scans(parcel, "Nagoya"),
        Envelope("ParcelScanned", by_name, id="by name", process_id=str(parcel.pk)),
        Envelope(ParcelPacked(3), id="early", process_id=unknown().pk),
    ]
    together_ = send_events(envelopes)
    rows, commands = received(), IssuedCommand.objects.filter(delivery="reaction")
    InboxEvent.objects.filter(pk__in=[one.number for one in together_]).delete()
    commands.delete()

    alone = [send_event(**vars(one)) for one in envelopes]
    assert received() == rows
    assert [_told(receipt) for receipt in together_] == [_told(one) for one in alone]
    drain()
    assert ProcessInstance.objects.filter(correlation_key="P-2").exists()


def received() -> list[Any]:
    """What came last of events and of their reactions."""
    columns = ("type", "target", "correlation_key", "verdict", "queue", "process_id")
    events = InboxEvent.objects.order_by("id").values_list(*columns)
    commands = IssuedCommand.objects.filter(delivery="reaction")
    return [*[*events][-6:], *commands.values_list("queue", "status", "delivery")]


def _told(receipt: Receipt) -> tuple[object, ...]:
    return receipt.process_id, receipt.verdict, receipt.repeated


@pytest.mark.parametrize(("limit", "of"), [("MANY", 3), ("MUCH", 1)])
def test_more_than_one_statement_takes_are_sent_in_several(
    limit: str, of: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receipts, limit, of)
    send_events(scans(underway(), *"abcdefgh"))

    assert sent() == list("abcdefgh")
    assert send_events([]) == []


@pytest.mark.usefixtures("counting")
def test_each_definition_gets_each_of_many_events() -> None:
    found = send_events(_orders("012"))

    rows = list(InboxEvent.objects.order_by("id").values_list("pk", "target"))
    assert [target for _, target in rows] == ["parcel-counting", "shipping"] * 3
    assert [receipt.number for receipt in found] == [pk for pk, _ in rows[::2]]


# Repeats and refusals


def test_repeats_among_many_get_their_first_receipts_and_are_counted() -> None:
    parcel = underway()
    a, b = (receipt.number for receipt in send_events(scans(parcel, *"ab")))
    again = send_events(scans(parcel, *"bcaacb"))

    new, c = [False, True, False, False, False, False], again[1].number
    assert [not receipt.repeated for receipt in again] == new
    assert [receipt.number for receipt in again] == [b, c, a, a, c, b]
    assert sent() == list("abc")
    repeats = InboxEvent.objects.filter(source="van").order_by("id")
    assert list(repeats.values_list("repeats", flat=True)) == [2, 2, 1]


@by_postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("send", [send_events, send_all_events])
def test_ids_that_come_again_and_again_cost_hardly_more(send: Any) -> None:
    parcel = underway()
    places = [str(number // 3) for number in range(299)]
    with CaptureQueriesContext(connection) as asked:
        found = send(scans(parcel, *places))

    assert len(asked) <= 7  # two of them count: one for each number of repeats
    assert [one.repeated for one in found] == [number % 3 > 0 for number in range(299)]
    repeats = InboxEvent.objects.filter(source="van").order_by("id")
    assert list(repeats.values_list("repeats", flat=True)) == [2] * 99 + [1]
    assert sent() == [str(number) for number in range(100)]


def test_a_repeat_runs_no_handler_of_its_event_again() -> None:
    opened = [Envelope(DepotOpened("east"), id=id) for id in "ab"]
    send_events([*opened, *opened, Envelope(DepotOpened("west"), id="c")])

    assert IssuedCommand.objects.filter(delivery="reaction").count() == 3


def test_a_conflict_among_many_is_named_by_its_place_and_those_before_it_stay() -> None:
    parcel = underway()
    send_events(scans(parcel, "b"))
    [other] = scans(parcel, "z")
    other = replace(other, id="b")
    with pytest.raises(EventRefused, match="event 1, counted from 0") as refused:
        send_events([*scans(parcel, "a"), other, *scans(parcel, "c")])
    assert refused.value.place == 1
    assert isinstance(refused.value.reason, ConflictingEvent)
    assert [receipt.repeated for receipt in refused.value.receipts] == [False]
    assert sent() == list("ba")


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (Envelope(ORDERED, id=""), InvalidMessage),
        (Envelope("Unheard", id="1"), UnknownEventType),
        (Envelope("ParcelScanned", {}, id="1"), InvalidMessage),
        (Envelope(ORDERED, id="1", process_id="no id"), InvalidMessage),
    ],
)
def test_an_event_that_cannot_be_stored_is_named_by_its_place_and_the_rest_can_be_sent(
    bad: Envelope, reason: type[Exception]
) -> None:
    parcel = underway()
    with pytest.raises(EventRefused) as refused:
        send_events([*scans(parcel, *"ab"), bad, *scans(parcel, "c")])

    assert refused.value.place == 2
    assert isinstance(refused.value.reason, reason)
    assert sent() == list("ab")
    found = send_events(scans(parcel, *"abc"))
    assert [receipt.repeated for receipt in found] == [True, True, False]


# The caller's transaction, and others at the same moment


@pytest.mark.django_db(transaction=True)
def test_many_events_are_undone_with_their_callers_transaction() -> None:
    with transaction.atomic():
        send_events([Envelope(DepotOpened("east"), id=id) for id in "ab"])
        assert bell_count("default") == 0
        transaction.set_rollback(True)

    assert (InboxEvent.objects.count(), IssuedCommand.objects.count()) == (0, 0)
    assert bell_count("default") == 0


@pytest.mark.django_db(transaction=True)
def test_many_events_ring_once_after_the_callers_commit() -> None:
    parcel = underway()
    before = bell_count("default") or 0
    with transaction.atomic():
        send_events(scans(parcel, *"abc"))
    assert (bell_count("default") or 0) <= before + 1
    drain()

    assert not InboxEvent.objects.filter(verdict=Verdict.RECEIVED).exists()


def send_in_a_transaction(envelopes: list[Envelope]) -> list[Receipt]:
    with transaction.atomic():
        return send_events(envelopes)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("senders", [2, 4])
@pytest.mark.parametrize("send", [send_events, send_in_a_transaction, send_all_events])
def test_the_same_many_at_the_same_moment_are_received_once(
    senders: int, send: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each in an order of its own: whoever gives way waits for the others without holding what they want.

    Where it takes several statements, that is also what an earlier one stored.
    """
    if send is send_all_events:
        monkeypatch.setattr(receipts, "MANY", 20)
    parcel = underway()
    places = [f"stop {number}" for number in range(80)]
    turned = places[40:] + places[:40]
    mixed = random.Random(1).sample(places, len(places))
    orders = [places, places[::-1], turned, mixed][:senders]

    results = together(*(partial(send, scans(parcel, *order)) for order in orders))
    assert raised(results) == []
    repeats = sum(one.repeated for found in results for one in found)
    assert repeats == (senders - 1) * len(places)
    assert sorted(sent()) == sorted(places)
    drain()


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("counting")
def test_a_start_and_an_event_of_the_same_id_at_the_same_moment_are_one() -> None:
    start = partial(start_process, Shipping, ORDERED, id="1", correlation_key="P-1")
    send = partial(send_event, ORDERED, id="1", correlation_key="P-1")
    many = partial(
        send_events, [Envelope(ORDERED, id="1", correlation_key="P-1"), *_orders("23")]
    )
    results = together(start, send, many)

    assert all(isinstance(error, ConflictingEvent) for error in raised(results))
    rows = InboxEvent.objects.filter(event_id="1")
    starts = list(rows.values_list("starts", flat=True))
    assert starts in ([True], [False, False])


def _orders(ids: str) -> list[Envelope]:
    return [Envelope(ParcelOrdered(f"P-{id}"), id=id) for id in ids]


# In transactions of the caller's that see what was so at their beginning


@by_postgresql
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
@pytest.mark.parametrize("places", [("Kobe",), ("Nara", "Kobe", "Otsu")])
def test_what_came_since_the_callers_transaction_began_has_it_begin_anew(
    level: str, places: tuple[str, ...]
) -> None:
    """It cannot see the event that is known already; nothing waits for ever, and nothing is received twice."""
    parcel = underway()
    [once] = scans(parcel, "Kobe")

    def send() -> list[Receipt]:
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(f"SET TRANSACTION ISOLATION LEVEL {level}")
            if not sent():
                together(partial(send_events, [once]))
            return send_events(scans(parcel, *places))

    with pytest.raises(OperationalError, match="could not serialize"):
        send()
    assert sent() == ["Kobe"]
    repeats = {place: one.repeated for place, one in zip(places, send(), strict=True)}
    assert repeats == {place: place == "Kobe" for place in places}
    assert sorted(sent()) == sorted(places)
    drain()


def test_what_is_no_event_or_no_envelope_is_refused() -> None:
    events: list[Any] = [5, None, {"parcel_id": "P-1"}, ParcelOrdered]
    for event in events:
        with pytest.raises(InvalidMessage, match="an event is an instance of a class"):
            send_event(event, id="1")
    with pytest.raises(InvalidMessage, match="only named"):
        send_event(ORDERED, {"parcel_id": "P-2"}, id="1")
    assert not InboxEvent.objects.exists()

    parcel, envelopes = underway(), [ORDERED, None, {"event": "ParcelOrdered"}]
    for envelope in envelopes:
        with pytest.raises(EventRefused, match="put each event into an Env") as refused:
            send_events([*scans(parcel, "a"), envelope])  # type: ignore[list-item]
        assert len(refused.value.receipts) == 1
    assert sent() == ["a"]
