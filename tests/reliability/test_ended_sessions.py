"""PostgreSQL ends a session whose transaction stands idle, or refuses a statement: whose doing it was decides.

What the engine was at is given back, nobody's attempt is charged. What an application's code did for too long inside a
transaction has failed like anything else.
"""

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import pytest
from django.contrib.auth.models import Group
from django.db import connection, transaction

from orchestrator import send_event, start_process
from orchestrator.configuration.conf import conf
from orchestrator.definition import Workflow, step
from orchestrator.engine.change.change import ProcessChange
from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    Incident,
    IssuedCommand,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
)
from orchestrator.testing import pass_time
from orchestrator.testing.clock import move_times_back
from tests.apps.patterns import patterns as p
from tests.apps.patterns.desk import finished, launch, visit
from tests.apps.patterns.fixtures import flows
from tests.apps.process_managers.desk import accept, finish, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    Courier,
    DepotOpened,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.wide_graphs.processes import Dense, Mesh
from tests.services.crews import knowing
from tests.services.database import NEEDS_SERVER

__all__ = ["flows"]

pytestmark = [
    pytest.mark.usefixtures("parcels", "flows"),
    NEEDS_SERVER,
]  # SQLite ends no sessions

LIMIT = 0.5  # seconds
SCANNED = ParcelScanned("P-1", "Nagoya")


def stand_idle() -> None:
    time.sleep(LIMIT + 0.3)


class Slow(Workflow):
    """Computes for too long inside the commit."""

    flow = (step(stand_idle, transactional=True, retries=0),)


known = knowing(Dense, Slow)


