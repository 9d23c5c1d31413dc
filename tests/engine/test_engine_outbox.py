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
    Poll,
    Retry,
    registry,
    send_event,
    start_process,
)
from orchestrator.configuration.conf import conf
from orchestrator.definition.declarations.handlers import Handler
from orchestrator.definition.refusals import LONGEST
from orchestrator.engine.events import outbox
from orchestrator.engine.sql.batch import database_now, send
from orchestrator.engine.storage import inbox
from orchestrator.engine.work import leases
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
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
from tests.services.doing import fresh, raising, taking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

LONG = timedelta(minutes=10)
HOUR = timedelta(hours=1)
SECOND = timedelta(seconds=1)
SCANNED, HUNG_UP = ParcelScanned("P-1", "Nagoya"), ConnectionError("no line")


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
    assert (booking().status, booking().attempt) == ("done", 1)


def test_it_is_carried_out_once_after_the_commit_with_its_events(book: Book) -> None:
    parcel, calls = book()

    command = booking()
    assert (command.status, command.answer, command.attempt) == ("done", "HTTP 202", 1)
    assert command.delivery == "after_commit"
    assert command.finished_at is not None
    assert fresh(parcel).data["booking"] == "B-1"
    assert InboxEvent.objects.get(type="CourierBooked").caused_by_id == command.pk
    assert command.pk == uuid5(parcel.pk, "2:0")  # the process, the revision, the place
    assert calls.contexts == [CommandContext(parcel.pk, command.pk, 1, "P-1")]


@pytest.mark.django_db(transaction=True)
def test_its_handler_runs_outside_of_any_transaction(handler: SetHandler) -> None:
    inside: list[bool] = []

    def look(command: BookCourier) -> None:
        inside.append(connection.in_atomic_block)

    handler(BookCourier, look, after_commit=True)
    underway("P-1", Courier.PARTNER)

    assert inside == [False]


def test_it_is_stored_with_its_transition_and_makes_none(handler: SetHandler) -> None:
    handler(BookCourier, taking, after_commit=True)
    parcel = underway("P-1", Courier.PARTNER)

    assert (booking().revision, booking().status) == (2, "done")
    assert Checkpoint.objects.filter(instance=parcel).count() == 2
    assert (parcel.revision, parcel.status) == (2, "waiting")


# Again


def test_a_failure_is_stored_with_the_time_of_the_next_attempt(book: Book) -> None:
    parcel, calls = book(HUNG_UP)

    command = booking()
    assert (command.status, command.attempt) == ("retrying", 1)
    assert "ConnectionError: no line" in command.error
    assert command.wake_at is not None
    assert command.wake_at <= timezone.now() + conf().BACKOFF_SECONDS * SECOND
    assert fresh(parcel).status == "retrying"
    assert not Incident.objects.exists()

    pass_time(LONG)
    assert len(calls.contexts) == 2
    assert (fresh(command).status, command.error) == ("done", "")
    assert (fresh(parcel).status, parcel.data["booking"]) == ("waiting", "B-1")


def test_each_attempt_has_the_same_idempotency_key(book: Book) -> None:
    _, calls = book(ConnectionError("1"), ConnectionError("2"))
    pass_time(LONG)

    assert [context.attempt for context in calls.contexts] == [1, 2, 3]
    assert {context.command_id for context in calls.contexts} == {booking().pk}


@pytest.mark.parametrize(
    ("error", "times"), [(HUNG_UP, 3), (Permanent("no line"), 1)], ids=["last", "first"]
)
def test_after_the_last_attempt_or_a_permanent_error_it_is_an_incident(
    error: Exception, times: int, book: Book
) -> None:
    parcel, calls = book(*[error] * 5, attempts=3)
    pass_time(3 * LONG)

    assert len(calls.contexts) == times
    command = booking()
    assert (command.status, command.wake_at) == ("failed", None)
    incident = Incident.objects.open().get()
    assert incident.kind == "command_failed"
    assert (incident.command_id, incident.instance_id) == (command.pk, parcel.pk)
    assert incident.message == f"{type(error).__name__}: no line"
    assert "Traceback" in incident.detail
    assert (fresh(parcel).status, parcel.step) == ("failed", "OnTheWay")


