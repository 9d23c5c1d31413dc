"""The processes of a command: those that its arguments name, or those that the list's filters find."""

import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from monitoring.lists.processes.arm import LOOKED_AT
from monitoring.lists.processes.filters import Filters
from monitoring.lists.processes.pages import ListPage, process_batches, process_page
from orchestrator.models import ProcessInstance, Status

USAGE = 2
"""The exit code of a wrong command line."""

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
GREATEST = 2**31 - 1
LOOKS = 20
"""Pages that are read at most to fill a list."""
LONGEST_WAIT = 10.0**9
"""The longest wait in seconds, which fits into every system's clock."""


def add_filters(parser: CommandParser) -> None:
    """Add the arguments for the filters of the console's list."""
    parser.add_argument("--definition", type=filter_text, help="of this definition")
    parser.add_argument(
        "--version-number",
        type=column_number,
        metavar="N",
        help="of this version of it only",
    )
    parser.add_argument(
        "--status",
        default="",
        choices=["live", *Status.values],
        metavar="STATUS",
        help=f"live, {', '.join(Status.values)}",
    )
    parser.add_argument("--step", type=filter_text, help="in or ended in this step")
    parser.add_argument("--escalated", action="store_true", help="escalated ones only")
    parser.add_argument(
        "--owner",
        type=filter_text,
        help='only processes of this owner; "nobody": only processes without an owner',
    )
    parser.add_argument(
        "--key", type=filter_text, help="a process id, or how a correlation key begins"
    )
    parser.add_argument(
        "--since",
        type=read_time,
        metavar="WHEN",
        help="started since then: 90m, 24h, 7d, 2026-08-01 or 2026-08-01T09:30:00+09:00",
    )


def filters_from(options: Mapping[str, Any]) -> Filters:
    number = options["version_number"]
    return Filters(
        definition=options["definition"] or "",
        version="" if number is None else str(number),
        status=options["status"],
        step=options["step"] or "",
        escalated="1" if options["escalated"] else "",
        owner=options["owner"] or "",
        q=options["key"] or "",
        started_since=options["since"],
    ).by_name()


def matching_processes(filters: Filters, before: str = "") -> Iterator[ProcessInstance]:
    """Return all processes that match, newest first; each query continues where the last one ended."""
    return chain.from_iterable(process_batches(filters, before))


def newest_processes(filters: Filters, number: int, before: str = "") -> ListPage:
    """Return the newest processes that match, at most `number`.

    It reads a bounded number of pages. A search that stops at the bound returns fewer rows than match; the next page
    continues there.
    """
    rows: list[ProcessInstance] = []
    for _ in range(LOOKS + number // LOOKED_AT):
        page = process_page(filters, before, number - len(rows))
        rows += page.rows
        if len(rows) >= number or not page.older:
            break
        before = page.older
    return replace(page, rows=rows)


def parse_ids(words: Iterable[str]) -> list[UUID]:
    """Return the given process ids, each once; "-" stands for the lines of standard input.

    Raises:
        CommandError: a word is no process id.
    """
    given: dict[UUID, None] = {}
    for word in words:
        lines = sys.stdin if word == "-" else [word]
        for line in lines:
            if text := line.strip():
                given[process_id(text)] = None
    return list(given)


def process_id(text: str) -> UUID:
    """Return the process id in a text, which may be a line of `process list --json`.

    Raises:
        CommandError: the text has no process id.
    """
    found = re.match(r'\{"id": "([0-9a-f-]{36})"', text)
    try:
        return UUID(found[1] if found else text)
    except ValueError:
        shown = text[:60].encode("unicode_escape").decode()
        raise CommandError(f"{shown!r} is no process id", returncode=USAGE) from None


def read_time(text: str) -> datetime:
    """Return the moment in a text: a time span before now, a day, or a time.

    Raises:
        ArgumentTypeError: the text has another form.
    """
    try:
        at = _time_in(text)
    except (ValueError, OverflowError):
        at = None
    if at is None:
        raise ArgumentTypeError(
            f"{text!a} is no time: 90m, 24h, 7d, 2026-08-01 or 2026-08-01T09:30:00+09:00"
        )
    return at


def _time_in(text: str) -> datetime | None:
    if ago := re.fullmatch(r"(\d{1,6})([smhdw])", text):
        return datetime.now(UTC) - timedelta(**{UNITS[ago[2]]: int(ago[1])})
    day = parse_date(text)
    at = datetime(day.year, day.month, day.day) if day else parse_datetime(text)  # noqa: DTZ001  # made aware below
    if at is not None and timezone.is_naive(at):
        at = timezone.make_aware(at)
    return None if at is None else at.astimezone(UTC)  # as it will be stored


def filter_text(text: str) -> str:
    """Return a text that is not empty: a script's empty variable would filter nothing, and select all processes.

    Raises:
        ArgumentTypeError: it is empty, or no text.
    """
    if not text.strip():
        raise ArgumentTypeError("it is empty; leave it out to mean all")
    return terminal_text(text)


def terminal_text(text: str) -> str:
    """Return a text that a database can store.

    Raises:
        ArgumentTypeError: the text is not in the encoding of the terminal, or has a NUL.
    """
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise ArgumentTypeError(f"{text!a} is no text")
    return text


def column_number(text: str) -> int:
    """Return a number that fits into a column.

    Raises:
        ArgumentTypeError: the text has none.
    """
    number = int(text) if re.fullmatch(r"[0-9]{1,10}", text) else GREATEST + 1
    if number > GREATEST:
        raise ArgumentTypeError(f"{text!a} is no number from 0 to {GREATEST}")
    return number


def wait_seconds(text: str) -> float:
    """Return a time span in seconds, at most `LONGEST_WAIT`.

    Raises:
        ArgumentTypeError: the text has none.
    """
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= GREATEST:
        raise ArgumentTypeError(f"{text!a} is no number of seconds")
    return min(number, LONGEST_WAIT)
