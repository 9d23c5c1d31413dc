"""`process list`: the console's list in a terminal, or as lines of JSON."""

import sys
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

import click
from django.core.management.base import CommandError, CommandParser

from monitoring.command_line.selection import (
    LOOKS,
    add_filters,
    column_number,
    filters_from,
    matching_processes,
    newest_processes,
    process_id,
)
from monitoring.command_line.terminal import Terminal
from monitoring.lists.processes.arm import LOOKED_AT
from monitoring.lists.processes.pages import ListPage
from monitoring.queries.processes import ProcessPlace, key_in_place
from orchestrator.models import ProcessInstance

FEW = 50
MOST = 100_000


def _process_id(text: str) -> UUID:
    try:
        return process_id(text)
    except CommandError as none:
        raise ArgumentTypeError(str(none)) from None


def add_arguments(parser: CommandParser) -> None:
    add_filters(parser)
    parser.add_argument(
        "--limit",
        type=column_number,
        default=FEW,
        metavar="N",
        help=f"how many to list at most; {FEW} by default",
    )
    parser.add_argument(
        "--before", type=_process_id, metavar="ID", help="those below this process id"
    )
    parser.add_argument("--all", action="store_true", help="all, however many")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")


def list_processes(terminal: Terminal, options: Mapping[str, Any]) -> int:
    filters, before = filters_from(options), str(options["before"] or "")
    if before and ProcessPlace.parse(before) is None:
        raise CommandError(f"there is no process {before}")
    show = show_as_json if options["json"] else show_as_table
    if not options["all"]:
        number = min(max(options["limit"], 1), MOST)
        page = newest_processes(filters, number, before)
        show(terminal, page.rows)
        if page.older:
            last = key_in_place(page.older)
            sys.stderr.write(f"{_more_text(page, number)}: --before {last}\n")
        return 0
    hidden = not sys.stderr.isatty() or terminal.width is not None
    bar: Any = click.progressbar(
        matching_processes(filters, before),
        length=0 if hidden else filters.applied().count(),
        label="Listing",
        file=sys.stderr,
        hidden=hidden,
    )
    with bar as rows:
        _by_pages(show, terminal, rows)
    return 0


def _more_text(page: ListPage, number: int) -> str:
    if len(page.rows) >= number:
        return "there are more"
    looked_at = LOOKS * LOOKED_AT
    return f"looked at the newest {looked_at:,}, and there may be more (--all looks at all)"


def _by_pages(show: Any, terminal: Terminal, rows: Iterable[ProcessInstance]) -> None:
    """Write rows as they are found; each page of a table has its own column widths."""
    page: list[ProcessInstance] = []
    for row in rows:
        page.append(row)
        if len(page) == MOST // 100:
            show(terminal, page)
            page = []
    if page:
        show(terminal, page)


def show_as_json(terminal: Terminal, rows: Iterable[ProcessInstance]) -> None:
    for row in rows:
        terminal.json(process_as_json(row))


HEADS = ("PROCESS", "DEFINITION", "KEY", "STATUS", "STEP", "REVISION", "CHANGED")
CUTTABLE = ("DEFINITION", "KEY", "STEP")


def show_as_table(terminal: Terminal, rows: Iterable[ProcessInstance]) -> None:
    terminal.table(HEADS, map(_cells, rows), CUTTABLE, coloured="STATUS")


def _cells(row: ProcessInstance) -> tuple[str, ...]:
    return (
        str(row.pk),
        f"{row.name} v{row.definition.version}",
        row.correlation_key,
        row.status,
        row.step,
        str(row.revision),
        f"{row.changed_at:%Y-%m-%d %H:%M:%S}",
    )


def process_as_json(row: ProcessInstance) -> dict[str, Any]:
    """Return a process as JSON values; its id comes first."""
    return {
        "id": str(row.pk),
        "definition": row.name,
        "version": row.definition.version,
        "key": row.correlation_key,
        "status": row.status,
        "step": row.step,
        "revision": row.revision,
        "summary": row.summary,
        "owner": row.owner.get_username() if row.owner else None,
        "escalation_level": row.escalation_level,
        "parent": str(row.parent_id) if row.parent_id else None,
        "started_at": row.started_at.isoformat(),
        "changed_at": row.changed_at.isoformat(),
        "paused_at": row.paused_at.isoformat() if row.paused_at else None,
        "finished_at": row.finished_at.isoformat() if row.finished_at else None,
    }
