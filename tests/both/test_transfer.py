"""A process that is exported and imported goes on as if nothing had happened, and nothing else is taken in."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.utils import timezone

from orchestrator import Poll, start_process
from orchestrator.definition import Workflow
from orchestrator.engine.operations import (
    OPERATIONS,
    ActionRequest,
    cancel,
    decide,
    pause,
    unpause,
)
from orchestrator.engine.storage import pruning
from orchestrator.engine.transfer import reading
from orchestrator.exceptions import OperationRefused
from orchestrator.models import (
    CommandStatus,
    InboxEvent,
    Incident,
    OperatorAction,
    ProcessInstance,
    Status,
    StepRun,
    Verdict,
)
from orchestrator.testing import Process, pass_time, run, started
from orchestrator.testing.clock import PROCESS_OF
from tests.apps.patterns.lost import Paying
from tests.apps.pausing.processes import (
    WORKFLOWS,
    Answer,
    Bottom,
    Line,
    Narrow,
    Size,
    Squares,
    Top,
    done,
    during,
)
from tests.apps.process_managers.desk import early, overdue, place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    ParcelDelivered,
    ParcelOrdered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.process_managers.processes import Shipping
from tests.apps.process_managers.together import raised, together
from tests.apps.subprocess_maps.processes import Fleet, Order, Passage
from tests.conftest import permissions
from tests.services.asking import asked
from tests.services.cases import cases
from tests.services.client import Client
from tests.services.crews import knowing
from tests.services.doing import fresh
from tests.services.program import environ, run_command
from tests.services.sizes import FULL

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels", "workflows")]


def ask_outside() -> int:
    raise Poll(timedelta(minutes=10), within=timedelta(hours=2))


class Asking(Workflow):
    """Asks another system whether something is ready."""

    flow = (ask_outside,)


workflows = knowing(*WORKFLOWS, Fleet, Passage, Paying, Asking, autouse=False)


@pytest.fixture(autouse=True)
def boss(db: None) -> User:
    """Return whoever exports, imports and resumes."""
    return User.objects.create_superuser("boss")


def request(**more: Any) -> ActionRequest:
    return ActionRequest(User.objects.get(username="boss"), uuid4(), "moved", **more)


def exported(pk: UUID) -> bytes:
    file = io.BytesIO()
    OPERATIONS["export"](pk, file.write, request=request())  # type: ignore[operator]
    return file.getvalue()


def imported(file: bytes) -> ProcessInstance:
    action = OPERATIONS["import"](io.BytesIO(file), request=request())  # type: ignore[operator]
    instance: ProcessInstance = action.instance
    return instance


def refused(file: bytes) -> str:
    """Import what is refused; nothing of it is stored."""
    before = counts()
    with pytest.raises(OperationRefused) as refusal, transaction.atomic():
        imported(file)
    after = counts()
    assert after.pop("OperatorAction") >= before.pop("OperatorAction")
    assert after == before
    return str(refusal.value)


def counts() -> dict[str, int]:
    return {table.__name__: table._default_manager.count() for table in PROCESS_OF}


def forget() -> None:
    """Remove all processes, as in a database that has never had them."""
    ids = list(ProcessInstance.objects.values_list("pk", flat=True))
    Incident.objects.all().delete()
    OperatorAction.objects.all().delete()
    InboxEvent.objects.all().delete()
    pruning._delete(ids)
    Group.objects.all().delete()  # what the parcels' handlers leave
    assert not any(counts().values())


def taken(pk: UUID) -> bytes:
    """Export a process and remove all there are."""
    file = exported(pk)
    forget()
    return file


def moved(pk: UUID) -> ProcessInstance:
    """Carry a process to where it has never been."""
    file = taken(pk)
    # Other keys than where it came from.
    for number in range(3):
        place(f"other {number}")
    return imported(file)


def resume(process: ProcessInstance) -> ProcessInstance:
    unpause(process.pk, True, request=request())
    run()
    return fresh(process)


# Going on


def test_a_process_manager_arrives_paused_with_its_history_and_ends(boss: User) -> None:
    parcel = underway("P-1", Courier.PARTNER)
    tell(parcel, ParcelScanned("P-1", "Nagoya"))
    edges, events, before = edges_of(parcel), events_of(parcel), parcel.revision

    parcel = moved(parcel.pk)
    assert (parcel.status, parcel.revision) == (Status.PAUSED, before + 1)
    assert (parcel.step, parcel.correlation_key) == ("OnTheWay", "P-1")
    assert (edges_of(parcel), events_of(parcel)) == ([*edges, ""], events)
    audit = OperatorAction.objects.get(action="import")
    assert parcel.checkpoints.latest("revision").cause == f"operator:{audit.key}"
    assert (audit.actor, audit.instance_id) == (boss, parcel.pk)
    assert audit.after["status"] == "paused"
    tell(parcel, ParcelDelivered("P-1"))
    assert parcel.status == Status.PAUSED

    assert resume(parcel).status == Status.COMPLETED


def edges_of(parcel: ProcessInstance) -> list[str]:
    points = parcel.checkpoints.order_by("revision")
    return list(points.values_list("edge", flat=True))


def events_of(parcel: ProcessInstance) -> list[tuple[Any, ...]]:
    return list(parcel.events.order_by("pk").values_list("type", "body", "verdict"))


@cases("kind", "process manager", "workflow")
def test_page_and_terminal_tell_that_it_was_imported(kind: str, admin: Client) -> None:
    one = underway("P-1").pk if kind != "workflow" else started(Bottom, Size(1)).id
    instance = moved(one)

    assert "Import" in admin.read(f"/processes/{instance.pk}/")
    code, told = process("show", str(instance.pk))
    assert (code, "Import" in told, "paused" in told) == (0, True, True)


@cases("workflow", Line, Squares, Narrow)
def test_a_workflow_goes_on_from_wherever_it_is(workflow: Any) -> None:
    done.clear()
    instance = moved(start_process(workflow, Size(3)).process_id)
    run()
    assert (done, instance.status) == ([], Status.PAUSED)
    assert resume(instance).status == Status.COMPLETED


def test_a_process_goes_with_its_sub_processes_and_not_without_its_parent() -> None:
    top = started(Top, Size(1)).id
    child = ProcessInstance.objects.get(parent=top)
    with pytest.raises(OperationRefused, match=f"part of the process {top}"):
        exported(child.pk)

    moved(top)

    parts = ProcessInstance.objects.filter(name__in=["top", "middle", "bottom"])
    assert [part.status for part in parts] == ["paused"] * 3
    unpause(top, True, request=request())
    question = StepRun.objects.get(kind="ask")
    decide(question.instance_id, question.pk, Answer.YES, request=request())
    run()
    assert set(parts.values_list("status", flat=True)) == {"completed"}


def test_a_map_of_sub_processes_arrives_with_all_of_them() -> None:
    fleet = start_process(Fleet, Order(6)).process_id
    run("default")

    assert moved(fleet).status == Status.COMPLETED
    assert ProcessInstance.objects.filter(parent=fleet).count() == 6


def test_what_has_ended_arrives_as_its_history() -> None:
    parcel = underway("P-1")
    tell(parcel, ParcelDelivered("P-1"))
    ended = Status.COMPLETED, parcel.revision, None
    parcel = moved(parcel.pk)
    assert (parcel.status, parcel.revision, parcel.paused_at) == ended
    forget()

    bottom = started(Bottom, Size(1))
    bottom.cancel()
    assert moved(bottom.id).status == Status.CANCELLED


def away(command: BookCourier) -> None:
    raise ConnectionError("away")


def test_what_has_failed_is_retried_where_it_arrives(handler: SetHandler) -> None:
    handler(BookCourier, away, after_commit=True, attempts=1)
    parcel = underway("P-1", Courier.PARTNER)
    assert fresh(parcel).status == Status.FAILED

    parcel = moved(parcel.pk)
    assert resume(parcel).status == Status.FAILED
    assert parcel.incidents.open().count() == 1
    handler(BookCourier, lambda command: None, after_commit=True)
    Process(parcel.pk).retry()
    assert Process(parcel.pk).status == Status.WAITING


# What was in flight


STEPS = {
    Line: ("begin", "end"),
    Squares: ("numbers", "square 0", "square 2", "total"),
    Narrow: ("numbers", "square 1", "total"),
}


@cases("workflow, at", *[(one, at) for one in STEPS for at in STEPS[one]])
def test_it_is_exported_in_the_midst_of_any_step_and_goes_on(
    workflow: Any, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker is at the step, and others may be claimed; where it arrives that worker has never been."""
    process = start_process(workflow, Size(3)).process_id
    files: list[bytes] = []
    monkeypatch.setitem(during, at, lambda: files.append(exported(process)))
    run()
    monkeypatch.delitem(during, at)
    assert Process(process).status == Status.COMPLETED
    results = set(steps_done(process))
    forget()

    instance = imported(files[0])
    assert not instance.step_runs.exclude(owner="", wake_at=None).exists()
    assert resume(instance).status == Status.COMPLETED
    assert set(steps_done(process)) == results


