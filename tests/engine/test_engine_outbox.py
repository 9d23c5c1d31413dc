"""Commands after the commit: at least once, under one idempotency key, with backoff, in the end an incident."""

from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from uuid import UUID, uuid4, uuid5

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.utils import timezone

from orchestrator import (
    Answer,
    CommandContext,
    Permanent,
    registry,
    send_event,
    start_process,
)
from orchestrator.conf import conf
from orchestrator.engine import inbox
from orchestrator.engine.claims import leases
from orchestrator.engine.events import outbox
from orchestrator.engine.storage.batch import database_now, send
from orchestrator.exceptions import UnknownEventType
from orchestrator.models import (
    Checkpoint,
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    Verdict,
)
from orchestrator.testing import pass_time, run
from tests.apps.process_managers.desk import tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    CourierBooked,
    DepotOpened,
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelScanned,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

LONG = timedelta(minutes=10)
SECOND = timedelta(seconds=1)


class Calls:
    """A handler that notes its calls and fails the first few times."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.contexts: list[CommandContext] = []

    def __call__(self, command: BookCourier, context: CommandContext) -> Answer:
        self.contexts.append(context)
        if self.errors:
            raise self.errors.pop(0)
        return Answer("HTTP 202", CourierBooked("B-1"))


Book = Callable[..., tuple[ProcessInstance, Calls]]


@pytest.fixture
def book(handler: SetHandler) -> Book:
    """Return a function that has a courier booked for a parcel, with a handler that fails with these errors."""

    def order(*errors: Exception, attempts: int = 3) -> tuple[ProcessInstance, Calls]:
        calls = Calls(*errors)
        handler(BookCourier, calls, after_commit=True, attempts=attempts)
        return underway("P-1", Courier.PARTNER), calls

    return order


def booking() -> IssuedCommand:
    return IssuedCommand.objects.get(type="BookCourier")


# Once


def test_a_command_whose_process_was_long_in_coming_is_claimed_anew_uncharged(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its lease may have run out meanwhile, and others may have carried it out."""
    times = iter([0.0, conf().LEASE_SECONDS, 0.0, 0.0])
    clock = SimpleNamespace(monotonic=lambda: next(times))
    monkeypatch.setattr(outbox, "time", clock)
    monkeypatch.setattr(leases, "time", clock)

    _process, calls = book()

    assert list(times) == []  # it was asked for twice
    assert [context.attempt for context in calls.contexts] == [1]
    assert (booking().status, booking().attempt) == (CommandStatus.DONE, 1)


def test_it_is_carried_out_once_after_the_commit_and_its_events_are_delivered(
    book: Book,
) -> None:
    parcel, calls = book()

    assert len(calls.contexts) == 1
    command = booking()
    assert (command.status, command.answer, command.attempt) == (
        CommandStatus.DONE,
        "HTTP 202",
        1,
    )
    assert command.delivery == "after_commit"
    assert command.finished_at is not None
    parcel.refresh_from_db()
    assert parcel.data["booking"] == "B-1"
    assert InboxEvent.objects.get(type="CourierBooked").caused_by_id == command.pk

    assert calls.contexts == [CommandContext(parcel.pk, booking().pk, 1, "P-1")]


@pytest.mark.django_db(transaction=True)
def test_its_handler_runs_outside_of_any_transaction(handler: SetHandler) -> None:
    inside: list[bool] = []
    handler(
        BookCourier,
        lambda command: inside.append(connection.in_atomic_block),
        after_commit=True,
    )
    underway("P-1", Courier.PARTNER)

    assert inside == [False]


def test_it_is_stored_with_its_transition_and_due_at_once() -> None:
    parcel = underway("P-1", Courier.PARTNER)

    command = booking()
    assert command.revision == 2
    assert Checkpoint.objects.filter(instance=parcel, revision=2).exists()


def test_a_command_that_succeeds_does_not_move_the_process_by_itself(
    handler: SetHandler,
) -> None:
    handler(BookCourier, lambda command: None, after_commit=True)
    parcel = underway("P-1", Courier.PARTNER)

    assert (parcel.revision, parcel.status) == (2, Status.WAITING)


# Again