def test_retry_says_when_a_command_comes_back_and_counts_as_an_attempt(
    book: Book,
) -> None:
    _, calls = book(*[Retry(HOUR, "the office is closed")] * 3, attempts=3)

    assert "Retry: the office is closed" in booking().error
    pass_time(hours=0.9)
    assert len(calls.contexts) == 1
    pass_time(hours=0.2)
    assert [context.attempt for context in calls.contexts] == [1, 2]
    assert booking().status == "retrying"
    pass_time(hours=1.1)
    assert booking().status == "failed"
    assert Incident.objects.open().get().message == "Retry: the office is closed"


def test_retry_of_a_command_takes_any_time(book: Book) -> None:
    _, calls = book(Retry(timedelta.min), Retry(timedelta.max))

    assert len(calls.contexts) == 2
    due = booking().wake_at
    assert due is not None
    assert LONGEST - LONG < due - timezone.now() < LONGEST + LONG


def test_retry_of_a_command_takes_no_time_without_a_unit(handler: SetHandler) -> None:
    def book_wrongly(command: BookCourier) -> None:
        raise Retry("1m")  # type: ignore[arg-type]

    handler(BookCourier, book_wrongly, after_commit=True, attempts=1)
    underway("P-1", Courier.PARTNER)

    said = "TypeError: Retry: after='1m' must be a timedelta"
    assert Incident.objects.open().get().message == said


def test_retry_says_when_an_event_comes_back_whose_transition_it_rolled_back(
    handler: SetHandler,
) -> None:
    seen: list[int] = []

    def pack(command: PackParcel, context: CommandContext) -> None:
        seen.append(context.attempt)
        if len(seen) == 1:
            raise Retry(HOUR)

    handler(PackParcel, pack)
    start_process("shipping", ParcelOrdered("P-1"))
    run()
    pass_time(hours=0.9)
    assert seen == [1]
    pass_time(hours=0.2)

    assert seen == [1, 2]
    assert ProcessInstance.objects.get().step == "Packing"


def test_poll_of_a_command_fails_at_once_and_says_what_to_do(book: Book) -> None:
    parcel, calls = book(Poll(LONG, within=HOUR))
    pass_time(3 * LONG)

    assert len(calls.contexts) == 1
    assert fresh(parcel).status == "failed"
    assert Incident.objects.open().get().message == (
        "Permanent: BookCourier raised Poll, which only steps may: raise Retry, which counts as an attempt, or poll in "
        "a step of a workflow"
    )


def test_an_error_text_that_no_database_takes_is_made_storable(book: Book) -> None:
    book(ValueError("a\0b\ud800" + "x" * 20_000))

    assert "\0" not in booking().error
    assert len(booking().error) <= 16 * 1024


def test_equal_failures_are_of_one_cause(handler: SetHandler) -> None:
    def fail(command: BookCourier) -> None:
        raise Permanent(f"no courier for {uuid4()} in zone {len(command.parcel_id)}")

    handler(BookCourier, fail, after_commit=True)
    for parcel_id in ("P-1", "P-22"):
        underway(parcel_id, Courier.PARTNER)

    one, other = Incident.objects.values_list("fingerprint", flat=True)
    assert one == other


def test_a_failed_process_still_takes_its_events(book: Book) -> None:
    parcel, _ = book(Permanent("no"))
    tell(parcel, SCANNED)
    assert (parcel.status, parcel.data["place"]) == ("failed", "Nagoya")
    tell(parcel, ParcelDelivered("P-1"))

    assert parcel.status == "completed"


# A handler that is missing