def steps_done(process: UUID) -> list[tuple[str, int | None, str]]:
    rows = StepRun.objects.filter(instance=process, status="done")
    return [(run.node, run.item, json.dumps(run.result)) for run in rows]


def test_no_time_passes_for_it_on_the_way() -> None:
    parcel = place("P-1")
    day, long_ago = timedelta(days=1), lines_of(exported(parcel.pk))
    forget()
    for row in long_ago:
        for name in ("exported_at", "wake_at"):
            if row.get(name):
                row[name] = (datetime.fromisoformat(row[name]) - day).isoformat()

    parcel = imported(sealed(long_ago))
    waiting = parcel.step_runs.get(finished_at=None)
    assert timedelta(minutes=59) < (waiting.remaining or day) <= timedelta(hours=1)
    unpause(parcel.pk, True, request=request())
    due = timezone.now() + timedelta(minutes=58)
    assert parcel.step_runs.filter(pk=waiting.pk, wake_at__gt=due).exists()


def test_a_step_that_polls_has_its_time_left_where_it_arrives() -> None:
    process, day = started(Asking), timedelta(days=1)
    pass_time(hours=1)
    rows = lines_of(taken(process.id))
    for row in rows:
        for name in row.keys() & {"exported_at", "started_at", "wake_at", "at"}:
            if row[name]:
                row[name] = (datetime.fromisoformat(row[name]) - day).isoformat()

    instance = resume(imported(sealed(rows)))
    assert instance.status == Status.RUNNING
    pass_time(minutes=50)
    assert fresh(instance).status == Status.RUNNING
    pass_time(minutes=15)
    told = Incident.objects.get()
    assert told.message.startswith("TimedOut: not done after 7200 seconds")


