"""`check_invariants` walks the processes in chunks: all of them, some of them, or those behind an earlier run."""

import io
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from orchestrator import send_event
from orchestrator.engine import invariants
from orchestrator.engine.invariants import chunks
from orchestrator.engine.invariants.chunks import (
    ProcessChunk,
    ProcessSelection,
    check_chunk,
)
from orchestrator.engine.invariants.stored_sets import StoredPart
from orchestrator.management.commands import check_invariants
from orchestrator.models import Checkpoint, InboxEvent, ProcessInstance
from orchestrator.testing import run
from tests.apps.process_managers.desk import place
from tests.apps.process_managers.messages import ParcelScanned
from tests.services.invariants import undone

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("parcels")]

Parcels = list[ProcessInstance]


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> Parcels:
    """Return five processes, which make three chunks."""
    monkeypatch.setattr(chunks, "MOST_PROCESSES", 2)
    monkeypatch.setattr(chunks, "MOST_NAMED", 2)
    return [place(f"P-{number}") for number in range(5)]


def altered(*parcels: ProcessInstance) -> set[str]:
    """Alter the data of processes; return their ids."""
    pks = [parcel.pk for parcel in parcels]
    ProcessInstance.objects.filter(pk__in=pks).update(data={})
    return {str(pk) for pk in pks}


def named(lines: list[str]) -> set[str]:
    """The processes of which findings tell that their history has another end."""
    words = (line.split() for line in lines if line.startswith("model"))
    return {word.strip(":") for line in words for word in line[1:2]}


def called(*options: str) -> list[str]:
    """Return the lines of the command."""
    out = io.StringIO()
    with pytest.raises(SystemExit, match="1"):
        call_command("check_invariants", *options, stdout=out)
    return out.getvalue().splitlines()


def in_order(selection: ProcessSelection) -> list[int]:
    return [chunk.number for chunk in selection.chunks() if chunk.number]


def test_all_processes_are_checked_once(placed: Parcels) -> None:
    assert in_order(ProcessSelection()) == [2, 2, 1]
    with undone():
        wrong = altered(*placed)
        lines = called()
        assert named(lines) == wrong
        assert lines[:-1].count(lines[0]) == 1


def test_a_chunk_ends_early_before_long_histories(
    placed: Parcels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "MOST_REVISIONS", 1)

    assert in_order(ProcessSelection()) == [1] * 5


def test_rows_of_no_process_and_of_one_that_is_gone_are_checked(
    placed: Parcels,
) -> None:
    stray = send_event(ParcelScanned("Q", "Kobe"), id="1", correlation_key="Q").number
    run()
    with undone():
        rows = InboxEvent.objects.filter(pk=stray)
        rows.update(verdict="discarded", wake_at=None)
        gone = {"process": UUID(int=2**128 - 1), "verdict": "parked"}
        InboxEvent.objects.filter(process=placed[0].pk).update(**gone)
        lines = called()
        assert (
            f"discarded: event {stray} is discarded, but no person has discarded it"
            in lines
        )
        assert any(line.startswith("references") for line in lines)


def test_those_that_have_not_changed_since_are_left_out(placed: Parcels) -> None:
    now = timezone.now()
    with undone():
        wrong = altered(placed[1], placed[4])
        long_ago = ProcessInstance.objects.exclude(pk__in=[placed[4].pk])
        long_ago.update(changed_at=now - timedelta(days=2))
        since = (now - timedelta(days=1)).isoformat()
        assert named(called("--since", since)) == wrong - {str(placed[1].pk)}


def test_a_sample_is_the_same_again_with_its_seed(placed: Parcels) -> None:
    def taken(seed: int) -> list[Any]:
        some = ProcessSelection(sample=0.5, seed=seed).chunks()
        return [pk for chunk in some for pk in chunk.part.ids or ()]

    assert taken(3) == taken(3)
    assert len({tuple(taken(seed)) for seed in range(9)}) > 1
    with undone():
        wrong = altered(*placed)
        assert named(called("--sample", "100%")) == wrong
        assert named(called("--sample", "5")) == wrong


def test_a_run_goes_on_behind_a_process(placed: Parcels) -> None:
    with undone():
        altered(*placed)
        after = sorted(placed, key=lambda parcel: parcel.pk)
        lines = called("--resume-after", str(after[2].pk))
        assert named(lines) == {str(parcel.pk) for parcel in after[3:]}


def test_what_a_later_look_does_not_find_is_not_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looks = iter(
        [
            ["outbox: event 7 has been due", "keys: event 1"],
            ["outbox: event 7 has been due"],
        ]
    )
    monkeypatch.setattr(chunks, "part_findings", lambda part: next(looks))

    assert check_chunk(StoredPart()) == ["outbox: event 7 has been due"]


def test_an_interrupted_run_says_how_to_go_on(
    placed: Parcels, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = min(parcel.pk for parcel in placed)

    def interrupted(*args: Any) -> Iterator[tuple[ProcessChunk, list[str]]]:
        yield ProcessChunk(StoredPart(), 1, first), ["keys: event 1"]
        raise KeyboardInterrupt

    monkeypatch.setattr(check_invariants, "check_chunks", interrupted)
    with pytest.raises(KeyboardInterrupt):
        call_command("check_invariants")

    told = capsys.readouterr().err
    assert f"--resume-after {first}" in told
    assert "keys: event 1" in told


def test_a_log_gets_lines_with_the_time_left(
    placed: Parcels, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check_invariants, "EVERY", 0)
    call_command("check_invariants")

    assert (
        "2 of 5 processes, 0 violations, 0 min left, --resume-after"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "options", [("--sample", "0"), ("--since", "then"), ("--processes", "0")]
)
def test_an_option_that_means_nothing_is_refused(options: tuple[str, str]) -> None:
    with pytest.raises(Exception, match=options[0]):
        call_command("check_invariants", *options)


@pytest.mark.skipif(
    connection.vendor != "postgresql",
    reason="SQLite's rows of a test are in its process alone",
)
@pytest.mark.django_db(transaction=True)
def test_several_processes_find_the_same(placed: Parcels) -> None:
    wrong = altered(placed[0], placed[3])
    try:
        assert named(called("--processes", "2")) == wrong
    finally:
        for parcel in placed:
            ProcessInstance.objects.filter(pk=parcel.pk).update(data=parcel.data)
    assert Checkpoint.objects.exists()
    assert invariants.violations() == []
