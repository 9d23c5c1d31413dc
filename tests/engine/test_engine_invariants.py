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

from orchestrator.engine import invariants
from orchestrator.engine.invariants import CHECKS, stored_sets, violations
from orchestrator.engine.invariants.stored_sets import StoredPart
from orchestrator.models import (
    Checkpoint,
    InboxEvent,
    IssuedCommand,
    ProcessInstance,
    StepRun,
)
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.messages import Courier, ParcelScanned
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


def at(revision: int) -> Any:
    return Checkpoint.objects.filter(revision=revision)


def newest(parcel: ProcessInstance) -> Any:
    return Checkpoint.objects.filter(instance=parcel, revision=4)


def of_type(name: str) -> Any:
    return InboxEvent.objects.filter(type=name)


def scan() -> Any:
    return of_type("ParcelScanned")


def booking() -> Any:
    return IssuedCommand.objects.filter(type="BookCourier")


def visit(parcel: ProcessInstance) -> Any:
    return StepRun.objects.filter(instance=parcel, finished_at=None)


def mine(parcel: ProcessInstance) -> Any:
    return ProcessInstance.objects.filter(pk=parcel.pk)


def a_visit_too_many(parcel: ProcessInstance) -> None:
    about = {"node": "Packing", "status": "waiting", "started_at": NOW}
    StepRun.objects.create(instance=parcel, **about)


def a_checkpoint_too_many(parcel: ProcessInstance) -> None:
    copy = newest(parcel).get()
    copy.pk, copy.revision, copy.cause = None, 5, "failure:steprun:1:5"
    copy.save(force_insert=True)


OF_WORKFLOWS = {"joins", "maps", "results", "sub_processes", "undoing"}
"""Rules about what process managers do not have; see test_engine_invariants_workflows.py."""

IN_A_TOWN = {
    "bulk",
    "leases",
    "retries",
    "statuses",
    "deadlines",
    "incidents",
    "discarded",
    "ignored",
    "keys",
    "stale_ids",
    "body_hashes",
}
"""Rules of which test_planted_defects has the defects, or test_outside_ids."""

NOW, HOUR = timezone.now(), timedelta(hours=1)
LONG_AGO = NOW - timedelta(minutes=5)

PLANTED: dict[str, dict[str, Defect]] = {
    "conservation": {
        "a moved event names no revision": lambda p: scan().update(revision=None),
        "a received event is looked at by nobody": lambda p: scan().update(verdict="received", wake_at=None),
        "an event was applied twice": lambda p: of_type("CourierBooked").update(revision=4),
        "a moved event has no checkpoint": lambda p: scan().update(revision=9),
    },
    "progress": {
        "a process says that it is paused and is not": lambda p: mine(p).update(status="paused"),
        "a process is paused and does not say so": lambda p: mine(p).update(paused_at=LONG_AGO),
        "a deadline rests though its process goes on": lambda p: visit(p).update(remaining=HOUR, wake_at=None),
        "an event rests though its process goes on": lambda p: scan().update(verdict="parked", remaining=HOUR),
        "it stands in no step": lambda p: visit(p).update(finished_at=NOW),
        "it stands in another step than its visit": lambda p: visit(p).update(node="Missing"),
        "it stands in two steps": a_visit_too_many,
        "it has failed and nobody is told": lambda p: mine(p).update(status="failed"),
        "it is retrying and nothing is to be retried": lambda p: mine(p).update(status="retrying"),
        "it has ended and still stands in a step": lambda p: mine(p).update(finished_at=NOW),
    },
    "parked": {
        "a parked event lies that the present step takes": lambda p: scan().update(verdict="parked", revision=None),
    },
    "dense_history": {
        "a checkpoint is missing": lambda p: newest(p).delete(),
        "a checkpoint in the middle is missing": lambda p: at(2).delete(),
        "the first checkpoint is missing": lambda p: at(1).delete(),
        "the revision ran ahead": lambda p: mine(p).update(revision=F("revision") + 1),
        "a checkpoint too many": a_checkpoint_too_many,
    },
    "model": {
        "the process stands elsewhere": lambda p: mine(p).update(step="Missing"),
        "the data was altered": lambda p: mine(p).update(data={**p.data, "place": "Osaka"}),
        "the data lacks a field": lambda p: mine(p).update(data={"parcel_id": "P-1"}),
        "the data is no object": lambda p: mine(p).update(data=[1]),
        "a checkpoint's data was altered": lambda p: newest(p).update(data={**p.data, "place": "Osaka"}),
        "a checkpoint's checksum was altered": lambda p: newest(p).update(checksum="0" * 64),
        "a checkpoint stands elsewhere": lambda p: newest(p).update(steps=["Missing"]),
        "the body of a handled event was altered": lambda p: scan().update(body={"parcel_id": "P-1", "place": "Osaka"}),
        "a handled event was deleted": lambda p: scan().delete(),
        "the running code lacks the definition": lambda p: mine(p).update(name="flying"),
        "an unknown kind of cause": lambda p: newest(p).update(cause="magic:1"),
    },
    "fences": {
        "a settled event is still held": lambda p: scan().update(owner="worker"),
        "a settled command is still held": lambda p: booking().update(owner="worker"),
        "a visit without a deadline is still held": lambda p: StepRun.objects.filter(wake_at=None).update(owner="w"),
    },
    "outbox": {
        "a due event is taken by nobody": lambda p: scan().update(verdict="parked", wake_at=LONG_AGO),
        "a due command is taken by nobody": lambda p: booking().update(status="ready", wake_at=LONG_AGO),
        "a due deadline is taken by nobody": lambda p: visit(p).update(wake_at=LONG_AGO),
        "a command that is not done will never be": lambda p: booking().update(status="ready", wake_at=None),
        "a command belongs to no transition": lambda p: booking().update(revision=9),
    },
    "audit": {
        "an operator's effect has no audit row": lambda p: newest(p).update(cause=f"operator:{uuid4()}"),
    },
    "references": {
        "an event belongs to no process": lambda p: scan().update(process_id=uuid7()),
        "the command that caused an event is gone": lambda p: booking().delete(),
    },
}  # fmt: skip