def test_an_overdue_deadline_fires_on_resume_and_the_next_counts_from_then() -> None:
    parcel = place("P-1")
    ago = timezone.now() - timedelta(minutes=5)
    parcel.step_runs.filter(finished_at=None).update(wake_at=ago)

    parcel = moved(parcel.pk)
    run()
    assert parcel.commands.filter(type="RemindPacker").count() == 0
    resume(parcel)
    assert parcel.commands.filter(type="RemindPacker").count() == 1
    overdue(parcel)
    assert parcel.escalation_level == 0  # the second is of partners


def running(workflow: Any, given: object) -> UUID:
    """Start a process whose first step a worker has in its hands."""
    process = start_process(workflow, given).process_id
    ahead = timezone.now() + timedelta(seconds=10)
    held = {"status": "running", "owner": "w-1", "attempt": 1, "wake_at": ahead}
    StepRun.objects.filter(instance=process).update(**held)
    return process


def test_a_step_that_was_running_counts_as_lost() -> None:
    line = moved(running(Line, Size(1)))
    [visit] = line.step_runs.filter(finished_at=None)
    assert (visit.status, visit.owner, visit.lost) == ("retrying", "", "died")

    assert resume(line).status == Status.COMPLETED
    assert fresh(visit).attempt == 2


def test_a_step_that_must_not_run_twice_waits_for_a_person() -> None:
    instance = resume(moved(running(Paying, Paying.Input())))

    assert instance.status == Status.FAILED
    assert "whether pay had its effect is not known" in instance.incidents.get().message


def test_commands_to_be_done_wait_until_it_is_resumed(handler: SetHandler) -> None:
    carried: list[BookCourier] = []
    handler(BookCourier, away, after_commit=True, attempts=9)
    parcel = underway("P-1", Courier.PARTNER)
    assert parcel.commands.get(type="BookCourier").status == CommandStatus.RETRYING

    parcel = moved(parcel.pk)
    handler(BookCourier, carried.append, after_commit=True)
    run()
    assert (carried, parcel.status) == ([], Status.PAUSED)
    assert (resume(parcel).status, len(carried)) == (Status.WAITING, 1)