def test_a_failure_is_stored_with_the_time_of_the_next_attempt(book: Book) -> None:
    parcel, calls = book(ConnectionError("no line"))

    command = booking()
    assert (command.status, command.attempt) == (CommandStatus.RETRYING, 1)
    assert "ConnectionError: no line" in command.error
    assert command.wake_at is not None
    assert command.wake_at <= timezone.now() + conf().BACKOFF_SECONDS * SECOND
    parcel.refresh_from_db()
    assert parcel.status == Status.RETRYING
    assert not Incident.objects.exists()

    pass_time(LONG)
    assert len(calls.contexts) == 2
    command.refresh_from_db()
    assert (command.status, command.error) == (CommandStatus.DONE, "")
    parcel.refresh_from_db()
    assert (parcel.status, parcel.data["booking"]) == (Status.WAITING, "B-1")


def test_each_attempt_has_the_same_idempotency_key(book: Book) -> None:
    _, calls = book(ConnectionError("1"), ConnectionError("2"))
    pass_time(LONG)

    assert [context.attempt for context in calls.contexts] == [1, 2, 3]
    assert {context.command_id for context in calls.contexts} == {booking().pk}


def test_after_the_last_attempt_it_is_an_incident(book: Book) -> None:
    parcel, calls = book(*[ConnectionError("no line")] * 5, attempts=3)
    pass_time(3 * LONG)

    assert len(calls.contexts) == 3
    command = booking()
    assert (command.status, command.wake_at) == (CommandStatus.FAILED, None)
    incident = Incident.objects.open().get()
    assert incident.kind == "command_failed"
    assert (incident.command_id, incident.instance_id) == (command.pk, parcel.pk)
    assert incident.message == "ConnectionError: no line"
    assert "Traceback" in incident.detail
    parcel.refresh_from_db()
    assert (parcel.status, parcel.step) == (Status.FAILED, "OnTheWay")


def test_a_permanent_error_is_an_incident_at_once(book: Book) -> None:
    _, calls = book(Permanent("the receiver is unknown"))
    pass_time(LONG)

    assert len(calls.contexts) == 1
    assert booking().status == CommandStatus.FAILED
    assert Incident.objects.open().get().message == (
        "Permanent: the receiver is unknown"
    )


def test_an_error_text_that_no_database_takes_is_made_storable(book: Book) -> None:
    book(ValueError("a\0b\ud800" + "x" * 20_000))

    assert "\0" not in booking().error
    assert len(booking().error) <= 16 * 1024


def test_equal_failures_are_of_one_cause(handler: SetHandler) -> None:
    def fail(command: BookCourier) -> None:
        raise Permanent(f"no courier for {uuid4()} in zone {len(command.parcel_id)}")

    handler(BookCourier, fail, after_commit=True)
    underway("P-1", Courier.PARTNER)
    underway("P-22", Courier.PARTNER)

    prints = Incident.objects.values_list("fingerprint", flat=True)
    assert len(prints) == 2
    assert len(set(prints)) == 1


def test_a_failed_process_still_takes_its_events(book: Book) -> None:
    parcel, _ = book(Permanent("no"))
    tell(parcel, ParcelScanned("P-1", "Nagoya"))
    assert (parcel.status, parcel.data["place"]) == (Status.FAILED, "Nagoya")
    tell(parcel, ParcelDelivered("P-1"))

    assert parcel.status == Status.COMPLETED


# A handler that is missing


