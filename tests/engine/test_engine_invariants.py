"""The oracle finds what is planted: for each thing that must always hold, a broken row is seen and named."""

import json
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from uuid6 import uuid7

from orchestrator import Permanent
from orchestrator.engine import invariants
from orchestrator.engine.invariants import CHECKS, reading, violations
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    Incident,
    IssuedCommand,
    OperatorAction,
    ProcessInstance,
    StepRun,
)
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    CourierBooked,
    ParcelDelivered,
    ParcelScanned,
)
from tests.services.invariants import broken, undone

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]


@pytest.fixture
def parcel() -> ProcessInstance:
    """Return a process with some history: events, data changed, a booking made."""
    parcel = underway("P-1", Courier.PARTNER)
    tell(parcel, ParcelScanned("P-1", "Nagoya"))
    assert parcel.revision == 4
    assert violations() == []
    return parcel


Defect = Callable[[ProcessInstance], object]


def newest(parcel: ProcessInstance) -> Any:
    return Checkpoint.objects.filter(instance=parcel, revision=4)


def scan() -> Any:
    return InboxEvent.objects.filter(type="ParcelScanned")


def booking() -> Any:
    return IssuedCommand.objects.filter(type="BookCourier")


def visit(parcel: ProcessInstance) -> Any:
    return StepRun.objects.filter(instance=parcel, finished_at=None)


def mine(parcel: ProcessInstance) -> Any:
    return ProcessInstance.objects.filter(pk=parcel.pk)


OF_WORKFLOWS = {"joins", "maps", "results", "sub_processes", "undoing"}
"""Rules about what process managers do not have; see test_engine_invariants_workflows.py."""

LONG_AGO = timezone.now() - timedelta(minutes=5)

PLANTED: list[tuple[str, str, Defect]] = [
    ("a moved event names no revision", "conservation", lambda p: scan().update(revision=None)),
    (
        "a received event is looked at by nobody",
        "conservation",
        lambda p: scan().update(verdict="received", wake_at=None),
    ),
    (
        "an event was applied twice",
        "conservation",
        lambda p: InboxEvent.objects.filter(process=p, type="CourierBooked").update(
            revision=4
        ),
    ),
    ("a moved event has no checkpoint", "conservation", lambda p: scan().update(revision=9)),
    ("a process says that it is paused and is not", "progress", lambda p: mine(p).update(status="paused")),
    ("a process is paused and does not say so", "progress", lambda p: mine(p).update(paused_at=LONG_AGO)),
    (
        "a deadline rests though its process goes on",
        "progress",
        lambda p: visit(p).update(remaining=timedelta(hours=1), wake_at=None),
    ),
    (
        "an event rests though its process goes on",
        "progress",
        lambda p: scan().update(verdict="parked", remaining=timedelta(hours=1)),
    ),
    (
        "a parked event lies that the present step takes",
        "untaken",
        lambda p: scan().update(verdict="parked", revision=None),
    ),
    ("a checkpoint is missing", "dense_history", lambda p: newest(p).delete()),
    (
        "a checkpoint in the middle is missing",
        "dense_history",
        lambda p: Checkpoint.objects.filter(instance=p, revision=2).delete(),
    ),
    (
        "the first checkpoint is missing",
        "dense_history",
        lambda p: Checkpoint.objects.filter(instance=p, revision=1).delete(),
    ),
    ("the revision ran ahead", "dense_history", lambda p: mine(p).update(revision=F("revision") + 1)),
    (
        "a checkpoint too many",
        "dense_history",
        lambda p: Checkpoint.objects.create(
            instance=p,
            revision=5,
            cause="failure:steprun:1:5",
            steps=["OnTheWay"],
            status="waiting",
            data=p.data,
            checksum="x",
            at=timezone.now(),
        ),
    ),
    ("the process stands elsewhere", "model", lambda p: mine(p).update(step="Missing")),
    ("the data was altered", "model", lambda p: mine(p).update(data={**p.data, "place": "Osaka"})),
    ("the data lacks a field", "model", lambda p: mine(p).update(data={"parcel_id": "P-1"})),
    ("the data is no object", "model", lambda p: mine(p).update(data=[1])),
    ("a checkpoint's data was altered", "model", lambda p: newest(p).update(data={**p.data, "place": "Osaka"})),
    ("a checkpoint's checksum was altered", "model", lambda p: newest(p).update(checksum="0" * 64)),
    ("a checkpoint stands elsewhere", "model", lambda p: newest(p).update(steps=["Missing"])),
    (
        "the body of a handled event was altered",
        "model",
        lambda p: scan().update(body={"parcel_id": "P-1", "place": "Osaka"}),
    ),
    ("a handled event was deleted", "model", lambda p: scan().delete()),
    ("the running code lacks the definition", "model", lambda p: mine(p).update(name="flying")),
    ("an unknown kind of cause", "model", lambda p: newest(p).update(cause="magic:1")),
    ("it stands in no step", "progress", lambda p: visit(p).update(finished_at=timezone.now())),
    ("it stands in another step than its visit", "progress", lambda p: visit(p).update(node="Missing")),
    (
        "it stands in two steps",
        "progress",
        lambda p: StepRun.objects.create(
            instance=p, node="Packing", status="waiting", started_at=timezone.now()
        ),
    ),
    ("it has failed and nobody is told", "progress", lambda p: mine(p).update(status="failed")),
    ("it is retrying and nothing is to be retried", "progress", lambda p: mine(p).update(status="retrying")),
    ("it has ended and still stands in a step", "progress", lambda p: mine(p).update(finished_at=timezone.now())),
    ("a settled event is still held", "fences", lambda p: scan().update(owner="worker")),
    ("a settled command is still held", "fences", lambda p: booking().update(owner="worker")),
    (
        "a visit without a deadline is still held",
        "fences",
        lambda p: StepRun.objects.filter(instance=p, wake_at=None).update(owner="w"),
    ),
    ("a due event is taken by nobody", "outbox", lambda p: scan().update(verdict="parked", wake_at=LONG_AGO)),
    ("a due command is taken by nobody", "outbox", lambda p: booking().update(status="ready", wake_at=LONG_AGO)),
    ("a due deadline is taken by nobody", "outbox", lambda p: visit(p).update(wake_at=LONG_AGO)),
    ("a command that is not done will never be", "outbox", lambda p: booking().update(status="ready", wake_at=None)),
    ("a command belongs to no transition", "outbox", lambda p: booking().update(revision=9)),
    ("an operator's effect has no audit row", "audit", lambda p: newest(p).update(cause=f"operator:{uuid4()}")),
    ("an event belongs to no process", "references", lambda p: scan().update(process_id=uuid7())),
    ("the command that caused an event is gone", "references", lambda p: booking().delete()),
]  # fmt: skip