def test_an_ended_process_may_have_nothing_left_to_do(handler: SetHandler) -> None:
    handler(BookCourier, away, after_commit=True, attempts=9)
    parcel = underway("P-1", Courier.PARTNER)
    cancel(parcel.pk, request=request())

    with pytest.raises(OperationRefused, match="a command of it is still to be done"):
        exported(parcel.pk)
    parcel.commands.filter(type="BookCourier").update(wake_at=timezone.now())
    handler(BookCourier, lambda command: None, after_commit=True)
    run()
    assert exported(parcel.pk)


def test_parked_events_are_taken_when_their_step_comes() -> None:
    parcel = place("P-1")
    tell(parcel, ParcelDelivered("P-1"))
    assert parcel.events.get(type="ParcelDelivered").verdict == Verdict.PARKED

    parcel = moved(parcel.pk)
    assert parcel.parked == 1
    tell(parcel, ParcelPacked(3))
    assert resume(parcel).status == Status.COMPLETED


def test_events_that_were_here_before_it_are_its_own() -> None:
    parcel = underway("P-1")
    file = taken(parcel.pk)
    assert early("P-1", ParcelDelivered("P-1")).verdict == Verdict.UNROUTED

    assert resume(imported(file)).status == Status.COMPLETED


def test_one_that_was_paused_keeps_what_was_left() -> None:
    parcel = place("P-1")
    pause(parcel.pk, True, request=request())
    left = parcel.step_runs.get(finished_at=None).remaining

    parcel = moved(parcel.pk)

    assert parcel.step_runs.get(finished_at=None).remaining == left
    resume(parcel)
    tell(parcel, ParcelPacked(3))
    assert parcel.step == "OnTheWay"


def test_it_is_carried_on_and_on() -> None:
    parcel = underway("P-1")
    for _ in range(3):
        tell(parcel, ParcelScanned("P-1", "Nagoya"))
        parcel = resume(imported(taken(parcel.pk)))
    tell(parcel, ParcelDelivered("P-1"))

    assert parcel.status == Status.COMPLETED


def test_the_owner_is_whoever_has_that_name_here_and_is_active(boss: User) -> None:
    """Whether they are is asked of the user: where the project has its own model, it may be no column."""
    ann, gone = (User.objects.create_user(name) for name in ("ann", "gone"))
    files = []
    for number, owner in enumerate((boss, gone, ann)):
        parcel = place(f"P-{number}")
        ProcessInstance.objects.filter(pk=parcel.pk).update(owner=owner)
        files.append(exported(parcel.pk))
    forget()
    gone.delete()
    User.objects.filter(pk=ann.pk).update(is_active=False)

    assert [imported(file).owner for file in files] == [boss, None, None]


def test_the_same_process_is_always_written_alike() -> None:
    parcel = underway("P-1", Courier.PARTNER)
    first, second = (
        # Each export is itself an action in the audit.
        [row for row in lines_of(exported(parcel.pk)) if row.get("row") != "action"]
        for _ in range(2)
    )
    assert first[0].pop("exported_at") != second[0].pop("exported_at")
    assert first == second


# By the command


def process(verb: str, *words: str) -> tuple[int, str]:
    out, by = io.StringIO(), () if verb == "show" else ("--user", "boss")
    try:
        call_command("process", verb, *words, *by, stdout=out)
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


def export(process_id: UUID, place: object) -> tuple[int, str]:
    return process("export", str(process_id), "--output", str(place))


def test_a_file_is_written_whole_and_read_again(tmp_path: Path) -> None:
    parcel = underway("P-1")
    file = tmp_path / "parcel.jsonl"

    assert export(parcel.pk, file) == (0, "")
    assert [one.name for one in tmp_path.iterdir()] == ["parcel.jsonl"]
    assert file.stat().st_mode & 0o077 == 0
    forget()
    code, said = process("import", str(file), "--reason", "moved")
    assert (code, "paused at revision 3" in said) == (0, True)
    audit = OperatorAction.objects.get(action="import")
    assert (audit.reason, audit.after["way"]) == ("moved", "command line")
    assert process("import", str(file))[0] == 1
    assert process("resume", str(parcel.pk), "--reason", "go on")[0] == 0
    assert fresh(parcel).status == Status.WAITING


