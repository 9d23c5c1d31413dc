"""PostgreSQL fails at the worst moment: in the middle of a transaction, and while a COMMIT is on its way.

What was committed is never done twice, what was not is done again, and nobody's attempt is charged for it.
"""

import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from itertools import product
from typing import Any, Literal
from uuid import uuid4

import psycopg
import pytest
from django.contrib.auth.models import Group, User
from django.db import DatabaseError, OperationalError, connection

from orchestrator import Answer, CommandContext, Envelope, send_events, start_process
from orchestrator.engine.operations import ActionRequest, escalate
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
from orchestrator.workers.current_worker import CurrentWorker
from tests.apps.long_work.fixtures import begin, long_work, said, written
from tests.apps.long_work.processes import LongMap, LongStep
from tests.apps.long_work.ways import entries
from tests.apps.process_managers.desk import accept, finish, place, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    CountScan,
    Courier,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.together import raised, together
from tests.reliability.cut_line import CutLine
from tests.reliability.silent_line import postgresql
from tests.services.database import NEEDS_SERVER, led_over
from tests.services.doing import fresh
from tests.services.patience import A_MINUTE, bar, wait_for
from tests.services.sizes import size

__all__ = ["begin", "long_work", "written"]

pytestmark = [
    pytest.mark.usefixtures("parcels"),
    NEEDS_SERVER,
]  # SQLite is in this process: there is no line to cut

SCANNED = ParcelScanned("P-1", "Nagoya")


def elsewhere() -> psycopg.Connection:
    """Return a connection of its own to the test database, past Django's."""
    given = connection.get_connection_params()
    wanted = ("dbname", "user", "password", "host", "port")
    words = {name: given[name] for name in wanted if given.get(name)}
    return psycopg.connect(**words, autocommit=True)


def cut_own_session() -> None:
    """End this thread's session from another one."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [pid] = cursor.fetchone()
    there = "SELECT 1 FROM pg_stat_activity WHERE pid = %s"
    with elsewhere() as other:
        other.execute("SELECT pg_terminate_backend(%s)", [pid])
        while other.execute(there, [pid]).fetchone():
            time.sleep(0.005)


class Once:
    """Does something the first time only, and notes the calls."""

    def __init__(self, what: Callable[[], object]) -> None:
        self.what = what
        self.keys: list[object] = []

    def __call__(self, command: object, context: CommandContext) -> Answer:
        Group.objects.create(name=f"call {len(self.keys)}")
        self.keys.append(context.command_id)
        if len(self.keys) == 1:
            self.what()
        return Answer("done")


def moved_once(event: InboxEvent) -> None:
    parcel = fresh(event).process
    assert parcel is not None
    assert (event.verdict, event.attempt, event.error) == (Verdict.MOVED, 1, "")
    assert (event.owner, parcel.revision, parcel.data["place"]) == ("", 3, "Nagoya")
    assert Checkpoint.objects.filter(instance=parcel).count() == 3
    assert not Incident.objects.exists()


def done_once(calls: list[object], times: int = 1) -> IssuedCommand:
    """Tell that the courier was booked, in one attempt, for which its handler was called so often under its key."""
    command = IssuedCommand.objects.get(type="BookCourier")
    assert (command.status, command.attempt) == (CommandStatus.DONE, 1)
    assert calls == [command.pk] * times
    return command


def grouped(name: str) -> list[str]:
    """Return the names of the groups that begin so, which handlers have made."""
    groups = Group.objects.filter(name__startswith=name)
    return list(groups.values_list("name", flat=True))


# In the middle of a transaction


def ask() -> None:
    Group.objects.count()


def swallow_the_loss() -> None:
    with pytest.raises(DatabaseError):
        ask()


@pytest.mark.parametrize("go_on", [ask, swallow_the_loss])
def test_a_session_that_ends_inside_a_transaction_is_nobodys_failure(
    go_on: Callable[[], None], handler: SetHandler
) -> None:
    """Nor does a handler change anything that does not tell of the loss."""

    def cut() -> None:
        cut_own_session()
        go_on()

    calls = Once(cut)
    handler(CountScan, calls)
    event = waiting_scan()
    finish()

    moved_once(event)
    assert (len(calls.keys), len(set(calls.keys))) == (2, 1)
    assert grouped("call") == ["call 1"]


def waiting_scan() -> InboxEvent:
    return InboxEvent.objects.get(pk=accept(underway(), SCANNED))


def about_to_be_booked() -> None:
    """Have a command after the commit due once its event is handled."""
    accept(place("P-1", Courier.PARTNER), ParcelPacked(3))


def test_a_command_whose_handler_loses_its_session_is_done_once(
    handler: SetHandler,
) -> None:
    """Its outcome is stored by another session: the effect outside is not repeated."""
    calls = Once(cut_own_session)
    handler(BookCourier, calls, after_commit=True, attempts=2)
    about_to_be_booked()
    finish()

    done_once(calls.keys)


# While a COMMIT is on its way


@pytest.fixture
def line(transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutLine]:
    """Lead Django's connections over a line that can be cut."""
    line = CutLine(postgresql())
    given = connection.settings_dict
    plain = {**given["OPTIONS"], "sslmode": "disable", "gssencmode": "disable"}
    connection.close()
    with monkeypatch.context() as patch:
        patch.setitem(given, "HOST", "127.0.0.1")
        patch.setitem(given, "PORT", str(line.port))
        patch.setitem(given, "OPTIONS", plain)
        yield line
        connection.close()
    line.close()


