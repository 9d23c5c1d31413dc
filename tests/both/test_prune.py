"""Processes that ended long ago are removed, whole, and nothing else is."""

import fcntl
import json
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError
from django.db import connection, connections, transaction

from orchestrator import send_event
from orchestrator.definition import Workflow
from orchestrator.engine import operations
from orchestrator.engine.operations import ActionRequest
from orchestrator.engine.storage import pruning
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    Definition,
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
    StepRun,
    Verdict,
)
from orchestrator.retention import ALL_OTHERS, retention
from orchestrator.testing import registered, run, started
from orchestrator.testing.clock import PROCESS_OF, move_times_back
from orchestrator.testing.process import Anybody
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.messages import Courier, ParcelDelivered, ParcelScanned
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import together
from tests.apps.subprocess_maps.processes import Fleet, Order, Passage
from tests.services.crews import knowing
from tests.services.doing import taking
from tests.services.patience import wait_for
from tests.services.pruned import prune
from tests.services.workers import hired, said

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "fleets")]

YEAR = timedelta(days=365)
MONTH = {ALL_OTHERS: timedelta(days=30)}


fleets = knowing(Fleet, Passage, autouse=False)


def delivered(parcel_id: str = "P-1", ago: timedelta = YEAR) -> ProcessInstance:
    """Bring a parcel to its receiver; it ended so long ago."""
    parcel = underway(parcel_id, Courier.PARTNER)
    tell(parcel, ParcelScanned(parcel_id, "Nagoya"))
    tell(parcel, ParcelDelivered(parcel_id))
    move_times_back(ago, [parcel.pk])
    return parcel


def rows() -> dict[str, int]:
    tables = PROCESS_OF.keys() - {OperatorAction}
    return {table.__name__: table._default_manager.count() for table in tables}


def test_an_old_process_goes_with_all_that_belongs_to_it() -> None:
    place("P-2")
    before = rows()
    delivered("P-1")

    assert "1 processes removed" in prune("--keep", "30")
    assert rows() == before


def test_what_ended_later_goes_on_or_is_not_named_stays_and_all_of_a_dry_run() -> None:
    delivered("P-1", ago=timedelta(days=29))
    underway("P-2")
    before = rows()

    prune("--keep", "shipping=30", "--keep", "1000")
    assert "0 processes" in prune("--keep", "fleet=1")
    assert "shipping: 1" in prune("--keep", "28", "--dry-run")
    assert rows() == before
    assert not OperatorAction.objects.exists()


def test_each_definition_is_kept_for_its_own_time() -> None:
    delivered("P-1", ago=timedelta(days=50))
    fleet = started(Fleet, Order(0)).id
    move_times_back(timedelta(days=50), [fleet])

    prune("--keep", "shipping=100", "--keep", "10")

    assert [process.name for process in ProcessInstance.objects.all()] == ["shipping"]


def test_sub_processes_go_with_their_parent_and_never_without_it() -> None:
    fleet = started(Fleet, Order(3)).id
    children = ProcessInstance.objects.filter(parent=fleet)
    [first, *others] = children.values_list("pk", flat=True)

    for aged in ([first], others):  # the parent is too young
        move_times_back(YEAR, aged)
        assert "0 processes" in prune("--keep", "30")
    move_times_back(YEAR, [fleet])
    move_times_back(-YEAR, [first])  # and so is a part
    assert "0 processes" in prune("--keep", "30")
    move_times_back(YEAR, [first])
    assert "4 processes" in prune("--keep", "30")
    assert (ProcessInstance.objects.count(), StepRun.objects.count()) == (0, 0)


def test_what_needs_a_person_or_a_worker_stays() -> None:
    parcels = [delivered(f"P-{number}") for number in range(3)]
    told = {"kind": Incident.Kind.COMMAND_FAILED, "message": "look"}
    at = parcels[0].started_at
    Incident.objects.create(**told, instance=parcels[0], opened_at=at)
    send_event(ParcelScanned("P-1", "late"), id="late", process_id=parcels[1].pk)

    assert "1 processes" in prune("--keep", "30")
    left = set(ProcessInstance.objects.values_list("pk", flat=True))
    assert left == {parcels[0].pk, parcels[1].pk}
    Incident.objects.all().delete()
    run()


def test_an_event_that_comes_afterwards_is_shown_as_one_without_a_process() -> None:
    parcel = delivered("P-1")
    prune("--keep", "30")
    send_event(ParcelScanned("P-1", "late"), id="late", process_id=parcel.pk)
    run()

    assert InboxEvent.objects.get(event_id="late").verdict == Verdict.UNROUTED


