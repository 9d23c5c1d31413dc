"""The command `process` shows and does in a terminal what the console does in a browser."""

import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from io import StringIO
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db import OperationalError, connection
from django.utils import timezone

from examples.order_listing.messages import Destination, OrderCreated
from examples.order_listing.processes import OrderListing
from monitoring.command_line import watching
from monitoring.command_line.terminal import Terminal, text_width
from monitoring.lists.processes import pages
from orchestrator import start_process
from orchestrator.engine.operations import cancel, pause, unpause
from orchestrator.models import OperatorAction, ProcessInstance, Status
from orchestrator.testing import run, started
from tests.apps.pausing.processes import WORKFLOWS, Size, Squares, Top
from tests.apps.process_managers.desk import place, tell, underway
from tests.apps.process_managers.fixtures import SetHandler, known
from tests.apps.process_managers.messages import (
    BookCourier,
    Courier,
    ParcelDelivered,
    ParcelPacked,
    ParcelScanned,
)
from tests.apps.wide_graphs.processes import Breadth, Broad
from tests.services.asking import asked as request_of
from tests.services.cases import cases, words
from tests.services.doing import fresh, raising
from tests.services.program import run_command

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("parcels", "workflows", "operator"),
]


@pytest.fixture(scope="module")
def workflows() -> Iterator[None]:
    """Let the running code have the workflows that are paused elsewhere, and wide ones."""
    yield from known(*WORKFLOWS, Broad)


def process(*words: str) -> tuple[int, str]:
    """Run the command; return its exit code, and what it wrote."""
    out = StringIO()
    try:
        call_command("process", *words, stdout=out)
    except SystemExit as end:
        return int(end.code or 0), out.getvalue()
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


def lines(*words: str) -> list[dict[str, Any]]:
    code, text = process(*words, "--json")
    assert code == 0
    return told(text)


