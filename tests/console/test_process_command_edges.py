"""What the command `process` is given at the edges: empty, too large, hostile, cut off."""

import errno
import gc
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from monitoring.command_line import selection
from orchestrator.engine.operations import OPERATIONS, cancel
from orchestrator.exceptions import OperationRefused
from orchestrator.models import OperatorAction, ProcessInstance
from tests.apps.pausing.processes import WORKFLOWS
from tests.apps.process_managers.desk import place, underway
from tests.apps.process_managers.fixtures import known
from tests.console.test_process_command import acted, lines, placed, process
from tests.services.asking import asked
from tests.services.cases import cases, words
from tests.services.patience import SHARED
from tests.services.program import environ

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.usefixtures("parcels", "workflows", "operator"),
]

STEERING = "\x1b]0;owned\x07\x9b31m\x7f\u202e"
"""Sets the title of a terminal, its colour, deletes, and turns the direction of writing."""


@pytest.fixture(scope="module")
def workflows() -> Iterator[None]:
    """Let the running code have some workflows."""
    yield from known(*WORKFLOWS)


# Mistakes that would mean everything


@cases(
    "name, value",
    ("key", "  "),
    *((name, "") for name in ("definition", "step", "owner")),
    *(("version-number", text) for text in ("-1", "1_0", str(2**40))),
)
def test_a_filter_that_says_nothing_is_not_taken_for_all(name: str, value: str) -> None:
    """A script's empty variable does not cancel whatever there is."""
    place("P-1")

    code, _ = acted("cancel", "--all-matching", "--yes", f"--{name}", value)

    assert code != 0
    assert process("list", f"--{name}", value)[0] != 0
    assert ProcessInstance.objects.live().count() == 1


def test_version_0_is_a_filter_too() -> None:
    code, said = acted("cancel", place("P-1").pk, "--version-number", "0")

    assert (code, "--all-matching" in said) == (2, True)


BY = "--user operator --reason x"


MISTAKEN = {
    "list --since": "999999w 2026-02-30 9999-12-31T23:59:59-10:00",
    "list --before": "nonsense zzz",
    "list --limit": "-3",
    "list --key": "a\0b \udcff",
    "list --step": "\udcff",
    "list --owner": "\udcff",
    "watch {pk} --interval": "nan -1 1e300",
    "watch {pk} --timeout": "nan x",
    "cancel {pk} --user operator --reason": "\udcff",
    "cancel {pk} --reason x --user": "\udcff",
    f"cancel {{pk}} {BY} --revision": f"-1 {2**31}",
    f"cancel {{pk}} {BY} --again": "\udcff",
}
"""What may begin a line, and how it must not end."""

LINES = [f"{line} {end}" for line, ends in MISTAKEN.items() for end in words(ends)]
LONG_AGO = "0001-01-01T00:00:00+10:00"


@cases("text", f"cancel \udcff {BY}", f"list --since {LONG_AGO}", *LINES)
def test_what_cannot_be_meant_is_a_mistake_of_use(text: str) -> None:
    code, said = process(*words(text.format(pk=place("P-1").pk)))

    assert code in (1, 2)  # from a shell it is 2
    assert said
    assert "\udcff" not in said
    assert not OperatorAction.objects.exists()
    if text.startswith("list --before"):
        assert "--before" in said
        assert "is no process id" in said


# A list in which little is found


def test_the_looking_for_little_among_many_ends_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    placed(6)
    monkeypatch.setattr(selection, "LOOKS", 2)
    monkeypatch.setattr("monitoring.lists.processes.arm.LOOKED_AT", 2)
    completed = ("list", "--status", "completed")

    assert lines(*completed) == []

    said = capsys.readouterr().err
    assert "may be more" in said
    assert lines(*completed, "--before", said.split()[-1]) == []
    assert "--before" not in capsys.readouterr().err
    assert lines(*completed, "--all") == []


# What would steer the terminal


def test_no_application_steers_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    def effect(press: object) -> None:
        raise OperationRefused(f"{STEERING}\nno")

    monkeypatch.setattr(cancel, "effect", effect)
    pk = place("P-1").pk

    (_, said), (_, told) = acted("cancel", pk), acted("cancel", pk, "--json")

    assert said.removesuffix("\n").isprintable()
    assert told.removesuffix("\n").isprintable()
    assert json.loads(told)["why"] == f"{STEERING}\nno"


@cases("what", "list", "show", "watch")
def test_json_steers_no_terminal_and_means_the_same(what: str) -> None:
    key = f"荷物 {STEERING}\U000e0041"
    parcel = place("P-1")
    rows = ProcessInstance.objects.filter(pk=parcel.pk)
    rows.update(correlation_key=key, data={"parcel_id": key})
    words = {"list": [], "watch": [str(parcel.pk), "--timeout", "0"]}
    _, text = process(what, *words.get(what, [str(parcel.pk)]), "--json")
    rows.update(correlation_key="P-1", data=parcel.data)

    assert text.replace("\n", "").isprintable()
    if what != "watch":
        assert json.loads(text)["key"] == key
        assert "荷物" in text


def test_an_import_says_nothing_that_steers_the_terminal(tmp_path: Path) -> None:
    file = tmp_path / "file"
    head = {"procession": STEERING, "format": STEERING}
    file.write_text(json.dumps(head) + "\n")
    User.objects.create_superuser("boss")

    code, said = process("import", str(file), "--user", "boss")

    assert (code, said.isprintable()) == (1, True)


# Nobody reads any more


class Closed(io.StringIO):
    """A pipe whose reader has gone after so many lines."""

    left = 1

    def write(self, text: str, /) -> int:
        self.left -= text.endswith("\n")
        if self.left < 0:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        return super().write(text)


def test_what_was_not_done_since_nobody_reads_is_told_and_no_success(
    capfd: pytest.CaptureFixture[str],
) -> None:
    ids = [str(one.pk) for one in placed(4)]

    with pytest.raises(BrokenPipeError):
        call_command("process", "cancel", *ids, *words(BY), stdout=Closed())

    assert ProcessInstance.objects.ended().count() == 2
    assert "2 done, 2 left as they were" in capfd.readouterr().err


def test_an_export_that_was_not_read_to_its_end_is_audited(administrator: User) -> None:
    parcel = underway("P-1")
    written = []

    def write(line: bytes) -> None:
        written.append(line)
        if len(written) == 3:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")

    asks = asked(actor=administrator)
    with pytest.raises(BrokenPipeError):
        OPERATIONS["export"](parcel.pk, write, request=asks)  # type: ignore[operator]
    gc.collect()  # no cursor is left that would be closed in the midst of what comes now

    row = OperatorAction.objects.get()
    assert (row.action, row.result, row.instance) == ("export", "refused", parcel)
    assert "could not be written whole" in row.detail


@pytest.mark.django_db(transaction=True)
def test_a_list_whose_reader_has_gone_ends_quietly() -> None:
    """Also one so short that it is written when the program ends."""
    place("P-1")
    reader, writer = os.pipe()
    os.close(reader)
    buffered = {k: v for k, v in environ().items() if k != "PYTHONUNBUFFERED"}

    ended = subprocess.run(
        [sys.executable, str(settings.BASE_DIR / "manage.py"), "process", "list"],
        env=buffered,
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=60 * SHARED,
        check=False,
    )
    os.close(writer)

    assert (ended.returncode, ended.stderr) == (0, b"")


def test_workers_of_a_queue_that_there_is_not_do_not_begin() -> None:
    with pytest.raises(CommandError, match="RQ_QUEUES has no queue 'nosuch'; it has"):
        call_command("work", "--queue", "nosuch")