def test_it_is_audited_also_of_a_definition_or_an_account_without_a_name_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for number in range(3):
        delivered(f"P-{number}")
    prune("--keep", "shipping=30")

    audit = OperatorAction.objects.get()
    assert (audit.action, audit.after) == ("prune", {"processes": {"shipping": 3}})
    assert "shipping 30 days" in audit.reason
    assert audit.actor_name

    delivered("P-9")
    Definition.objects.update(name="gone")
    ProcessInstance.objects.update(name="gone")
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 2**31 - 7)
    assert "1 processes removed" in prune("--keep", "gone=30")
    assert OperatorAction.objects.latest("pk").actor_name == f"uid {2**31 - 7}"


def test_each_process_is_exported_whole_before_it_goes(tmp_path: Path) -> None:
    fleet = started(Fleet, Order(1)).id
    move_times_back(YEAR, None)
    parcel = delivered("P-1")
    file = tmp_path / "ended.jsonl"
    file.write_text('{"half of a li')
    counts = rows()

    prune("--keep", "30", "--export", str(file))

    lines = file.read_text().splitlines()
    whole = {one["process"]["id"]: one for one in map(json.loads, lines[1:])}
    assert str(fleet) in whole
    one = whole[str(parcel.pk)]
    assert (one["process"]["name"], one["process"]["version"]) == ("shipping", 1)
    assert one["process"]["data"]["parcel_id"] == "P-1"
    parts = {"visits": "StepRun", "checkpoints": "Checkpoint"}
    parts |= {"events": "InboxEvent", "commands": "IssuedCommand"}
    for part, table in parts.items():
        assert sum(len(of[part]) for of in whole.values()) == counts[table]
    events = [row["type"] for row in one["events"]]
    assert events[:2] == ["ParcelOrdered", "ParcelPacked"]


def test_an_export_is_for_its_owner_alone(tmp_path: Path) -> None:
    there, new = tmp_path / "there.jsonl", tmp_path / "new.jsonl"
    there.touch(0o644)

    for file in (there, new):
        delivered(file.stem)
        prune("--keep", "30", "--export", str(file))
        assert file.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_done_as_it_is_said_removes_nothing(tmp_path: Path) -> None:
    delivered("P-1")
    before = rows()
    pipe, locked = tmp_path / "pipe", tmp_path / "removed.jsonl"
    os.mkfifo(pipe)
    into = ("--keep", "30", "--export")
    days = "in days from 1 to 36500"
    places = ("", str(pipe), os.devnull, "a\0b", str(tmp_path / "no" / "folder"))
    mistakes = ("", "0", "x", "shipping=", "shipping=-1", "1.5")
    refusals: list[tuple[tuple[str, ...], str]] = [
        *(((*into, where), "cannot write") for where in places),
        ((*into, str(locked)), "another run writes to"),
        (("--keep", "shiping=30"), r"no definition 'shiping'; .* shipping"),
        *((("--keep", keep), days) for keep in mistakes),
        (("--keep", "=30"), "names no definition"),  # a script's variable is not set
        ((), r"kept without a limit.*PROCESSION_RETENTION_DAYS"),
    ]
    with locked.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        for options, said in refusals:
            with pytest.raises(CommandError, match=said) as refused:
                prune(*options)
            assert "None" not in str(refused.value)
            assert rows() == before, options
    full = Path("/dev/full").open("ab")  # noqa: SIM115
    with pytest.raises(OSError, match="No space left"), full as file:
        pruning.Pruning(MONTH, "tests", file, rest=0).run()
    assert rows() == before
    assert "1 processes removed" in prune(*into, str(locked))


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite locks it all")
def test_nobody_is_waited_for() -> None:
    parcels = [delivered(f"P-{number}") for number in range(2)]
    held, done = Event(), Event()

    def hold() -> None:
        with transaction.atomic():
            ProcessInstance.objects.select_for_update().get(pk=parcels[0].pk)
            held.set()
            done.wait(60)
        connections.close_all()

    holder = Thread(target=hold)
    holder.start()
    held.wait(60)
    try:
        assert "1 processes" in prune("--keep", "30")
        assert ProcessInstance.objects.get().pk == parcels[0].pk
    finally:
        done.set()
        holder.join()
    assert "1 processes" in prune("--keep", "30")


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite locks it all")
@pytest.mark.parametrize("name", ["assign", "reveal", "export"])
def test_a_press_on_what_is_being_removed_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    parcel = delivered()
    removing, go_on = Event(), Event()
    remove = pruning._delete

    def slowly(ids: list[Any]) -> Any:
        found = remove(ids)
        removing.set()
        go_on.wait(20)
        return found

    def press() -> None:
        given: dict[str, Any] = {"assign": ["somebody"], "export": [taking]}
        getattr(operations, name)(parcel.pk, *given.get(name, []), request=request)

    monkeypatch.setattr(pruning, "_delete", slowly)
    request = ActionRequest(Anybody(), uuid4(), "it is asked for")
    with ThreadPoolExecutor(2) as pool:
        pruned = pool.submit(closing(prune), "--keep", "30")
        assert removing.wait(20)
        pressed = pool.submit(closing(press))
        wait_for(waits_for_a_lock, 10)
        go_on.set()
        pruned.result(20)
        refusal = pressed.exception(20)

    assert repr(refusal) == repr(OperationRefused(f"there is no process {parcel.pk}"))