When = Literal["before", "after"]
both = pytest.mark.parametrize("when", ["before", "after"])


def again(
    line: CutLine, when: When, send: Callable[[], Any], at: bytes = b"COMMIT"
) -> Any:
    """Have somebody send who is cut off, and send once more; return what that gave."""
    with line.cut(when, at), pytest.raises(OperationalError):
        send()
    connection.close()
    return send()


@both
def test_an_event_whose_commit_was_cut_off_moves_its_process_once(
    line: CutLine, when: When
) -> None:
    event = waiting_scan()
    with line.cut(when):
        finish()

    moved_once(event)
    assert len(grouped("scan P-1")) == 1


@both
def test_a_start_whose_commit_was_cut_off_starts_one(line: CutLine, when: When) -> None:
    start_process("shipping", ParcelOrdered("P-1"))
    with line.cut(when):
        finish()

    assert ProcessInstance.objects.get().revision == 1
    assert grouped("packed") == ["packed P-1"]


@both
def test_a_sender_whose_commit_was_cut_off_resends(line: CutLine, when: When) -> None:
    order = ParcelOrdered("P-1")
    send = partial(start_process, "shipping", order, id="1", source="web")
    by_itself = b'INSERT INTO "orchestrator_inboxevent"'  # it commits
    receipt = again(line, when, send, by_itself)
    finish()

    assert receipt.repeated is (when == "after")
    assert InboxEvent.objects.filter(event_id="1").count() == 1
    assert ProcessInstance.objects.get().pk == receipt.process_id


@both
def test_a_sender_of_many_whose_commit_was_cut_off_may_send_them_again(
    line: CutLine, when: When
) -> None:
    envelopes = [Envelope(ParcelOrdered(f"P-{n}"), id=str(n)) for n in range(20)]
    receipts = again(line, when, partial(send_events, envelopes))

    assert {receipt.repeated for receipt in receipts} == {when == "after"}
    numbers = InboxEvent.objects.order_by("id").values_list("pk", flat=True)
    assert [receipt.number for receipt in receipts] == list(numbers)


@both
def test_an_operator_whose_commit_was_cut_off_may_press_again(
    line: CutLine, when: When, operator: User
) -> None:
    parcel = place()
    request = ActionRequest(operator, uuid4(), "late", 1)
    assert operator.has_perm("orchestrator.escalate_processinstance")
    again(line, when, partial(escalate, parcel.pk, request=request))

    parcel.refresh_from_db()
    assert (parcel.escalation_level, parcel.revision) == (1, 2)
    assert OperatorAction.objects.get().result == "done"


@both
def test_a_command_whose_outcome_was_cut_off_is_settled_once(
    line: CutLine, when: When, handler: SetHandler
) -> None:
    calls: list[object] = []

    def book(command: BookCourier, context: CommandContext) -> Answer:
        calls.append(context.command_id)
        if len(calls) == 1:
            line.armed = when
        return Answer("done", ParcelScanned("P-1", "Nagoya"))

    handler(BookCourier, book, after_commit=True)
    about_to_be_booked()
    finish()

    def settled() -> bool:
        finish()
        return not IssuedCommand.objects.exclude(wake_at=None).exists()

    wait_for(settled, 5)
    finish()

    assert line.cuts == 1
    done_once(calls, times=1)
    assert InboxEvent.objects.filter(type="ParcelScanned").count() == 1


# While the answer to a claim is on its way


def claim_of(table: str) -> bytes:
    """Return what is in every claim of a table's rows."""
    return f'"orchestrator_{table}" SET attempt = attempt + 1'.encode()


