import os
import stat
import sys
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from itertools import repeat
from typing import Any, BinaryIO

import click
from django.core.management.base import CommandError, CommandParser
from django.db import Error as DatabaseError

from orchestrator import strict_json
from orchestrator.definition.codec import MAX_BYTES
from orchestrator.engine.processes.events import Envelope, send_events
from orchestrator.engine.storage.receipts import MANY, MUCH
from orchestrator.exceptions import EventRefused, ProcessionError
from orchestrator.json_events import read_listed_event
from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.missing_tables import lacks_tables


class Command(ProcessionCommand):
    """Sends a set of lines at a time; after an interruption, another run of the same lines sends the rest."""

    help = 'Sends many events: one {"id": "1", "type": "OrderCreated", "data": {…}} a line, on standard input.'

    requires_system_checks = ()  # they load every page, for a command that only stores

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--source", default="command line", help="their sender")

    def handle(self, *args: Any, **options: Any) -> None:
        given = sys.stdin.buffer
        counts = {"sent": 0, "repeated": 0}
        # The size of a pipe is unknown: then the bar only shows progress.
        with click.progressbar(
            repeat(None), length=_size(given), label="Sending", file=sys.stderr
        ) as bar:
            for lines in _line_sets(given, bar.update):
                self._send(lines, options["source"], counts)
        self.stdout.write(
            "sent {sent:,}, received before {repeated:,}".format(**counts)
        )

    def _send(
        self, lines: list[tuple[int, bytes]], source: str, counts: dict[str, int]
    ) -> None:
        envelopes, error = _read(lines, source)
        try:
            receipts = send_events(envelopes)
        except EventRefused as refused:
            receipts, error = list(refused.receipts), refused.reason
        except DatabaseError as lost:
            if lacks_tables(lost):
                raise
            said = " ".join(str(lost).split())
            raise CommandError(
                f"line {lines[0][0]} and after it: {said}; send all lines again, those that are stored are repeats"
            ) from None
        counts["repeated"] += (again := sum(one.repeated for one in receipts))
        counts["sent"] += len(receipts) - again
        if error is not None:
            number, _ = lines[len(receipts)]
            stored = sum(counts.values())
            raise CommandError(
                f"line {number} not sent: {error}; the {stored:,} events before it are stored:"
                " correct it and send all lines again"
            )


def _read(
    lines: list[tuple[int, bytes]], source: str
) -> tuple[list[Envelope], ProcessionError | None]:
    """Return the events of the lines before the first unreadable one, and its error."""
    envelopes: list[Envelope] = []
    for _, line in lines:
        try:
            envelopes.append(read_listed_event(strict_json.parse(line), source))
        except ProcessionError as error:
            return envelopes, error
    return envelopes, None


def _line_sets(
    given: BinaryIO, read: Callable[[int], None]
) -> Iterator[list[tuple[int, bytes]]]:
    """Yield the lines that are not empty, with their numbers, in sets of the size of one statement."""
    found: list[tuple[int, bytes]] = []
    number = size = 0
    while line := given.readline(MAX_BYTES + 2):
        number, size = number + 1, size + len(line)
        text = line.strip()
        if number == 1:
            text = text.removeprefix(BOM_UTF8)  # some editors begin a file with it
        if text:
            found.append((number, text))
        if len(found) == MANY or size >= MUCH:
            yield found
            read(size)
            found, size = [], 0
    if found:
        yield found
        read(size)


def _size(given: BinaryIO) -> int | None:
    """Return the number of bytes, if it is a file."""
    try:
        about = os.fstat(given.fileno())
    except OSError:
        return None
    return about.st_size if stat.S_ISREG(about.st_mode) else None