def test_whoever_looks_on_sees_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bar for people, which ends full; none in a file of errors."""
    parcel = underway("P-1")
    file, screen, log = tmp_path / "parcel.jsonl", Screen(), io.StringIO()

    monkeypatch.setattr(sys, "stderr", log)
    assert export(parcel.pk, file)[0] == 0
    monkeypatch.setattr(sys, "stderr", screen)
    assert export(parcel.pk, file)[0] == 0

    assert "Exporting" not in log.getvalue()
    assert "Exporting" in screen.getvalue()
    shown = re.split("[\r\n]", screen.getvalue())
    assert "100%" in [text for text in shown if "%" in text][-1]


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_of_a_refused_export_no_file_is_left(tmp_path: Path) -> None:
    file = tmp_path / "parcel.jsonl"
    file.write_text("an older one")

    code, said = export(uuid4(), file)

    assert (code, "not exported: there is no process" in said) == (1, True)
    assert [one.name for one in tmp_path.iterdir()] == ["parcel.jsonl"]
    assert file.read_text() == "an older one"


def test_an_export_replaces_no_device_pipe_or_link(tmp_path: Path) -> None:
    parcel = underway("P-1")
    file, link, pipe = (tmp_path / name for name in ("parcel.jsonl", "link", "pipe"))
    file.write_text("an older one")
    link.symlink_to(file)
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)

    codes = [export(parcel.pk, place)[0] for place in (link, pipe, os.devnull)]
    came = os.read(reader, 1_000_000)
    os.close(reader)

    assert codes == [0, 0, 0]
    assert (file.read_text()[:1], came[:1]) == ("{", b"{")
    there = link.is_symlink(), pipe.is_fifo(), Path(os.devnull).is_char_device()
    assert there == (True, True, True)


def test_a_file_that_cannot_be_written_or_read_is_a_mistake_of_use() -> None:
    parcel = underway("P-1")
    for where in ("", ".", "/", "/dev/full", "a\0b", "/no/such/folder/x"):
        code, said = export(parcel.pk, where)
        told = (code, "cannot write to" in said, "\n" in said)
        assert told == (2, True, False), where
    for where in ("", "no/such/file", "a\0b", "."):
        assert process("import", where)[0] == 2, where


@pytest.mark.skipif(
    connection.vendor == "sqlite" and not FULL, reason="with --full on SQLite too"
)
@pytest.mark.django_db(transaction=True)
def test_a_process_moves_from_another_database_by_programs(tmp_path: Path) -> None:
    """On PostgreSQL from SQLite: what a team does that has outgrown its laptop."""
    other = environ() | {
        "DATABASE_URL": f"sqlite:///{tmp_path}/other.sqlite3",
        "ORDER_LISTING_EXCHANGE_URL": "http://127.0.0.1:9",  # nobody answers there
    }

    def there(*words: str) -> bytes:
        command = [sys.executable, str(settings.BASE_DIR / "manage.py"), *words]
        ended = subprocess.run(command, env=other, capture_output=True, check=False)
        assert ended.returncode == 0, ended.stderr.decode()[-2000:]
        return ended.stdout

    there("migrate")
    there("shell", "--no-imports", "-c", ELSEWHERE)
    [listed] = there("process", "list", "--json").splitlines()
    id = json.loads(listed)["id"]
    path = tmp_path / "order.jsonl"
    path.write_bytes(there("process", "export", id, "--user", "boss"))

    told, again = (
        run_command("process", "import", str(path), "--user", "boss") for _ in range(2)
    )
    assert (told.returncode, "paused" in told.stdout) == (0, True), told.stderr
    assert (again.returncode, "is here already" in again.stderr) == (1, True)
    by = ["--user", "boss", "--reason", "on"]
    assert run_command("process", "resume", id, *by).returncode == 0
    process = ProcessInstance.objects.get()
    assert process.status == Status.RETRYING
    assert process.commands.get(delivery="after_commit").wake_at is not None
    assert run_command("process", "cancel", id, *by).returncode == 0


ELSEWHERE = """
from django.contrib.auth.models import User
from examples.order_listing.messages import Destination, OrderCreated
from orchestrator import start_process
from orchestrator.engine.loops.drain import drain

