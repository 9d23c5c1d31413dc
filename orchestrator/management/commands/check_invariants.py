import json
import random
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

import click
from django.core.management.base import CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from orchestrator.engine import invariants
from orchestrator.engine.invariants.chunks import (
    ProcessChunk,
    ProcessSelection,
    check_chunks,
)
from orchestrator.management.procession_command import ProcessionCommand

EVERY = 30.0
"""Seconds between two lines about the progress, where standard error is no terminal."""


class Command(ProcessionCommand):
    help = "Checks the invariants of the stored processes; exit code 1 if one does not hold."

    def add_arguments(self, parser: CommandParser) -> None:
        add = parser.add_argument
        add("--json", action="store_true", help="print JSON")
        add(
            "--since",
            type=_moment,
            metavar="TIME",
            help="only processes that have changed since this time, such as 2026-11-28 or 2026-11-28T22:00",
        )
        add(
            "--sample",
            type=_sample,
            metavar="N",
            help="only some processes, taken at random: a number, or a share such as 5%%",
        )
        add(
            "--seed",
            type=int,
            metavar="N",
            help="take the same sample as the run that named this seed",
        )
        add(
            "--processes",
            type=_positive,
            default=1,
            metavar="N",
            help="share the work among this many processes of the system",
        )
        add(
            "--resume-after",
            type=UUID,
            metavar="ID",
            help="go on behind this process, which an interrupted run has named",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        seed = options["seed"]
        seed = random.randrange(10**6) if seed is None else seed  # noqa: S311  # no secret
        selection = ProcessSelection(
            options["resume_after"], options["since"], None, seed
        )
        if options["sample"] is not None:
            selection = replace(selection, sample=options["sample"](selection.number()))
            self.stderr.write(f"a sample, with --seed {seed}")
        found: list[str] = []
        with _progress(selection.number(), found) as show:
            for chunk, lines in check_chunks(selection.chunks(), options["processes"]):
                found += lines
                show(chunk)
        self._tell(found, as_json=options["json"])
        if found:
            raise SystemExit(1)

    def _tell(self, found: list[str], *, as_json: bool) -> None:
        if as_json:
            checks = [check.__name__ for check in invariants.CHECKS]
            lines = [json.dumps({"checks": checks, "violations": found}, indent=2)]
        else:
            number = len(invariants.CHECKS)
            lines = [*found, f"{number} invariants, {len(found)} violations"]
        for line in lines:
            self.stdout.write(line)


def _moment(text: str) -> datetime:
    found = parse_datetime(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no time, such as 2026-11-28T22:00")
    return timezone.make_aware(found) if timezone.is_naive(found) else found


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def _sample(text: str) -> Callable[[int], float]:
    """Return a function of the number of processes, which returns the share to check."""
    number, share = text.removesuffix("%"), text.endswith("%")
    try:
        wanted = float(number)
    except ValueError:
        wanted = -1
    if not 0 < wanted < float("inf") or (share and wanted > 100):
        raise ArgumentTypeError(f"{text!r} is neither a number nor a share such as 5%")
    return lambda whole: wanted / 100 if share else min(wanted / max(whole, 1), 1)


@contextmanager
def _progress(
    number: int, found: list[str]
) -> Iterator[Callable[[ProcessChunk], None]]:
    """Show the progress on standard error, and how to go on after an interruption.

    Args:
        number: how many processes there are.
        found: the list of what is found.
    """
    last: UUID | None = None
    done, begun = 0, time.monotonic()
    told = begun
    bar = click.progressbar(length=number, label="Processes", file=sys.stderr)
    is_terminal = sys.stderr.isatty()

    def show(chunk: ProcessChunk) -> None:
        nonlocal last, done, told
        last, done = chunk.last or last, done + chunk.number
        if is_terminal:
            bar.update(chunk.number)
        elif time.monotonic() - told > EVERY:
            told = time.monotonic()
            _write(_line(done, number, told - begun, len(found), last))

    try:
        if is_terminal:
            with bar:
                yield show
        else:
            yield show
    except BaseException:
        for line in found:
            _write(line)
        if last is not None:
            _write(f"interrupted; to go on, add --resume-after {last}")
        raise


def _line(done: int, number: int, seconds: float, found: int, last: UUID | None) -> str:
    """One line about the progress."""
    left = seconds / done * max(number - done, 0) if done else 0
    said = f"{done:,} of {number:,} processes, {found:,} violations"
    if done:
        said += f", {left / 60:.0f} min left"
    return f"{said}, --resume-after {last}" if last is not None else said


def _write(line: str) -> None:
    click.echo(line, err=True)
