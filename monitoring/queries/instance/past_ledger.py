"""The ledger of a process as it stood at a moment: nothing that came later is in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from monitoring.queries.instance.entries import Entry, HistoryPage
from monitoring.queries.instance.history import history_of
from monitoring.queries.instance.past import PastMoment
from monitoring.queries.instance.workflow_history import workflow_history_of
from orchestrator.models import CommandStatus, IssuedCommand


def ledger_then(
    moment: PastMoment, start: str, labels: Mapping[str, str], before: int | None
) -> HistoryPage:
    """One page of it, the moment's own transition first.

    Args:
        moment: the moment.
        start: the step in which instances of its definition start.
        labels: its steps as people read them.
        before: only transitions to revisions below this one.
    """
    process = moment.present
    below = min(before or moment.revision + 1, moment.revision + 1)
    if process.definition.is_workflow:
        page = workflow_history_of(process, labels, below)
    else:
        page = history_of(process, start, labels, below)
    entries = [entry for entry in page.entries if entry.at <= moment.at]
    return replace(page, entries=[_then(entry, moment) for entry in entries])


def _then(entry: Entry, moment: PastMoment) -> Entry:
    for issued in entry.commands:
        _command_then(issued.command, moment)
    if (entry.leads_to or 0) > moment.revision:
        entry.leads_to = None
    if entry.revision == moment.revision:
        entry.is_moment = True
    return entry


def _command_then(command: IssuedCommand, moment: PastMoment) -> None:
    """A command that had not been carried out yet."""
    if command.finished_at is not None and command.finished_at > moment.at:
        command.status, command.error, command.answer = CommandStatus.READY, "", ""
