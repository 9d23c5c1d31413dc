"""A handler that raises inside the transaction: everything is rolled back, tried again, and in the end an incident."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.utils import timezone

from orchestrator import Permanent, start_process
from orchestrator.configuration.conf import conf
from orchestrator.definition import Event
from orchestrator.engine.loops.drain import drain
from orchestrator.engine.operations import cancel
from orchestrator.engine.storage import stored_values
from orchestrator.engine.work.backoff import delay
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
)
from orchestrator.testing import Process, pass_time
from tests.apps.process_managers.desk import overdue, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    CountScan,
    CourierBooked,
    PackParcel,
    ParcelOrdered,
    ParcelScanned,
)
from tests.services.doing import did, fresh, raising, taking

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

LONG, BACKOFF = timedelta(minutes=10), timedelta(seconds=conf().BACKOFF_SECONDS)
SCANNED = ParcelScanned("P-1", "Nagoya")


def write_and_fail(command: object) -> None:
    Group.objects.create(name="half done")
    raise ConnectionError("the printer is off")


def write_and_fail_to_read(event: InboxEvent) -> Event:
    write_and_fail(event)
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
    assert (event.verdict, event.attempt, event.owner) == ("received", 1, "")
    assert "ConnectionError: the printer is off" in event.error
    assert event.wake_at is not None
    assert event.wake_at <= timezone.now() + BACKOFF
    assert failing.status == "retrying"
    checkpoint = Checkpoint.objects.get(instance=failing, revision=3)
    assert checkpoint.cause.startswith("failure:inboxevent:")
    assert (checkpoint.status, checkpoint.steps) == ("retrying", ["OnTheWay"])

    handler(CountScan, taking)
    pass_time(LONG)
    assert (fresh(event).verdict, event.attempt, event.error) == ("moved", 2, "")
    assert (fresh(failing).status, failing.data["place"]) == ("waiting", "Nagoya")


def test_after_the_last_attempt_it_is_an_incident(failing: ProcessInstance) -> None:
    event = tell(failing, SCANNED)
    pass_time(hours=1)

    attempts = conf().EVENT_ATTEMPTS
    assert (fresh(event).verdict, event.attempt) == ("failed", attempts)
    assert event.wake_at is None
    process = Process(failing.pk)
    assert (process.open_steps, process.status) == (["OnTheWay"], "failed")
    incident = Incident.objects.open().get()
    assert (incident.kind, incident.step) == ("event_failed", "OnTheWay")
    assert (incident.event_id, incident.instance_id) == (event.pk, failing.pk)
    assert incident.message == "ConnectionError: the printer is off"

    process.cancel()
    assert (process.status, fresh(event).verdict) == ("cancelled", "failed")
    assert process.incidents == []
    assert fresh(incident).resolution == "cancelled"


def test_a_permanent_error_is_not_tried_again(handler: SetHandler) -> None:
    handler(CountScan, raising(Permanent("no such place")))
    event = tell(underway(), SCANNED)

    assert (event.verdict, event.attempt) == ("failed", 1)


def test_a_start_that_fails_leaves_no_process(handler: SetHandler) -> None:
    handler(PackParcel, raising(Permanent("no boxes")))
    start_process("shipping", ParcelOrdered("P-1"))
    drain()

    assert not ProcessInstance.objects.exists()
    assert InboxEvent.objects.get().verdict == "failed"
    assert Incident.objects.open().get().instance_id is None


def test_a_failure_after_the_end_shows_on_no_process(failing: ProcessInstance) -> None:
    event = tell(failing, SCANNED)
    did(cancel, failing)
    pass_time(LONG)

    assert fresh(event).verdict == "unexpected"
    assert fresh(failing).status == "cancelled"


def test_all_is_well_if_what_failed_is_parked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A deadline took the process on meanwhile, and the new step does not expect the one that failed."""
    parcel = underway()
    with monkeypatch.context() as patch:
        patch.setattr(stored_values, "read_event", write_and_fail_to_read)
        event = tell(parcel, CourierBooked("B-1"))
    assert parcel.status == "retrying"
    overdue(parcel)
    pass_time(seconds=conf().PATIENCE_SECONDS / 2)

    assert (fresh(event).verdict, fresh(parcel).parked) == ("parked", 1)
    assert (parcel.step, parcel.status) == ("Missing", "waiting")


def test_an_error_in_sql_rolls_back_and_is_charged(handler: SetHandler) -> None:
    """On SQLite a table that is not there is an OperationalError, like a lock; it must not be tried for ever."""

    def ask_nonsense(command: CountScan) -> None:
        connection.cursor().execute("SELECT 1 FROM nowhere")

    handler(CountScan, ask_nonsense)
    event = tell(underway(), SCANNED)
    pass_time(conf().EVENT_ATTEMPTS * LONG)

    assert fresh(event).verdict == "failed"
    assert "nowhere" in Incident.objects.open().get().message


@pytest.mark.usefixtures("spread")
def test_backoff_doubles_up_to_a_limit_and_is_spread() -> None:
    most, first = conf().BACKOFF_CAP_SECONDS, conf().BACKOFF_SECONDS
    for attempt in (1, 2, 3, 50):
        longest = min(most, first * 2 ** (attempt - 1))
        waits = [delay(attempt).total_seconds() for _ in range(200)]
        assert min(waits) < longest / 2 < max(waits) <= longest