@pytest.mark.usefixtures("long_work")
@pytest.mark.parametrize("table", ["inboxevent", "issuedcommand", "steprun"])
def test_work_whose_claim_was_not_answered_is_claimed_again_at_once(
    line: CutLine, table: str, handler: SetHandler
) -> None:
    calls = Once(lambda: None)
    handler(BookCourier, calls, after_commit=True)
    about_to_be_booked()
    start_process(LongStep, LongStep.Input("a"))
    with line.cut("after", claim_of(table)):
        CurrentWorker().drain("default")

    event = InboxEvent.objects.get(type="ParcelPacked")
    assert (event.verdict, event.attempt, event.error) == (Verdict.MOVED, 1, "")
    done_once(calls.keys)
    run = StepRun.objects.get(node="work")
    assert (run.status, run.attempt, run.error) == ("done", 1, "")
    assert [entry.name for entry in entries()] == ["a"]
    assert not Incident.objects.exists()


@pytest.mark.usefixtures("long_work")
def test_what_the_lost_answer_to_an_elements_commit_left_is_gone_on_with_at_once(
    line: CutLine,
) -> None:
    """The commit that settled the last element of a map took up what follows."""
    process = start_process(LongMap, LongMap.Input({"a": "at once"}))
    with line.cut("after"):
        CurrentWorker().drain("default")

    ended = ProcessInstance.objects.get(pk=process.process_id)
    assert ended.status == Status.COMPLETED
    assert [entry.name for entry in entries()] == ["a"]


@pytest.mark.full_size("a lease of 10 s", seconds=150)
def test_a_worker_that_is_cut_off_at_its_claim_takes_the_work_up_within_a_lease(
    line: CutLine, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Though it is busy with other work all the time, for which its supervisor renews its leases."""
    lease, recovery = size(3, full=10), size(3, full=10) + 3
    monkeypatch.setenv("DATABASE_URL", led_over(line.port))
    monkeypatch.setenv("PROCESSION_LEASE_SECONDS", str(lease))
    monkeypatch.setenv("PROCESSION_HEARTBEAT_SECONDS", "1")
    workers = request.getfixturevalue("begin")(1)
    line.at, line.armed = claim_of("steprun"), "after"
    start_process(LongStep, LongStep.Input("lost"))
    wait_for(lambda: line.cuts == 1, 5, lambda: said(workers))
    begun = time.monotonic()
    for number in range(20):
        start_process(LongStep, LongStep.Input(f"n{number}", "sleep 1"))
    wait_for(lambda: "lost" in {entry.name for entry in entries()}, recovery)

    assert time.monotonic() - begun < bar(recovery)
    assert len(entries("end")) < 20
    # Its result may be stored by others for this worker to go on with: until then nothing is charged.
    run = StepRun.objects.filter(instance__data__name="lost")
    wait_for(run.filter(status="done").exists, 60, lambda: said(workers))
    assert run.get().attempt == 1
    assert [entry.name for entry in entries()].count("lost") == 1
    workers.kill()


# All the time


def cut_all(over: threading.Event) -> int:
    """End every session but this one's own, again and again until it is over; return how many there were."""
    cut = 0
    with elsewhere() as own:
        while not over.wait(0.05):
            rows = own.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                "datname = current_database() AND pid <> pg_backend_pid()"
            )
            cut += len(rows.fetchall())
    return cut


def work_until_quiet() -> None:
    """Run what is ready as a worker does, until nothing has been ready for a while."""
    worker, quiet = CurrentWorker(), 0
    deadline = time.monotonic() + A_MINUTE
    while quiet < 15 and time.monotonic() < deadline:
        quiet = 0 if worker.drain("default") else quiet + 1
        time.sleep(0.05)


def test_sessions_that_end_again_and_again_lose_and_double_nothing() -> None:
    parcels = [underway(f"P-{number}") for number in range(6)]
    for parcel, number in product(parcels, range(5)):
        accept(parcel, ParcelScanned(parcel.correlation_key, f"place {number}"))
    over = threading.Event()

    def work() -> None:
        errors = raised(together(work_until_quiet, work_until_quiet))
        over.set()
        assert errors == []

    cut, worked = together(partial(cut_all, over), work)
    connection.close()
    # What was held when its worker's session ended comes back with its lease.
    pass_time(timedelta(seconds=11))
    finish()

    assert worked is None
    assert cut > 5
    revisions = ProcessInstance.objects.values_list("revision", flat=True)
    assert list(revisions) == [7] * 6
    assert len(grouped("scan ")) == 30
    assert not Incident.objects.exists()