def test_without_a_handler_a_command_waits_uncharged(
    book: Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcel, _ = book(HUNG_UP)
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

    assert (fresh(command).status, command.attempt) == ("done", 2)
    assert not Incident.objects.open().exists()
    assert fresh(parcel).status == "waiting"


def test_without_a_handler_an_event_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.delitem(registry.command_handlers, "PackParcel")
        start_process("shipping", ParcelOrdered("P-1"))
        run()
        for _ in range(7):
            pass_time(31 * SECOND)
        event = InboxEvent.objects.get()
        assert (event.verdict, event.attempt) == ("received", 0)
        assert "no handler for the command PackParcel" in event.error
        assert Incident.objects.count() == 1
    pass_time(31 * SECOND)

    assert ProcessInstance.objects.get().step == "Packing"
    assert not Incident.objects.open().exists()


# The key


def test_a_repeated_transition_issues_the_same_commands(handler: SetHandler) -> None:
    seen: list[UUID] = []

    def fail_once(command: PackParcel, context: CommandContext) -> None:
        seen.append(context.command_id)
        if len(seen) == 1:
            raise ConnectionError("no boxes")

    handler(PackParcel, fail_once)
    start_process("shipping", ParcelOrdered("P-1"))
    run()
    pass_time(LONG)

    one, other = seen
    assert one == other


# Simple event handlers


def reacting(function: Callable[..., None]) -> Callable[[str], Handler]:
    """Return what finds this function as the handler of whatever event."""
    [entry] = registry.reactions["DepotOpened"]
    handler = Handler(function, entry.message, True, 4, 5, "default")
    return lambda name: handler


def test_an_event_handler_reacts_once_an_event() -> None:
    for _ in range(2):
        receipt = send_event(DepotOpened("east"), id="1", source="depot")
        assert receipt.verdict == "reacted"
        run()

    assert Group.objects.filter(name="depot east").count() == 1
    command = IssuedCommand.objects.get()
    assert (command.delivery, command.status) == ("reaction", "done")
    assert command.instance_id is None


def test_what_a_command_caused_is_reacted_to_once_whatever_its_targets() -> None:
    about = {"source": "command", "type": "DepotOpened", "received_at": database_now()}
    rows = [
        InboxEvent(event_id=where, body={"place": where}, target=target, **about)
        for where in ("east", "west")
        for target in ("shipping", "another")
    ]
    [*_, reactions] = inbox.event_inserts(rows)
    send([reactions])
    places = IssuedCommand.objects.values_list("body__place", flat=True)
    assert sorted(places) == ["east", "west"]
    IssuedCommand.objects.all().delete()  # of events that were never received


def test_a_failing_reaction_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def write_and_fail(event: DepotOpened) -> None:
        Group.objects.create(name="half")
        raise HUNG_UP

    send_event(DepotOpened("east"), id="1", source="depot")
    with monkeypatch.context() as patch:
        patch.setattr(registry, "find_reaction", reacting(write_and_fail))
        run()
        assert not Group.objects.exists()
        assert IssuedCommand.objects.get().status == "retrying"
    pass_time(LONG)

    assert Group.objects.get().name == "depot east"


def test_retry_says_when_a_reaction_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(event: DepotOpened) -> None:
        raise Retry(HOUR)

    send_event(DepotOpened("east"), id="1", source="depot")
    with monkeypatch.context() as patch:
        patch.setattr(registry, "find_reaction", reacting(refuse))
        run()
    pass_time(hours=0.9)
    assert not Group.objects.exists()
    pass_time(hours=0.2)

    assert Group.objects.get().name == "depot east"


def test_a_reaction_that_fails_is_an_incident(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "find_reaction", reacting(raising(Permanent("no"))))
    send_event(DepotOpened("east"), id="1")
    run()

    incident = Incident.objects.open().get()
    assert (incident.kind, incident.instance_id) == ("command_failed", None)
