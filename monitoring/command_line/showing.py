"""`process show`: one process with its diagram, its failures and its latest history."""

import json
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError, CommandParser

from monitoring.base.masking import data_of
from monitoring.command_line.listing import process_as_json
from monitoring.command_line.selection import USAGE, process_id
from monitoring.command_line.terminal import Terminal
from monitoring.diagrams.text import text_lines
from monitoring.process.revision.entries import Entry
from monitoring.process.steps.trouble import last_line
from monitoring.process.summary import Summary, process_summary
from orchestrator.models import Incident, StepRun

ROWS = 10
INDENT = 24
"""Columns before the error in a row of the history."""
DATA = 4_000
"""Characters of the data that a terminal shows; `--json` has all."""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("id", help="the process id")
    parser.add_argument(
        "--rows", type=int, default=ROWS, help=f"rows of its history; {ROWS} without it"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")


def show_process(terminal: Terminal, options: Mapping[str, Any]) -> int:
    pk = process_id(options["id"])
    found = process_summary(pk)
    if found is None:
        raise CommandError(f"there is no process {pk}", returncode=USAGE)
    entries = found.history.entries[: max(options["rows"], 0)]
    if options["json"]:
        terminal.json(_as_json(found, entries), indent=2)
        return 0
    _head(terminal, found)
    _diagram(terminal, found)
    _trouble(terminal, found)
    _data(terminal, found)
    _history(terminal, entries)
    return 0


def _head(terminal: Terminal, found: Summary) -> None:
    row = found.instance
    name = f"{row.definition} · {row.correlation_key}".removesuffix(" · ")
    terminal.line(terminal.strong(terminal.fitted(name)))
    step = found.labels.get(row.step, row.step)
    where = f", in {step}" if step and row.finished_at is None else ""
    said = terminal.status(row.status)
    terminal.line(f"  process   {row.pk}, revision {row.revision}")
    terminal.line(f"  status    {said}{terminal.fitted(where, 22) if where else ''}")
    terminal.line(f"  started   {row.started_at:%Y-%m-%d %H:%M:%S} UTC")
    terminal.line(f"  changed   {row.changed_at:%Y-%m-%d %H:%M:%S} UTC")
    if row.escalation_level:
        terminal.line(
            terminal.status("escalated", f"  escalated {row.escalation_level} times")
        )
    if row.owner is not None:
        terminal.line(f"  owner     {terminal.fitted(row.owner.get_username(), 12)}")
    if row.parent_id is not None:
        terminal.line(f"  part of   {row.parent_id}")
    if row.summary:
        terminal.line(f"  summary   {terminal.fitted(row.summary, 12)}")


def _diagram(terminal: Terminal, found: Summary) -> None:
    steps = f"{found.sketch.whole:,} steps"
    folded = ", what repeats as one" if found.sketch.folded else ""
    terminal.line()
    terminal.line(terminal.strong(f"Diagram ({steps}{folded})"))
    for line in text_lines(found.sketch, found.states):
        indent = 2 + line.indent
        text = terminal.fitted(line.text, indent)
        text = terminal.status(line.status, text) if line.status else text
        text = terminal.strong(text) if line.current else text
        terminal.line(f"{' ' * indent}{text}")


def _trouble(terminal: Terminal, found: Summary) -> None:
    if not found.incidents:
        return
    terminal.line()
    terminal.line(terminal.strong("Needs a person"))
    for incident in found.incidents:
        text = f"{incident.get_kind_display()}: {incident.message}"
        terminal.line("  " + terminal.status("failed", terminal.fitted(text, 2)))


def _data(terminal: Terminal, found: Summary) -> None:
    text = json.dumps(data_of(found.instance), ensure_ascii=False, indent=2)
    terminal.line()
    terminal.line(terminal.strong("Data"))
    for line in text[:DATA].splitlines():
        indent = line[: len(line) - len(line.lstrip())]
        terminal.line(f"  {indent}{terminal.fitted(line.lstrip(), 2 + len(indent))}")
    if len(text) > DATA:
        terminal.line(f"  … and {len(text) - DATA:,} more characters: --json has all")


def _history(terminal: Terminal, entries: list[Entry]) -> None:
    terminal.line()
    terminal.line(terminal.strong("History, the latest first"))
    for entry in entries:
        number = "" if entry.revision is None else str(entry.revision)
        source = f" · {entry.source}" if entry.source else ""
        text = f"{entry.at:%m-%d %H:%M:%S}  {number:>4}  {entry.what}{source}"
        terminal.line("  " + terminal.fitted(text, 2))
        if entry.error:
            said = terminal.fitted(last_line(entry.error), INDENT)
            terminal.line(f"{' ' * INDENT}{terminal.status('failed', said)}")


def _as_json(found: Summary, entries: list[Entry]) -> dict[str, Any]:
    return {
        **process_as_json(found.instance),
        "data": data_of(found.instance),
        "steps": [_visit(run) for run in found.open_visits],
        "incidents": [_incident(one) for one in found.incidents],
        "history": [_entry(one) for one in entries],
    }


def _visit(run: StepRun) -> dict[str, Any]:
    return {
        "step": run.node,
        "visit": run.visit,
        "element": run.item,
        "status": run.status,
        "attempt": run.attempt,
        "error": run.error,
        "progress": run.progress,
        "sub_process": str(run.child_id) if run.child_id else None,
        "started_at": run.started_at.isoformat(),
        "wakes_at": run.wake_at.isoformat() if run.wake_at else None,
    }


def _incident(one: Incident) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "step": one.step,
        "message": one.message,
        "opened_at": one.opened_at.isoformat(),
    }


def _entry(one: Entry) -> dict[str, Any]:
    return {
        "at": one.at.isoformat(),
        "revision": one.revision,
        "what": str(one.what),
        "source": str(one.source),
        "error": one.error,
    }
