"""How commands end that nobody reads, that cannot write or have no database: in a line, and not with success."""

import io
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest
from django.conf import settings as site
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import OperationalError, connection

from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.missing_tables import MIGRATE
from orchestrator.models import InboxEvent, ProcessInstance
from tests.apps.process_managers.desk import place, underway
from tests.services.patience import SHARED
from tests.services.program import environ

in_rows = pytest.mark.django_db(transaction=True)
pytestmark = [in_rows, pytest.mark.usefixtures("parcels")]

NO_DATABASE = {"DATABASE_URL": "postgres://root@127.0.0.1:1/nothing"}
NOTICES = {
    "PROCESSION_NOTICE_URL_PAGER": "https://127.0.0.1:1/",
    "PROCESSION_SITE_URL": "https://procession.example.org",
    "PROCESSION_NOTICE_SECRET_PAGER": "whsec_" + 32 * "A",
}
SILENT = "CommandError: the database does not answer; see whether"
DRAWN = ["draw", "order-listing", "--format"]
SHORT = [["status"], ["check_invariants"], ["prune", "--keep", "30"], [*DRAWN, "table"]]


def ended(
    words: list[str],
    redirected: str = "",
    stdout: int = subprocess.PIPE,
    variables: Mapping[str, str] = MappingProxyType({}),
) -> tuple[int, bytes, str]:
    """Run a command by a shell; return its exit code, and what it wrote to each stream."""
    own = {**environ(), "PROCESSION_DEMO": "1", **variables}
    del own["PYTHONUNBUFFERED"]
    program = [sys.executable, str(site.BASE_DIR / "manage.py"), *words]
    ran = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirected}', "sh", *program],
        cwd=site.BASE_DIR,
        env=own,
        stdout=stdout,
        stderr=subprocess.PIPE,
        timeout=60 * SHARED,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr.decode()


@pytest.mark.parametrize(
    "words", [["status"], ["draw", "nothing"], ["notices", "--try"]], ids=" ".join
)
def test_without_a_database_the_command_says_so_in_a_line(words: list[str]) -> None:
    code, _, said = ended(words, variables=NO_DATABASE | NOTICES)

    assert (code, said.count("\n")) == (1, 1)
    assert said.startswith(SILENT)


def test_no_database_means_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(*given: object, **more: object) -> None:
        raise OperationalError("connection refused")

    for words in (*SHORT[:-1], ["process", "list"]):
        with monkeypatch.context() as patch:
            patch.setattr(connection, "cursor", silent)
            with pytest.raises(CommandError) as told:
                call_command(*words)

        assert f"CommandError: {told.value}".startswith(SILENT)


def test_before_the_tables_are_there_draw_says_what_brings_them(tmp_path: Path) -> None:
    empty = {"DATABASE_URL": f"sqlite:///{tmp_path}/empty"}
    code, _, said = ended(["draw", "nothing"], variables=empty)

    assert (code, said) == (1, f"CommandError: {MIGRATE}\n")


def test_where_there_is_ascii_alone_other_signs_are_escaped() -> None:
    parcel = place("P-1")
    key = "荷物 \U0001f4e6 é"
    ProcessInstance.objects.update(correlation_key=key)
    InboxEvent.objects.update(correlation_key=key)
    ascii = {"PYTHONIOENCODING": "ascii"}
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0"}

    _, listed, _ = ended(["process", "list", "--json"], variables=ascii)
    drawn, table, _ = ended([*DRAWN, "table"], variables=ascii)
    code, shown, said = ended(["process", "show", str(parcel.pk)], variables=locale)

    assert (code, drawn, said, shown.isascii()) == (0, 0, "", True)
    assert rb"\u8377" in shown
    assert json.loads(listed)["key"] == key
    assert rb"\u2192" in table


@pytest.mark.parametrize(
    "words", [SHORT[0], SHORT[-1], ["status", "--help"]], ids=" ".join
)
def test_whoever_reads_may_have_seen_enough(words: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)

    code, _, said = ended(words, stdout=writer)

    os.close(writer)
    if "--help" in words:
        assert said == ""
    else:
        assert (code, "Error" in said) == (141, False)


def test_what_is_written_to_a_full_disk_is_no_success_and_told_in_a_line() -> None:
    User.objects.create_superuser("boss")
    export = ["process", "export", str(underway("P-1").pk), "--user", "boss"]

    code, _, said = ended(export, ">/dev/full")

    assert (code, said.count("\n")) == (2, 1)
    assert "cannot write to -: No space left on device" in said
    shown = (1, "CommandError: cannot write: No space left on device\n")
    assert ended(["status"], ">/dev/full")[::2] == shown


def test_closed_streams_keep_nothing_from_being_done() -> None:
    for words, closed in (
        (["status"], "<&- >&- 2>&-"),
        (["process", "list"], ">&-"),
        ([*DRAWN, "svg"], ">&-"),
    ):
        code, _, said = ended(words, closed)

        assert (code, "Traceback" in said) == (0, False), said


class Stopped(ProcessionCommand):
    """Ends as the test says."""

    def __init__(self, error: BaseException | None = None) -> None:
        super().__init__()
        self.error = error

    def handle(self, *args: object, **options: object) -> None:
        if self.error:
            raise self.error
        connection.cursor().execute("SELEC nothing")


class Full(io.StringIO):
    """Standard output of a server whose disk is full at the moment, and which cannot be turned away from it."""

    def flush(self) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (BrokenPipeError(), 141)]
)
def test_only_a_program_ends_with_a_code(error: BaseException, code: int) -> None:
    with pytest.raises(SystemExit) as end:
        Stopped(error).run_from_argv(["manage.py", "stopped"])
    assert end.value.code == code

    with pytest.raises(type(error)):
        call_command(Stopped(error))


def test_the_streams_of_whoever_calls_a_command_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = io.TextIOWrapper(io.BytesIO(), encoding="ascii", errors="strict")
    monkeypatch.setattr("sys.stdout", own)
    call_command("status", stdout=io.StringIO())
    monkeypatch.setattr("sys.stdout", Full())
    call_command("status", stdout=io.StringIO())

    assert own.errors == "strict"


def test_a_silent_database_is_told_with_its_cause_and_a_mistake_as_it_is() -> None:
    lost = OperationalError("connection refused")

    with pytest.raises(CommandError) as told:
        call_command(Stopped(lost))
    assert told.value.__cause__ is lost
    with pytest.raises(Exception, match="SELEC") as wrong:
        call_command(Stopped())
    assert not isinstance(wrong.value, CommandError)