def closing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function for a thread that does not keep its connection."""

    def called(*given: Any) -> Any:
        try:
            return function(*given)
        finally:
            connections.close_all()

    return called


def waits_for_a_lock() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted")
        return cursor.fetchone() is not None


@pytest.mark.django_db(transaction=True)
def test_what_the_projects_own_tables_refer_to_stays_and_holds_up_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The export has what was removed, each once, and nothing that stays."""
    file = tmp_path / "removed.jsonl"
    parcels = [delivered(f"P-{number}") for number in range(7)]
    processes, key = ProcessInstance._meta.db_table, ProcessInstance._meta.pk
    kept = key.get_db_prep_value(parcels[3].pk, connection)
    with connection.cursor() as cursor:
        cursor.execute(
            f"CREATE TABLE bill (process {key.db_type(connection)} REFERENCES {processes} (id)"
            " DEFERRABLE INITIALLY DEFERRED)"
        )
        cursor.execute("INSERT INTO bill VALUES (%s)", [kept])
    try:
        assert "6 processes removed" in prune("--keep", "30", "--export", str(file))
        assert ProcessInstance.objects.get().pk == parcels[3].pk
        assert f"{parcels[3].pk} stays" in capsys.readouterr().err
        assert OperatorAction.objects.get().after == {"processes": {"shipping": 6}}
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE bill")
    lines = map(json.loads, file.read_text().splitlines())
    there = sorted(line["process"]["id"] for line in lines)
    assert there == sorted(str(one.pk) for one in parcels if one != parcels[3])
    assert "1 processes removed" in prune("--keep", "30")


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_once_remove_each_process_once() -> None:
    for number in range(8):
        delivered(f"P-{number}")

    def one() -> int:
        return pruning.Pruning(MONTH, "tests", rest=0).run().total()

    assert sum(together(one, one)) == 8
    assert not ProcessInstance.objects.exists()


def test_the_statements_of_a_set_do_not_grow_with_its_processes(
    django_assert_max_num_queries: object,
) -> None:
    for number in range(pruning.FEWEST):
        delivered(f"P-{number}")

    with django_assert_max_num_queries(32):  # type: ignore[operator]
        prune("--keep", "30")
    assert not ProcessInstance.objects.exists()


# By itself


def test_without_days_it_goes_by_what_definitions_and_settings_say(
    monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(Shipping, "retention", timedelta(days=30))
    delivered("P-1", ago=timedelta(days=40))
    delivered("P-2", ago=timedelta(days=20))
    settings.PROCESSION = {**settings.PROCESSION, "RETENTION_DAYS": 10}

    assert "1 processes removed" in prune()

    monkeypatch.setattr(Shipping, "retention", None)
    assert "1 processes removed" in prune()


def archived(number: int, kept: timedelta | None) -> type[Workflow]:
    """Declare a version of one workflow."""
    body = {"version": number, "retention": kept, "flow": Passage.flow}
    return type("Archived", (Passage,), body)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_the_newest_version_says_how_long_those_of_all_versions_are_kept(
    order: tuple[int, ...],
) -> None:
    """Also for ever: nothing is removed because an older one said that it may be."""
    days = timedelta(days=1), timedelta(days=300), None
    versions = [archived(number, kept) for number, kept in enumerate(days, 1)]
    with registered(*(versions[place] for place in order if place < 2)):
        assert retention() == {"archived": days[1]}
    with registered(*(versions[place] for place in order)):
        assert retention() == {}


@pytest.mark.django_db(transaction=True)
def test_workers_remove_unasked_what_may_go(monkeypatch: pytest.MonkeyPatch) -> None:
    delivered("P-1")
    place("P-2")
    monkeypatch.setenv("PROCESSION_RETENTION_DAYS", "30")
    monkeypatch.setenv("PROCESSION_SWEEP_SECONDS", "0.05")
    with hired() as hire:
        workers = hire(1)
        old = ProcessInstance.objects.filter(correlation_key="P-1")
        wait_for(lambda: not old.exists(), 10, lambda: said(workers))
        assert workers.stop() == 0

    assert ProcessInstance.objects.get().correlation_key == "P-2"
    by = OperatorAction.objects.get(action="prune")
    assert (by.actor_name, by.after) == ("workers", {"processes": {"shipping": 1}})