def test_a_command_without_a_handler_waits_uncharged_and_people_are_told_once(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcel, _ = book(ConnectionError("no line"))
    with monkeypatch.context() as patch:
        patch.delitem(registry.command_handlers, "BookCourier")
        for _ in range(5):
            pass_time(31 * SECOND)

    command = booking()
    assert command.attempt == 1
    assert "no handler for BookCourier in the running code" in command.error
    assert Incident.objects.count() == 1
    assert Incident.objects.open().get().kind == "handler_missing"
    pass_time(31 * SECOND)

    command.refresh_from_db()
    assert (command.status, command.attempt) == (CommandStatus.DONE, 2)
    assert not Incident.objects.open().exists()
    parcel.refresh_from_db()
    assert parcel.status == Status.WAITING


def test_an_event_whose_command_has_no_handler_waits_uncharged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.delitem(registry.command_handlers, "PackParcel")
        start_process("shipping", ParcelOrdered("P-1"))
        run()
        for _ in range(7):
            pass_time(31 * SECOND)
        event = InboxEvent.objects.get()
        assert (event.verdict, event.attempt) == (Verdict.RECEIVED, 0)
        assert "no handler for the command PackParcel" in event.error
        assert Incident.objects.count() == 1
    pass_time(31 * SECOND)

    assert ProcessInstance.objects.get().step == "Packing"
    assert not Incident.objects.open().exists()


def test_an_event_whose_type_the_running_code_does_not_know_waits_uncharged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parcel = underway()
    with monkeypatch.context() as patch:

        def unknown(name: str) -> None:
            raise UnknownEventType(f"nothing knows {name}")

        send_event(ParcelScanned("P-1", "Nagoya"), id="1", process_id=parcel.pk)
        patch.setattr(registry, "event_class", unknown)
        for _ in range(7):
            run()
            pass_time(31 * SECOND)
        assert InboxEvent.objects.get(event_id="1").attempt == 0
    pass_time(31 * SECOND)

    parcel.refresh_from_db()
    assert parcel.data["place"] == "Nagoya"


# The key


def test_the_key_comes_from_process_revision_and_place(book: Book) -> None:
    parcel, _ = book()

    assert booking().pk == uuid5(parcel.pk, "2:0")


def test_a_transition_that_is_repeated_issues_the_same_commands(
    handler: SetHandler,
) -> None:
    seen: list[UUID] = []

    def fail_once(command: PackParcel, context: CommandContext) -> None:
        seen.append(context.command_id)
        if len(seen) == 1:
            raise ConnectionError("no boxes")

    handler(PackParcel, fail_once)
    start_process("shipping", ParcelOrdered("P-1"))
    run()
    pass_time(LONG)

    assert len(seen) == 2
    assert len(set(seen)) == 1


# Simple event handlers


def test_an_event_handler_reacts_once_an_event() -> None:
    receipt = send_event(DepotOpened("east"), id="1", source="depot")
    assert receipt.verdict == Verdict.REACTED
    run()
    send_event(DepotOpened("east"), id="1", source="depot")
    run()

    assert Group.objects.filter(name="depot east").count() == 1
    command = IssuedCommand.objects.get()
    assert (command.delivery, command.status, command.instance_id) == (
        "reaction",
        CommandStatus.DONE,
        None,
    )


def test_an_event_that_a_command_caused_is_reacted_to_once_whatever_its_targets() -> (
    None
):
    rows = [
        InboxEvent(
            source="command",
            event_id=number,
            target=target,
            type="DepotOpened",
            body={"place": number},
            received_at=database_now(),
        )
        for number in ("east", "west")
        for target in ("shipping", "another")
    ]
    send(inbox.reactions(rows))
    places = IssuedCommand.objects.values_list("body__place", flat=True)
    assert sorted(places) == ["east", "west"]
    IssuedCommand.objects.all().delete()  # of events that were never received


def test_an_event_handler_that_fails_leaves_nothing_and_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send_event(DepotOpened("east"), id="1", source="depot")
    with monkeypatch.context() as patch:
        [entry] = registry.reactions["DepotOpened"]

        def write_and_fail(event: DepotOpened) -> None:
            Group.objects.create(name="half")
            raise ConnectionError("no line")

        patch.setattr(registry, "reaction", lambda name: entry_with(write_and_fail))

        def entry_with(function: Callable[..., None]) -> registry.Handler:
            return registry.Handler(function, entry.message, True, 4, 5, "default")

        run()
        assert not Group.objects.exists()
        assert IssuedCommand.objects.get().status == CommandStatus.RETRYING
    pass_time(LONG)

    assert Group.objects.get().name == "depot east"


def test_a_reaction_that_fails_for_good_is_an_incident(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [entry] = registry.reactions["DepotOpened"]

    def fail(event: DepotOpened) -> None:
        raise Permanent("no")

    failing = registry.Handler(fail, entry.message, True, 4, 5, "default")
    monkeypatch.setattr(registry, "reaction", lambda name: failing)
    send_event(DepotOpened("east"), id="1")
    run()

    incident = Incident.objects.open().get()
    assert (incident.kind, incident.instance_id) == ("command_failed", None)