def test_defects_are_found(parcel: ProcessInstance, subtests: pytest.Subtests) -> None:
    """Plants them one after the other in one process, which is whole again after each."""
    compared = set[str]()
    for rule, defects in PLANTED.items():
        for name, defect in defects.items():
            with subtests.test(name), undone():
                defect(parcel)
                found = broken()  # as it is asked after each test
                assert rule in {line.partition(":")[0] for line in found}
                if rule not in compared:
                    compared.add(rule)
                    assert violations() == found


def test_every_rule_has_a_defect_that_it_finds() -> None:
    elsewhere = OF_WORKFLOWS | IN_A_TOWN
    assert {check.__name__ for check in CHECKS} - elsewhere == set(PLANTED)


def test_many_processes_are_asked_for_by_as_many_statements_as_few() -> None:
    def asked(number: int) -> int:
        for _ in range(number):
            tell(underway(f"P-{uuid4()}", Courier.PARTNER), ParcelScanned("P", "Kobe"))
        with CaptureQueriesContext(connection) as sent:
            assert violations() == []
        return len(sent)

    assert asked(2) == asked(20)


def test_sets_of_processes_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_sets, "MOST_PROCESSES", 4)
    monkeypatch.setattr(stored_sets, "MOST_REVISIONS", 5)
    long = [underway(f"P-{number}", Courier.PARTNER) for number in range(3)]
    short = [place(f"Q-{number}") for number in range(6)]
    for parcel in long:
        tell(parcel, ParcelScanned(parcel.correlation_key, "Kobe"))

    sets = [[one.pk for one in some.processes] for some in stored_sets.process_sets()]

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


def test_the_command_says_what_is_broken(
    parcel: ProcessInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    with undone():
        mine(parcel).update(step="Missing")
        with pytest.raises(SystemExit, match="1"):
            call_command("check_invariants")

    said = f"model: {parcel.pk} is not where its history ends"
    assert said in capsys.readouterr().out


def test_the_command_says_that_all_holds_also_in_json(
    parcel: ProcessInstance, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("check_invariants")
    assert capsys.readouterr().out == f"{len(CHECKS)} invariants, 0 violations\n"

    call_command("check_invariants", "--json")
    said = json.loads(capsys.readouterr().out)
    assert said == {"checks": [check.__name__ for check in CHECKS], "violations": []}


@pytest.mark.django_db(transaction=True)
def test_a_long_look_keeps_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the history of a process with ten thousand events is, between two questions to the database."""

    def long(part: StoredPart) -> Iterator[str]:
        time.sleep(0.8)
        yield from (str(one.pk) for one in ProcessInstance.objects.all())

    monkeypatch.setattr(invariants, "OF_TABLES", (long,))
    if connection.vendor == "postgresql":
        connection.cursor().execute("SET idle_in_transaction_session_timeout = 500")

    assert violations() == []
    connection.close()  # and with it the short limit