def told(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def keys(*words: str) -> list[str]:
    return [row["key"] for row in lines("list", *words)]


def acted(what: str, *words: object, user: str = "operator") -> tuple[int, str]:
    return process(what, *map(str, words), "--user", user, "--reason", "because")


def placed(number: int) -> list[ProcessInstance]:
    return [place(f"P-{one}") for one in range(number)]


def ended() -> set[UUID]:
    return set(ProcessInstance.objects.ended().values_list("pk", flat=True))


# List


OF_WHAT = "id definition version key status step revision summary owner"
OF_WHEN = "escalation_level parent started_at changed_at paused_at finished_at"


def test_the_list_has_the_newest_first_with_stable_keys() -> None:
    underway("P-1")
    place("P-2")

    first, second = lines("list")

    shown = (first["key"], first["status"], first["step"], second["key"])
    assert shown == ("P-2", "waiting", "Packing", "P-1")
    assert list(first) == [*words(OF_WHAT), *words(OF_WHEN)]


@cases(
    "filters, found",
    ("--definition shipping", "Q-3 P-2 P-1"),
    ("--definition shipping --status live", "Q-3 P-2"),
    ("--status completed", "P-1"),
    ("--step Packing", "P-2"),
    ("--step packing", "P-2"),  # as people read it
    ("--key P-", "P-2 P-1"),
    ("--escalated", ""),
    ("--definition shipping --version-number 2", ""),
    ("--owner nobody --key Q", "Q-3"),
)
def test_it_has_the_consoles_filters(filters: str, found: str, four: None) -> None:
    assert keys(*words(filters)) == words(found)


@pytest.fixture
def four() -> None:
    """Processes at several steps, of several definitions."""
    tell(underway("P-1"), ParcelDelivered("P-1"))
    place("P-2")
    underway("Q-3")
    start_process(Squares, Size(2))


def test_the_list_tells_what_started_since() -> None:
    old = place("P-1")
    place("P-2")
    ago = timezone.now() - timedelta(days=3)
    ProcessInstance.objects.filter(pk=old.pk).update(started_at=ago)

    assert keys("--since", "24h") == ["P-2"]
    assert keys("--since", "1w") == ["P-2", "P-1"]
    assert keys("--since", f"{timezone.now() + timedelta(days=1):%Y-%m-%d}") == []
    _, said = process("list", "--since", "yesterday")
    assert "is no time" in said


def test_pages_follow_each_other_and_all_is_all(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    placed(5)

    page = lines("list", "--limit", "2")
    assert [row["key"] for row in page] == ["P-4", "P-3"]
    assert f"--before {page[-1]['id']}" in capsys.readouterr().err
    assert keys("--limit", "2", "--before", page[-1]["id"]) == ["P-2", "P-1"]
    monkeypatch.setattr(pages, "BATCH", 2)
    assert keys("--all") == words("P-4 P-3 P-2 P-1 P-0")


def test_a_table_of_wide_characters_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    place("注文番号" * 20)
    monkeypatch.setenv("COLUMNS", "110")

    _, text = process("list")

    heads, row = text.splitlines()
    assert text_width(row) <= 110
    assert "注文番号" in row
    assert "…" in row
    assert text_width(row[: row.index("waiting")]) == heads.index("STATUS")


def test_files_are_whole_and_steer_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    parcel = place("P-" + "9" * 80)
    ProcessInstance.objects.filter(pk=parcel.pk).update(summary="a\x1b[31mb\n\u202ec")

    _, listed = process("list")
    _, shown = process("show", str(parcel.pk))

    assert "9" * 80 in listed
    assert len(listed.splitlines()) == 2
    assert not {"\x1b", "\u202e"} & set(listed + shown)
    assert "[31mb" in shown


class Screen(StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


def test_colours_are_for_terminals_that_want_them() -> None:
    def shown(out: StringIO, **environ: str) -> str:
        return Terminal(out, environ).status("failed")

    assert "\x1b[" in shown(Screen(), TERM="xterm")
    plain = (shown(Screen(), NO_COLOR="1"), shown(Screen(), TERM="dumb"))
    assert {*plain, shown(StringIO())} == {"failed"}


def test_the_first_page_asks_the_database_little(
    django_assert_max_num_queries: Callable[[int], Any],
) -> None:
    placed(5)

    with django_assert_max_num_queries(1):
        keys("--limit", "2")
    with django_assert_max_num_queries(6):
        keys("--status", "live")


# Show


def test_a_process_is_drawn_where_it_is() -> None:
    parcel = underway("P-1", Courier.PARTNER)

    code, text = process("show", str(parcel.pk))

    assert code == 0
    assert re.search("in (On the way|OnTheWay)", text)
    [now] = [line for line in text.splitlines() if line.endswith("◀ now")]
    assert now.strip().startswith("●")
    for part in ("shipping version 1 · P-1", "─ ParcelDelivered ─▶"):
        assert part in text
    assert '"parcel_id": "P-1"' in text
    assert "Needs a person" not in text


def test_what_is_shown_is_there_as_json_too(failed: ProcessInstance) -> None:
    code, text = process("show", str(failed.pk), "--json")
    _, shown = process("show", str(failed.pk))

    told = json.loads(text)
    assert (code, told["status"], told["steps"][0]["step"]) == (0, "failed", "OnTheWay")
    assert "注意" in told["incidents"][0]["message"]
    assert told["data"]["parcel_id"] == "P-1"
    assert told["history"][0]["revision"] == told["revision"]
    assert "Needs a person" in shown
    assert "注意" in shown


@cases("branches", 3, 9_000)
def test_however_wide_a_workflow_is_its_drawing_can_be_read(branches: int) -> None:
    receipt = start_process(Broad, Breadth(branches))

    code, text = process("show", str(receipt.process_id), "--rows", "0")

    assert code == 0
    assert len(text.splitlines()) < 60
    assert re.search(f"{branches + 2:,} steps|{branches + 1:,} steps", text)


def test_a_sub_process_and_its_parent_are_shown() -> None:
    top = started(Top, Size(1))

    _, text = process("show", str(top.children[0].id))

    assert f"part of   {top.id}" in text


@cases("what", "show", "watch")
@cases("id", "x", "\x1b[31m", str(uuid4()))
def test_a_process_that_is_not_there_is_a_mistake_of_use(what: str, id: str) -> None:
    code, said = process(what, id)

    assert code == 2
    assert "no process" in said
    assert "\x1b" not in said


# Watch


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that says what happens while the command waits, one thing a time."""

    def will(*deeds: Callable[[], object]) -> None:
        left = list(deeds)

        def sleep(seconds: float) -> None:
            assert left, "it waits though nothing more will happen"
            left.pop(0)()

        monkeypatch.setattr(time, "sleep", sleep)

    return will


def test_each_change_is_told_once_and_in_order(meanwhile: Callable[..., None]) -> None:
    parcel = underway("P-1")
    begun = parcel.revision
    meanwhile(
        lambda: tell(parcel, ParcelScanned("P-1", "Nagoya")),
        lambda: None,
        lambda: (
            tell(parcel, ParcelScanned("P-1", "Kyoto")),
            tell(parcel, ParcelDelivered("P-1")),
        ),
    )

    looks = lines("watch", str(parcel.pk))

    assert [one["revision"] for one in looks] == list(range(begun, begun + 4))
    assert looks[-1]["status"] == "completed"
    assert looks[0]["steps"] == ["OnTheWay"]


def test_how_it_ended_is_the_exit_code(meanwhile: Callable[..., None]) -> None:
    parcel = place("P-1")
    meanwhile(lambda: acted("cancel", parcel.pk))

    for until, code in (("", 1), ("--until cancelled", 0), ("--until failed", 1)):
        assert process("watch", str(parcel.pk), *words(until))[0] == code


def test_a_status_that_has_gone_by_was_reached(meanwhile: Callable[..., None]) -> None:
    top = start_process(Top, Size(1)).process_id
    meanwhile(
        lambda: [act(top, True, request=request_of()) for act in (pause, unpause)]
    )

    assert process("watch", str(top), "--until", "paused")[0] == 0


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Have SIGINT interrupt, which a shell lets its background jobs ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_it_ends_in_time_or_when_it_is_stopped(meanwhile: Callable[..., None]) -> None:
    parcel = place("P-1")
    assert process("watch", str(parcel.pk), "--timeout", "0")[0] == 124

    meanwhile(lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        process("watch", str(parcel.pk))


def test_a_gap_of_the_database_is_survived_and_nothing_told_twice(
    meanwhile: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    parcel = underway("P-1")
    asked = watching.ProcessWatch._look
    monkeypatch.setattr(connection, "close", lambda: None)
    gaps = iter([False, True, True, False, False])

    def look(self: Any) -> Any:
        if next(gaps):
            raise OperationalError("gone away")
        return asked(self)

    monkeypatch.setattr(watching.ProcessWatch, "_look", look)
    meanwhile(
        lambda: tell(parcel, ParcelScanned("P-1", "Nagoya")),
        lambda: None,
        lambda: tell(parcel, ParcelDelivered("P-1")),
    )

    revisions = [look["revision"] for look in lines("watch", str(parcel.pk))]

    said = capsys.readouterr().err
    assert revisions == sorted(set(revisions))
    assert revisions[-1] == parcel.revision
    assert said.count("does not answer") == 1
    assert "answers again" in said


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="SQLite has no server")
def test_a_connection_that_the_server_has_cut_is_made_anew(
    meanwhile: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    parcel = underway("P-1")

    def cut() -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            ender = Thread(target=end, args=cursor.fetchone())
        ender.start()
        ender.join()

    def end(pid: int) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])
        connection.close()

    meanwhile(cut, lambda: tell(parcel, ParcelDelivered("P-1")))

    code, text = process("watch", str(parcel.pk))

    assert code == 0
    assert text.count("completed") == 1
    assert "does not answer" in capsys.readouterr().err


# Acting


@pytest.fixture
def failed(handler: SetHandler) -> ProcessInstance:
    """Return a process of which a command has failed."""
    torn = raising(ValueError("注意"))
    handler(BookCourier, torn, after_commit=True, attempts=1)
    parcel = fresh(underway("P-1", Courier.PARTNER))
    assert parcel.status == Status.FAILED
    return parcel


def test_an_action_is_the_named_users(failed: ProcessInstance, operator: User) -> None:
    code, said = acted("retry", failed.pk)

    audit = OperatorAction.objects.get()
    assert (code, "done" in said) == (0, True)
    assert (audit.actor, audit.action, audit.reason) == (operator, "retry", "because")
    assert audit.after["way"] == "command line"
    run()


def test_what_is_so_already_is_told_and_no_failure() -> None:
    parcel = place("P-1")

    (first, _), (code, said) = (acted("cancel", parcel.pk) for _ in range(2))

    assert (first, code) == (0, 0)
    assert "already" in said
    assert "The process has ended" in said
    assert ProcessInstance.objects.get().status == Status.CANCELLED


def test_the_same_key_acts_once() -> None:
    parcel = place("P-1")

    for _ in range(2):
        assert acted("escalate", parcel.pk, "--again", "ticket 7")[0] == 0
    acted("escalate", parcel.pk, "--again", "ticket 8")

    assert fresh(parcel).escalation_level == 2


def test_what_is_refused_is_told_for_each_and_the_others_are_done() -> None:
    over = underway("P-1")
    tell(over, ParcelDelivered("P-1"))

    parcels = (place("P-2"), over, place("P-3"))
    code, text = acted("escalate", *(one.pk for one in parcels), "--json")

    looks = told(text)
    assert code == 1
    assert [one["verdict"] for one in looks] == ["done", "refused", "done"]
    assert looks[1]["why"] == "The process has ended"
    assert list(looks[0]) == ["id", "action", "verdict", "why"]


def test_whoever_may_not_is_refused_once_and_it_is_audited(viewer: User) -> None:
    code, said = acted("cancel", *(one.pk for one in placed(2)), user="viewer")

    assert code == 1
    assert "orchestrator.cancel_processinstance" in said
    assert OperatorAction.objects.get().result == "refused"
    assert not ended()


def test_a_stale_revision_is_refused() -> None:
    parcel = place("P-1")
    seen = parcel.revision
    tell(parcel, ParcelPacked(3))

    code, said = acted("cancel", parcel.pk, "--revision", seen)

    assert code == 1
    assert "ParcelPacked arrived" in said


@cases(
    "text",
    "retry",
    "retry {pk} --all-matching",
    "retry {pk} --status failed",
    "retry --all-matching",
    "cancel nonsense",
    f"cancel {{pk}} {uuid4()} --revision 1",
)
def test_mistakes_of_use_do_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", StringIO())
    pk = place("P-1").pk

    assert acted(*text.format(pk=pk).split())[0] == 2
    code, said = process("cancel", str(pk), "--user", "operator")
    assert (code, "--reason" in said) == (2, True)
    assert not OperatorAction.objects.exists()


@cases("name", "nobody", "", "a\0b", "gone")
def test_the_user_must_be_there_and_active(name: str) -> None:
    User.objects.create_user("gone", is_active=False)

    code, said = acted("cancel", place("P-1").pk, user=name)

    assert code == 2
    assert "no active user" in said


def test_all_that_match_are_counted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    parcels = placed(3)
    underway("Q-1")
    filters = words("--all-matching --definition shipping --step Packing")
    monkeypatch.setattr("sys.stdin", StringIO())

    code, said = acted("cancel", *filters)
    assert (code, "cancel 3 processes" in said) == (2, True)
    assert acted("cancel", *filters, "--yes")[0] == 0
    assert ended() == {one.pk for one in parcels}
    assert acted("cancel", *filters, "--yes")[0] == 0


def test_a_person_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    place("P-1")
    for answer, code in (("n\n", 2), ("y\n", 0)):
        monkeypatch.setattr("sys.stdin", Screen(answer))
        assert acted("cancel", "--all-matching")[0] == code


def test_ids_are_read_from_what_the_list_says(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = placed(2)
    _, listed = process("list", "--key", "P-0", "--json")
    monkeypatch.setattr("sys.stdin", StringIO(f"{listed}\n{second.pk}\n{second.pk}\n"))

    code, said = acted("cancel", "-")

    assert (code, said.count("done")) == (0, 2)
    assert ended() == {first.pk, second.pk}


def test_an_interruption_finishes_what_was_begun_and_tells_what_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = cancel.effect

    def interrupted(press: Any) -> Any:
        signal.raise_signal(signal.SIGINT)
        return whole(press)

    monkeypatch.setattr(cancel, "effect", interrupted)
    code, _ = acted("cancel", *(one.pk for one in placed(3)))

    assert (code, len(ended())) == (130, 1)
    assert "1 done, 2 left as they were" in capsys.readouterr().err


# As a program of its own


@pytest.mark.django_db(transaction=True)
def test_it_runs_as_a_program_of_its_own() -> None:
    """The deeds of a shell: exit codes, what goes to which stream, and who is named in the audit."""
    orders = [OrderCreated(f"O-{n}", Destination.INTERNAL) for n in range(2)]
    ids = [str(started(OrderListing, order).id) for order in orders]
    User.objects.create_superuser("boss")
    by = words("--user boss --reason because")

    listed = run_command("process", "list", "--json", "--limit", "1")
    watched = run_command("process", "watch", ids[0], "--timeout", "20")
    refused = run_command("process", "cancel", *ids, *by)
    mistaken = run_command("process", "cancel", "x", *by)

    assert (listed.returncode, json.loads(listed.stdout)["id"]) == (0, ids[1])
    assert "--before" in listed.stderr
    assert watched.returncode == 0
    assert "completed" in watched.stdout
    assert refused.returncode == 1
    assert "2 refused" in refused.stderr
    assert (mistaken.returncode, mistaken.stdout) == (2, "")
    assert "'x' is no process id" in mistaken.stderr
    names = OperatorAction.objects.values_list("actor_name", flat=True)
    assert list(names) == ["boss", "boss"]