User.objects.create_superuser("boss")
event = OrderCreated("O-1", Destination.EXTERNAL)
start_process("order-listing", event, id="O-1")
drain()
"""


# What is refused


def lines_of(file: bytes) -> list[dict[str, Any]]:
    """Return the lines of an export, without its end."""
    return [json.loads(line) for line in file.splitlines()[:-1]]


def sealed(rows: list[dict[str, Any]]) -> bytes:
    """Write lines as an export does."""
    body = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    end = {"end": len(rows), "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


def test_what_is_here_already_is_refused_and_nothing_overwritten() -> None:
    file = exported(underway("P-1").pk)
    assert "is here already: nothing is ever overwritten" in refused(file)
    forget()
    imported(file)

    assert "is here already" in refused(file)
    assert audited() == ["done"]


def audited() -> list[str]:
    """What came of the imports that are in the audit."""
    actions = OperatorAction.objects.filter(action="import").order_by("result")
    return list(actions.values_list("result", flat=True))


@pytest.mark.django_db(transaction=True)
def test_of_two_imports_at_once_one_is_refused() -> None:
    parcel = underway("P-1", Courier.PARTNER)
    file = taken(parcel.pk)

    [refusal] = raised(together(lambda: imported(file), lambda: imported(file)))
    assert isinstance(refusal, OperationRefused)
    assert "is here already" in str(refusal)
    assert audited() == ["done", "refused"]
    assert parcel.checkpoints.count() == parcel.revision + 1


def test_a_live_process_of_its_key_and_an_event_received_here_are_in_the_way() -> None:
    parcel = underway("P-1")
    tell(parcel, ParcelScanned("P-1", "Nagoya"), id="scan 1")
    file = taken(parcel.pk)
    tell(underway("P-2"), ParcelScanned("P-2", "Kyoto"), id="scan 1")
    assert "an event of it was received here before" in refused(file)

    start_process(Shipping, ParcelOrdered("P-1", Courier.OWN), id="another")
    run()
    assert "there is already a live shipping with the key 'P-1'" in refused(file)


def test_another_definition_of_the_same_name_and_version_is_refused() -> None:
    rows = lines_of(taken(place("P-1").pk))
    named = rows[1]["definition"]

    named["fingerprint"] = "0" * 64
    assert "is another one here than the one it ran on" in refused(sealed(rows))
    named["version"] = 7
    assert "version 7" in refused(sealed(rows))
    rows[1]["name"] = named["name"] = "no-such"
    assert "no-such" in refused(sealed(rows))


def test_an_export_of_an_earlier_release_lacks_later_columns_and_is_imported() -> None:
    rows = map(json.loads, taken(underway("P-1").pk).splitlines()[:-1])
    former = [{n: row[n] for n in row.keys() - {"extended", "text"}} for row in rows]
    assert imported(sealed(former)).status == Status.PAUSED


def test_a_file_that_is_cut_off_anywhere_is_refused() -> None:
    file = taken(underway("P-1", Courier.PARTNER).pk)
    lines = file.splitlines(keepends=True)

    for number, line in enumerate(lines):
        whole = b"".join(lines[:number])
        assert refused(whole).startswith("line ")
        assert refused(whole + line[: len(line) // 2])
    assert "more follows" in refused(file + b"x")
    assert imported(file).status == Status.PAUSED


def test_a_file_of_which_anything_is_changed_is_refused() -> None:
    file = taken(underway("P-1").pk)
    lines = file.splitlines(keepends=True)
    assert "not those that were written" in refused(file.replace(b"P-1", b"P-2"))
    for changed in ([*lines[:4], *lines[5:]], [*lines[:4], lines[3], *lines[4:]]):
        assert refused(b"".join(changed))


Row = dict[str, Any]


def changed(place: int | str, **values: Any) -> Callable[[list[Row]], None]:
    """Have a row say something else: that at a place, or the first of a kind."""

    def change(rows: list[Row]) -> None:
        kinds = [row.get("row") for row in rows]
        rows[kinds.index(place) if isinstance(place, str) else place].update(values)

    return change


def end(rows: list[Row]) -> None:
    rows[1].update(status="completed", finished_at=rows[1]["changed_at"])


def end_visits(rows: list[Row]) -> None:
    for row in rows:
        if row.get("row") == "visit":
            row.update(finished_at=row["started_at"], wake_at=None)


def repeat_an_event(rows: list[Row]) -> None:
    event = next(row for row in rows if row.get("row") == "event")
    rows.insert(rows.index(event), event)


NOBODY = str(uuid4())
FORGERIES: dict[str, Callable[[list[Row]], object]] = {
    "no head": lambda rows: rows.pop(0),
    "another format": changed(0, format=2),
    "of the future": changed(0, exported_at="2999-01-01T00:00:00Z"),
    "another process": changed(0, process=NOBODY),
    "more processes": changed(0, processes=2),
    "a column more": changed(1, is_superuser=True),
    "a column less": lambda rows: rows[1].pop("revision"),
    "a text for a number": changed(1, revision="3"),
    "a number too large": changed(1, revision=2**31),
    "less than none": changed(1, parked=-1),
    "a status that is none": changed(1, status="done"),
    "a text too long": changed(1, summary="x" * 201),
    "a time without its zone": changed(1, started_at="2026-01-01T00:00:00"),
    "a time that none can store": changed(1, started_at="9999-12-31T23:59:59Z"),
    "a NUL": changed(1, step="a\0b"),
    "half a character": changed(1, step="\ud800"),
    "a parent that is not there": changed(1, parent_id=NOBODY),
    "itself for a parent": lambda rows: rows[1].update(parent_id=rows[1]["id"]),
    "another step": changed(1, step="Delivered"),
    "other data": lambda rows: rows[1]["data"].update(courier="own"),
    "another revision": changed(1, revision=9),
    "parked events it has not": changed(1, parked=9),
    "ended and going on": end,
    "a command of others": changed("command", instance_id=NOBODY),
    "a command that none issued": changed("command", id=NOBODY),
    "an event twice": repeat_an_event,
    "an event that never was": changed("checkpoint", cause="event:987654"),
    "a cause that is none": changed("checkpoint", cause="x:y"),
    "a cause that is no number": changed("checkpoint", cause="event:x"),
    "a checksum that is none": changed("checkpoint", checksum="0" * 64),
    "an operator who never was": changed(-1, cause=f"operator:{NOBODY}"),
    "rows out of order": lambda rows: rows.append(rows.pop(2)),
    "a row of nothing": lambda rows: rows.append({"row": "user", "id": 1}),
    "a list": lambda rows: rows.append([1]),  # type: ignore[arg-type]
    "too deep": lambda rows: rows[1].update(data=nested(70)),
    "no step": changed("visit", node="Nowhere"),
    "a visit that is over": end_visits,
}


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else 1


def test_what_was_not_written_by_us_is_refused() -> None:
    file = taken(underway("P-1", Courier.PARTNER).pk)

    for what, forge in FORGERIES.items():
        rows = lines_of(file)
        forge(rows)
        assert refused(sealed(rows)), what


def test_what_is_no_export_is_refused_in_a_sentence() -> None:
    odd = [b"", b"\xff\xfe", b"[" * 100_000, b"\x1f\x8b\x08", b"1" * 5_000]
    odd += [b'{"procession": "x", "procession": "y"}', b'{"format": NaN}']
    for text in (b"", *(line + b"\n" for line in odd)):
        assert len(refused(text)) < 200, text[:20]


def test_a_line_without_an_end_takes_no_more_memory_than_a_line_may() -> None:
    class Endless(io.BytesIO):
        def readline(self, size: int | None = -1, /) -> bytes:
            assert size is not None
            assert size <= reading.LIMITS.bytes + 1
            return b"x" * size

    with pytest.raises(OperationRefused, match="too long"):
        OPERATIONS["import"](Endless(), request=request())  # type: ignore[operator]


def test_only_who_may_can_export(operator: User) -> None:
    parcel, file = place("P-1"), io.BytesIO()

    def export_it() -> None:
        OPERATIONS["export"](parcel.pk, file.write, request=asked())  # type: ignore[operator]

    with pytest.raises(OperationRefused):
        export_it()
    assert file.getvalue() == b""
    operator.user_permissions.add(permissions()["export_processinstance"])
    export_it()
    assert file.getvalue()
    results = OperatorAction.objects.order_by("pk").values_list("result", flat=True)
    assert list(results) == ["refused", "done"]
