"""`process watch`: each change of a process, once and in order, until it ends."""

import sys
import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.core.management.base import CommandError, CommandParser
from django.db import Error as DatabaseError
from django.db import connection

from monitoring.base.graphs import labels_of
from monitoring.command_line.selection import USAGE, process_id, wait_seconds
from monitoring.command_line.terminal import Terminal
from monitoring.process.summary import process_without_data
from orchestrator.missing_tables import lacks_tables
from orchestrator.models import Checkpoint, ProcessInstance, Status

REACHED, OTHERWISE, TIME_IS_UP = 0, 1, 124
AT_ONCE = 500
"""Changes of one query."""
LEAST = 0.1
SLOWEST = 5.0
"""Seconds between two queries to a database that does not answer."""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument("id", help="the process id")
    parser.add_argument(
        "--until",
        choices=Status.values,
        metavar="STATUS",
        help=f"ends there too: {', '.join(Status.values)}",
    )
    parser.add_argument(
        "--timeout", type=wait_seconds, metavar="SECONDS", help="for so long at most"
    )
    parser.add_argument(
        "--interval",
        type=wait_seconds,
        default=1.0,
        metavar="SECONDS",
        help="looks so often",
    )
    parser.add_argument(
        "--history", action="store_true", help="tells what was before, too"
    )
    parser.add_argument("--json", action="store_true", help="a JSON object a line")


def watch_process(terminal: Terminal, options: Mapping[str, Any]) -> int:
    watch = ProcessWatch(terminal, process_id(options["id"]), as_json=options["json"])
    ends = None
    if options["timeout"] is not None:
        ends = time.monotonic() + options["timeout"]
    if options["history"]:
        watch.seen = 0
    pause = max(options["interval"], LEAST)
    while True:
        instance = watch.look()
        if instance is not None and options["until"] in watch.met:
            return REACHED
        if instance is not None and instance.finished_at is not None:
            completed = instance.status == Status.COMPLETED
            return REACHED if completed and not options["until"] else OTHERWISE
        left = pause if instance is not None else min(pause * 2, SLOWEST)
        if ends is not None:
            left = min(left, ends - time.monotonic())
            if left <= 0:
                return TIME_IS_UP
        time.sleep(left)


class ProcessWatch:
    """Follows a process, and remembers the last revision that it has shown.

    Args:
        terminal: where changes are written.
        pk: the process id.
        as_json: whether as lines of JSON.
    """

    def __init__(self, terminal: Terminal, pk: UUID, *, as_json: bool) -> None:
        self.terminal, self.pk, self.as_json = terminal, pk, as_json
        self.seen: int | None = None
        """The last revision that was told; None before the first."""
        self.met: set[str] = set()
        """The statuses since the first look."""
        self._began = 0
        self._away = False

    def look(self) -> ProcessInstance | None:
        """Show the new changes, and return the process; None when the database does not answer.

        Raises:
            CommandError: there is no such process.
        """
        try:
            instance = self._look()
        except DatabaseError as error:
            if lacks_tables(error):
                raise
            if not self._away:
                sys.stderr.write(
                    f"the database does not answer, asking again: {error}\n"
                )
            self._away = True
            connection.close()
            return None
        if self._away:
            sys.stderr.write("the database answers again\n")
            self._away = False
        return instance

    def _look(self) -> ProcessInstance:
        instance = process_without_data(self.pk)
        if instance is None:
            raise CommandError(f"there is no process {self.pk}", returncode=USAGE)
        self._began = self._began or instance.revision
        if self.seen is None:
            self.seen = instance.revision - 1  # the current status is told first
        while self.seen < instance.revision:
            after = instance.checkpoints.filter(
                revision__gt=self.seen, revision__lte=instance.revision
            )
            found = list(after.order_by("revision").defer("data")[:AT_ONCE])
            for checkpoint in found:
                self._tell(checkpoint, instance)
                self.seen = checkpoint.revision
            if not found:
                break
        return instance

    def _tell(self, row: Checkpoint, instance: ProcessInstance) -> None:
        if row.revision >= self._began:
            self.met.add(row.status)
        if self.as_json:
            told = {
                "id": str(self.pk),
                "revision": row.revision,
                "at": row.at.isoformat(),
                "cause": row.cause,
                "status": row.status,
                "steps": row.steps,
            }
            self.terminal.json(told)
        else:
            labels = labels_of(instance.definition)
            steps = ", ".join(labels.get(one, one) for one in row.steps)
            plain = f"{row.at:%H:%M:%S}  {row.revision:>4}  "
            status = self.terminal.status(row.status, f"{row.status:9}")
            rest = self.terminal.fitted(f"{steps}  ({row.said})", len(plain) + 11)
            self.terminal.line(f"{plain}{status}  {rest}")
        getattr(self.terminal.out, "flush", lambda: None)()