@pytest.fixture
def impatient(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Have every session of this process ended when its transaction stands idle for a moment."""
    given = connection.settings_dict
    limit = f"-c idle_in_transaction_session_timeout={int(LIMIT * 1000)}"
    connection.close()
    with monkeypatch.context() as patch:
        options = {**given["OPTIONS"], "options": limit}
        patch.setitem(given, "OPTIONS", options)
        yield
        connection.close()


@pytest.fixture
def interrupted(
    impatient: None, monkeypatch: pytest.MonkeyPatch
) -> list[ProcessInstance]:
    """Let the engine stand idle in the next change it makes; return the processes that it was made of."""
    write, changed = ProcessChange.write, list[ProcessInstance]()

    def slow_once(change: ProcessChange) -> None:
        if not changed and connection.in_atomic_block:
            changed.append(change.instance)
            stand_idle()
        write(change)

    monkeypatch.setattr(ProcessChange, "write", slow_once)
    return changed


def nobody_is_charged() -> None:
    """Tell that all went as if nothing had happened."""
    assert not Incident.objects.exists()
    for work in (InboxEvent, IssuedCommand, StepRun):
        assert not work._default_manager.exclude(attempt__lte=1).exists()


# The engine's own


def test_a_start_that_stood_idle_starts(interrupted: list[ProcessInstance]) -> None:
    place()

    assert len(interrupted) == 1
    assert InboxEvent.objects.get().verdict == Verdict.STARTED
    nobody_is_charged()


def moves() -> Callable[[], bool]:
    event = InboxEvent.objects.get(pk=accept(underway(), SCANNED))
    return InboxEvent.objects.filter(pk=event.pk, verdict=Verdict.MOVED).exists


def steps(workflow: type[Workflow], number: int) -> Callable[[], bool]:
    process = launch(workflow, number)
    done = ProcessInstance.objects.filter(pk=process.pk, status=Status.COMPLETED)
    return done.exists


def falls_due() -> Callable[[], bool]:
    place()
    move_times_back(timedelta(hours=1))
    return Group.objects.filter(name="reminded P-1").exists


@pytest.mark.parametrize(
    "begin",
    [moves, partial(steps, p.Parallel, 1), partial(steps, p.WideFan, 5), falls_due],
    ids=["event", "step", "elements", "deadline"],
)
def test_what_stood_idle_goes_on_uncharged(
    begin: Callable[[], Callable[[], bool]],
    impatient: None,
    request: pytest.FixtureRequest,
) -> None:
    has_happened = begin()
    interrupted = request.getfixturevalue("interrupted")
    pass_time(seconds=5)

    assert len(interrupted) == 1
    assert has_happened()
    nobody_is_charged()


def test_a_large_graph_is_made_in_a_transaction_of_the_callers(impatient: None) -> None:
    """It takes Python many times the limit."""
    with transaction.atomic():
        Group.objects.create(name="mine")
        receipt = start_process(Dense, Mesh(43, 10))

    assert ProcessInstance.objects.get().pk == receipt.process_id
    assert Group.objects.filter(name="mine").exists()


# An application's


def too_long(command: object) -> None:
    stand_idle()


@pytest.mark.usefixtures("impatient", "quick_to_ask")
def test_a_handler_that_lets_its_transaction_idle_fails(handler: SetHandler) -> None:
    handler(CountScan, too_long)
    event = tell(underway(), SCANNED)
    assert "StoodIdle: CountScan kept its transaction waiting" in event.error
    pass_time(minutes=10 * conf().EVENT_ATTEMPTS)

    event.refresh_from_db()
    assert (event.verdict, event.attempt) == (Verdict.FAILED, conf().EVENT_ATTEMPTS)
    incident = Incident.objects.open().get()
    assert "do what takes long after the commit" in incident.message


@pytest.mark.usefixtures("impatient")
def test_a_handler_that_asks_too_late_has_failed_too(handler: SetHandler) -> None:
    def ask_late(command: object) -> None:
        stand_idle()
        Group.objects.count()

    handler(CountScan, ask_late)
    event = tell(underway(), SCANNED)

    assert (event.attempt, event.verdict) == (1, Verdict.RECEIVED)
    assert "StoodIdle" in event.error


@pytest.mark.usefixtures("impatient", "quick_to_ask")
def test_a_transactional_step_that_keeps_its_transaction_waiting_has_failed() -> None:
    process = finished(Slow)

    assert process.status == Status.FAILED
    assert visit(process, "stand_idle").attempt == 1
    assert "stand_idle kept its transaction" in Incident.objects.open().get().message


@pytest.fixture
def quick_to_ask(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the engine look after any pause whether the session is still there."""
    monkeypatch.setattr(
        "orchestrator.engine.storage.application_code.calling.SHORTEST_IDLE_LIMIT",
        LIMIT,
    )


# Statements that are refused

REFUSALS = ("40001", "40P01", "53100", "53200", "55P03", "57P01", "25P03", "25006")


@pytest.fixture
def refused() -> Iterator[Callable[[], int]]:
    """Have one checkpoint after the other refused, each with another code; tell how often a checkpoint was written.

    A sequence does not roll back.
    """
    cases = "\n".join(
        f"WHEN {2 * number} THEN RAISE EXCEPTION 'injected' USING ERRCODE = '{state}';"
        for number, state in enumerate(REFUSALS, 1)
    )
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            CREATE SEQUENCE refusal_seq;
            CREATE FUNCTION refusal() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                CASE nextval('refusal_seq') {cases} ELSE RETURN NEW; END CASE;
            END $$;
            CREATE TRIGGER refusal BEFORE INSERT ON orchestrator_checkpoint
                FOR EACH ROW EXECUTE FUNCTION refusal();
            """
        )

    def written() -> int:
        with connection.cursor() as cursor:
            cursor.execute("SELECT last_value FROM refusal_seq")
            return int(cursor.fetchone()[0])

    yield written
    with connection.cursor() as cursor:
        cursor.execute("DROP FUNCTION refusal() CASCADE; DROP SEQUENCE refusal_seq")


def test_no_refusal_of_the_moment_is_charged(refused: Callable[[], int]) -> None:
    parcel = place("P-1", Courier.PARTNER)
    tell(parcel, ParcelPacked(3))
    for number in range(len(REFUSALS)):
        tell(parcel, ParcelScanned("P-1", f"place {number}"))
    send_event(DepotOpened("east"), id="1")
    finish()

    assert refused() > 2 * len(REFUSALS)
    assert not IssuedCommand.objects.exclude(status=CommandStatus.DONE).exists()
    assert IssuedCommand.objects.filter(type=BookCourier.__name__).count() == 1
    nobody_is_charged()


def test_no_passing_refusal_is_charged_to_a_step(refused: Callable[[], int]) -> None:
    process = launch(p.WideFan, 30)
    pass_time(seconds=20)

    process.refresh_from_db()
    assert process.status == Status.COMPLETED
    assert refused() > 2
    nobody_is_charged()
