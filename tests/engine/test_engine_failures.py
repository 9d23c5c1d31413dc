"""A handler that raises inside the transaction: everything is rolled back, tried again, and in the end an incident."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.utils import timezone

from orchestrator import Permanent, start_process
from orchestrator.conf import conf
from orchestrator.definition import Event
from orchestrator.engine import inbox
from orchestrator.engine.drain import drain
from orchestrator.engine.failures.backoff import delay
from orchestrator.engine.operations import ActionRequest, cancel, retry
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    Verdict,
)
from orchestrator.testing import Process, pass_time
from tests.apps.process_managers.desk import accept, overdue, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    CourierBooked,
    PackParcel,
    ParcelDelivered,
    ParcelOrdered,
    ParcelScanned,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

LONG = timedelta(minutes=10)
SCANNED = ParcelScanned("P-1", "Nagoya")


def write_and_fail(command: object) -> None:
    Group.objects.create(name="half done")
    raise ConnectionError("the printer is off")


def write_and_fail_to_read(kind: str, body: object) -> Event:
    write_and_fail(body)
    return CourierBooked("")


@pytest.fixture
def failing(handler: SetHandler) -> ProcessInstance:
    """Return a process whose scans cannot be counted."""
    handler(CountScan, write_and_fail)
    return underway()


def test_a_failing_handler_rolls_everything_back_and_is_tried_again(
    failing: ProcessInstance, handler: SetHandler
) -> None:
    Group.objects.all().delete()
    event = tell(failing, SCANNED)

    assert (failing.step, failing.data["place"]) == ("OnTheWay", "")
    assert not Group.objects.exists()
    assert not IssuedCommand.objects.filter(type="CountScan").exists()
    assert (event.verdict, event.attempt, event.owner) == (Verdict.RECEIVED, 1, "")
    assert "ConnectionError: the printer is off" in event.error
    latest = timezone.now() + timedelta(seconds=conf().BACKOFF_SECONDS)
    assert event.wake_at is not None
    assert event.wake_at <= latest
    assert failing.status == Status.RETRYING
    checkpoint = Checkpoint.objects.get(instance=failing, revision=3)
    assert checkpoint.cause.startswith("failure:inboxevent:")
    assert (checkpoint.status, checkpoint.steps) == ("retrying", ["OnTheWay"])

    handler(CountScan, lambda command: None)
    pass_time(LONG)
    event.refresh_from_db()
    failing.refresh_from_db()
    assert (event.verdict, event.attempt, event.error) == (Verdict.MOVED, 2, "")
    assert (failing.status, failing.data["place"]) == (Status.WAITING, "Nagoya")


def test_after_the_last_attempt_it_is_an_incident_until_its_process_is_cancelled(
    failing: ProcessInstance,
) -> None:
    event = tell(failing, SCANNED)
    pass_time(hours=1)

    event.refresh_from_db()
    attempts = conf().EVENT_ATTEMPTS
    assert (event.verdict, event.attempt, event.wake_at) == ("failed", attempts, None)
    process = Process(failing.pk)
    assert (process.open_steps, process.status) == (["OnTheWay"], "failed")
    incident = Incident.objects.open().get()
    assert (incident.kind, incident.step) == ("event_failed", "OnTheWay")
    assert (incident.event_id, incident.instance_id) == (event.pk, failing.pk)
    assert incident.message == "ConnectionError: the printer is off"

    process.cancel()
    event.refresh_from_db()
    assert (process.status, event.verdict) == ("cancelled", Verdict.FAILED)
    assert process.incidents == []
    assert Incident.objects.get(kind="event_failed").resolution == "cancelled"


def test_a_permanent_error_is_not_tried_again(handler: SetHandler) -> None:
    def refuse(command: CountScan) -> None:
        raise Permanent("no such place")

    handler(CountScan, refuse)
    event = tell(underway(), SCANNED)

    assert (event.verdict, event.attempt) == (Verdict.FAILED, 1)


def test_a_start_that_fails_leaves_no_process(handler: SetHandler) -> None:
    def refuse(command: PackParcel) -> None:
        raise Permanent("no boxes")

    handler(PackParcel, refuse)
    start_process("shipping", ParcelOrdered("P-1"))
    drain()

    assert not ProcessInstance.objects.exists()
    assert InboxEvent.objects.get().verdict == Verdict.FAILED
    assert Incident.objects.open().get().instance_id is None


def test_later_events_of_the_process_wait_until_it_is_decided(
    failing: ProcessInstance,
) -> None:
    tell(failing, SCANNED)
    later = tell(failing, ParcelDelivered("P-1"))
    assert (later.verdict, failing.status) == (Verdict.RECEIVED, Status.RETRYING)
    for _ in range(conf().EVENT_ATTEMPTS):
        pass_time(LONG)

    failing.refresh_from_db()
    assert failing.status == Status.COMPLETED
    assert (
        Incident.objects.open().get().message == "ConnectionError: the printer is off"
    )


def test_later_events_go_on_at_once_when_an_operator_has_it_tried_again(
    failing: ProcessInstance,
    handler: SetHandler,
    operator: User,
    pauses: list[float],
) -> None:
    event = tell(failing, SCANNED)
    later = tell(failing, ParcelDelivered("P-1"))
    handler(CountScan, lambda command: None)
    retry(failing.pk, request=ActionRequest(operator, uuid4(), "the printer is on"))
    drain()
    drain()

    event.refresh_from_db()
    later.refresh_from_db()
    assert (event.verdict, later.verdict) == (Verdict.MOVED, Verdict.MOVED)


def test_a_failure_after_the_end_is_not_shown_by_the_process(
    failing: ProcessInstance, operator: User
) -> None:
    event = tell(failing, SCANNED)
    cancel(failing.pk, request=ActionRequest(operator, uuid4(), "it is lost"))
    pass_time(LONG)

    event.refresh_from_db()
    failing.refresh_from_db()
    assert event.verdict == Verdict.UNEXPECTED
    assert failing.status == Status.CANCELLED


def test_a_process_is_well_again_when_the_event_that_failed_is_parked(
    monkeypatch: pytest.MonkeyPatch, pauses: list[float]
) -> None:
    """A deadline took the process on meanwhile, and the new step does not expect the one that failed."""
    parcel = underway()
    with monkeypatch.context() as patch:
        patch.setattr(inbox, "read", write_and_fail_to_read)
        event = tell(parcel, CourierBooked("B-1"))
    assert parcel.status == Status.RETRYING
    overdue(parcel)
    pass_time(seconds=conf().PATIENCE_SECONDS / 2)

    event.refresh_from_db()
    parcel.refresh_from_db()
    assert (event.verdict, parcel.parked) == (Verdict.PARKED, 1)
    assert (parcel.step, parcel.status) == ("Missing", Status.WAITING)


def test_neighbours_are_not_touched(failing: ProcessInstance) -> None:
    other = underway("P-2")
    accept(failing, SCANNED)
    tell(other, ParcelDelivered("P-2"))

    assert other.status == Status.COMPLETED


def test_an_error_in_sql_rolls_back_and_is_charged(handler: SetHandler) -> None:
    """On SQLite a table that is not there is an OperationalError, like a lock; it must not be tried for ever."""

    def ask_nonsense(command: CountScan) -> None:
        connection.cursor().execute("SELECT 1 FROM nowhere")

    handler(CountScan, ask_nonsense)
    event = tell(underway(), SCANNED)
    for _ in range(conf().EVENT_ATTEMPTS):
        pass_time(LONG)

    event.refresh_from_db()
    assert event.verdict == Verdict.FAILED
    assert "nowhere" in Incident.objects.open().get().message


@pytest.mark.usefixtures("spread")
def test_backoff_doubles_up_to_a_limit_and_is_spread() -> None:
    settings = conf()
    for attempt in (1, 2, 3, 50):
        longest = min(
            settings.BACKOFF_CAP_SECONDS, settings.BACKOFF_SECONDS * 2 ** (attempt - 1)
        )
        waits = [delay(attempt).total_seconds() for _ in range(200)]
        assert max(waits) <= longest
        assert max(waits) > longest / 2
        assert min(waits) < longest / 2