def test_each_planted_defect_is_found(
    parcel: ProcessInstance, subtests: pytest.Subtests
) -> None:
    """Plants them one after the other in one process, which is whole again after each."""
    compared = set[str]()
    for name, rule, defect in PLANTED:
        with subtests.test(name), undone():
            defect(parcel)
            found = broken()  # as it is asked after each test
            assert rule in {line.partition(":")[0] for line in found}
            if rule not in compared:
                compared.add(rule)
                assert violations() == found


def test_every_rule_has_a_defect_that_it_finds() -> None:
    elsewhere = OF_WORKFLOWS | {"bulk"}  # test_planted_defects has that
    about = {check.__name__ for check in CHECKS} - elsewhere

    assert about == {rule for _, rule, _ in PLANTED}


def test_a_finding_says_where(parcel: ProcessInstance) -> None:
    with undone():
        newest(parcel).delete()
        found = violations()

    assert f"dense_history: {parcel.pk} is at revision 4 but has 3 checkpoints" in found


def test_many_processes_are_asked_for_by_as_many_statements_as_few() -> None:
    def asked(number: int) -> int:
        for _ in range(number):
            tell(underway(f"P-{uuid4()}", Courier.PARTNER), ParcelScanned("P", "Kobe"))
        with CaptureQueriesContext(connection) as sent:
            assert violations() == []
        return len(sent)

    few = asked(2)

    assert asked(20) == few


def test_processes_are_looked_at_in_sets_that_stay_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reading, "MOST_PROCESSES", 4)
    monkeypatch.setattr(reading, "MOST_REVISIONS", 5)
    long = [underway(f"P-{number}", Courier.PARTNER) for number in range(3)]
    short = [place(f"Q-{number}") for number in range(6)]
    for parcel in long:
        tell(parcel, ParcelScanned(parcel.correlation_key, "Kobe"))

    sets = [[one.pk for one in some.processes] for some in reading.process_sets()]

    assert [len(some) for some in sets] == [2, 2, 4, 1]
    assert [pk for some in sets for pk in some] == [one.pk for one in (*long, *short)]
    with undone():
        newest(long[2]).delete()
        rules = {line.partition(":")[0] for line in violations()}
    assert {"dense_history", "model"} <= rules


def test_after_a_test_that_stored_nothing_one_statement_asks_for_all() -> None:
    for _ in range(2):
        assert broken() == []  # what the checks ask when there is nothing is known then
    with CaptureQueriesContext(connection) as sent:
        assert broken() == []

    assert len([query for query in sent if "orchestrator_" in query["sql"]]) == 1


def test_the_command_says_what_is_broken_and_fails(
    parcel: ProcessInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    with undone():
        mine(parcel).update(step="Missing")
        with pytest.raises(SystemExit) as ended:
            call_command("check_invariants")

    assert ended.value.code == 1
    assert (
        f"model: {parcel.pk} is not where its history ends" in capsys.readouterr().out
    )


def test_the_command_speaks_json(
    parcel: ProcessInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("check_invariants", "--json")

    said = json.loads(capsys.readouterr().out)
    assert said == {"checks": [check.__name__ for check in CHECKS], "violations": []}


# What is in order is not complained of


def test_trouble_that_people_know_of_is_in_order(handler: SetHandler) -> None:
    def refuse(command: object) -> None:
        raise Permanent("no")

    handler(BookCourier, refuse, after_commit=True)
    parcel = underway("P-1", Courier.PARTNER)
    tell(parcel, ParcelScanned("P-1", "Nagoya"))

    assert Incident.objects.open().exists()
    assert violations() == []


def test_everything_at_once_is_in_order() -> None:
    place("P-1")
    parcel = underway("P-2", Courier.PARTNER)
    tell(parcel, CourierBooked("B-9"))
    tell(parcel, ParcelDelivered("P-2"))
    tell(parcel, ParcelScanned("P-2", "Nagoya"))

    assert violations() == []
    assert not OperatorAction.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_what_is_gone_through_for_long_does_not_lose_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As the history of a process with ten thousand events is, between two questions to the database."""

    def long() -> Iterator[str]:
        time.sleep(0.8)
        yield from (str(one.pk) for one in ProcessInstance.objects.all())

    monkeypatch.setattr(invariants, "OF_TABLES", (long,))
    if connection.vendor == "postgresql":
        connection.cursor().execute("SET idle_in_transaction_session_timeout = 500")

    assert violations() == []
    connection.close()  # and with it the short limit
