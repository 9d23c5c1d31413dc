"""Which processes a command means: those that are named, or those that the list's filters find."""

import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime

from monitoring.queries.instances import Filters, ListPage, page_of
from orchestrator.models import ProcessInstance, Status

USAGE = 2
"""The exit code of what was asked for wrongly."""

FILTERS = ("definition", "version_number", "status", "step", "owner", "key", "since")
UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
ONE_PAGE = 500
"""Processes that one question to the database gives, where all are wanted."""


def add_filters(parser: CommandParser) -> None:
    """The filters of the console's list."""
    parser.add_argument("--definition", default="", help="of this definition only")
    parser.add_argument(
        "--version-number", type=int, metavar="N", help="of this version of it only"
    )
    parser.add_argument(
        "--status",
        default="",
        choices=["live", *Status.values],
        metavar="STATUS",
        help=f"live, {', '.join(Status.values)}",
    )
    parser.add_argument("--step", default="", help="in this step now, or ended in it")
    parser.add_argument("--escalated", action="store_true", help="escalated ones only")
    parser.add_argument(
        "--owner", default="", help='seen to by this user; "nobody" by none'
    )
    parser.add_argument(
        "--key", default="", help="a process id, or how a correlation key begins"
    )
    parser.add_argument(
        "--since",
        type=moment,
        metavar="WHEN",
        help="started since then: 90m, 24h, 7d, 2026-08-01 or 2026-08-01T09:30:00+09:00",
    )


def filters_of(options: Mapping[str, Any]) -> Filters:
    number = options["version_number"]
    return Filters(
        definition=options["definition"],
        version="" if number is None else str(number),
        status=options["status"],
        step=options["step"],
        escalated="1" if options["escalated"] else "",
        owner=options["owner"],
        q=options["key"],
        started_since=options["since"],
    )


def narrowed(options: Mapping[str, Any]) -> bool:
    """Whether any filter was given."""
    return bool(options["escalated"] or any(options[name] for name in FILTERS))


def found(filters: Filters, before: str = "") -> Iterator[ProcessInstance]:
    """All that match, newest first; each question goes on where the last one ended."""
    size = ONE_PAGE
    while True:
        page = page_of(filters, before, size)
        yield from page.rows
        if not page.older:
            return
        before = page.older


def first(filters: Filters, number: int, before: str = "") -> ListPage:
    """The newest that match, so many, also where they lie far apart."""
    rows: list[ProcessInstance] = []
    while True:
        page = page_of(filters, before, number - len(rows))
        rows += page.rows
        if len(rows) >= number or not page.older:
            return replace(page, rows=rows)
        before = page.older


def named(words: Iterable[str]) -> list[UUID]:
    """The processes of these ids, each once; "-" stands for the lines of standard input.

    Raises:
        CommandError: one of them is no process id.
    """
    given: dict[UUID, None] = {}
    for word in words:
        lines = sys.stdin if word == "-" else [word]
        for line in lines:
            if text := line.strip():
                given[process_id(text)] = None
    return list(given)


def process_id(text: str) -> UUID:
    """The process id that is written so, also as a line of `process list --json`.

    Raises:
        CommandError: it is none.
    """
    found = re.match(r'\{"id": "([0-9a-f-]{36})"', text)
    try:
        return UUID(found[1] if found else text)
    except ValueError:
        shown = text[:60].encode("unicode_escape").decode()
        raise CommandError(f"{shown!r} is no process id", returncode=USAGE) from None


def moment(text: str) -> datetime:
    """The moment that is written so: so long ago, a day, or a time.

    Raises:
        ArgumentTypeError: it is none.
    """
    if ago := re.fullmatch(r"(\d{1,6})([smhdw])", text):
        return datetime.now(UTC) - timedelta(**{UNITS[ago[2]]: int(ago[1])})
    try:
        day = parse_date(text)
        at = datetime(day.year, day.month, day.day) if day else parse_datetime(text)  # noqa: DTZ001  # is made so below
    except ValueError:
        at = None
    if at is None:
        raise ArgumentTypeError(
            f"{text!r} is no time: 90m, 24h, 7d, 2026-08-01 or 2026-08-01T09:30:00+09:00"
        )
    return timezone.make_aware(at) if timezone.is_naive(at) else at
