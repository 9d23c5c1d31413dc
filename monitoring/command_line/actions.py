"""`process retry`, `cancel`, `escalate`, `pause` and `resume`: the same actions as the buttons."""

import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import click
from django.contrib.auth import get_user_model
from django.core.management.base import CommandError, CommandParser
from django.db import Error as DatabaseError

from monitoring.command_line.selection import (
    USAGE,
    add_filters,
    column_number,
    filters_from,
    matching_processes,
    parse_ids,
    terminal_text,
)
from monitoring.command_line.terminal import Terminal, printable_line
from monitoring.lists.processes.filters import Filters
from orchestrator.engine.operations import ActionRequest, ProcessOperation, on_processes
from orchestrator.exceptions import OperationRefused, PermissionMissing
from orchestrator.missing_tables import lacks_tables
from orchestrator.models import ProcessInstance, Status
from orchestrator.text import is_plain_name

WAY = "command line"
ALL_DONE, SOME_REFUSED, INTERRUPTED = 0, 1, 130
CALLED = {"resume": "unpause"}
"""The action behind a subcommand of another name; the action `resume` goes back to a checkpoint."""
ENDED_SO = {"cancel": Status.CANCELLED, "pause": Status.PAUSED}
"""The status of a process that no longer needs the action."""


def add_arguments(parser: CommandParser) -> None:
    parser.add_argument(
        "ids", nargs="*", metavar="ID", help='process ids; "-" reads them from input'
    )
    add_user(parser)
    parser.add_argument(
        "--revision",
        type=column_number,
        metavar="N",
        help="only if the process is still at this revision",
    )
    parser.add_argument(
        "--again",
        type=terminal_text,
        default="",
        metavar="KEY",
        help="of runs with the same key each process is acted on by one only",
    )
    parser.add_argument(
        "--all-matching",
        action="store_true",
        help="all that the filters find when it begins, which are those of `list`",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before")
    parser.add_argument("--json", action="store_true", help="a JSON object a line")
    add_filters(parser)


def add_user(parser: CommandParser) -> None:
    """Add the options for the user who acts, and the reason."""
    parser.add_argument(
        "--user", required=True, metavar="NAME", help="the user who acts, for the audit"
    )
    parser.add_argument(
        "--reason", type=terminal_text, default="", help="why; kept with the action"
    )


def act_on_processes(terminal: Terminal, options: Mapping[str, Any]) -> int:
    operation = on_processes()[CALLED.get(options["what"], options["what"])]
    actor = active_user(options["user"])
    if operation.requires_reason and not options["reason"].strip():
        raise CommandError("say why: --reason", returncode=USAGE)
    chosen = _chosen_processes(options)
    if not _is_confirmed(operation, len(chosen), options):
        raise CommandError("nothing was done", returncode=USAGE)
    run = BulkAction(terminal, operation, actor, options)
    run.act_on(chosen)
    return run.code


def active_user(name: str) -> Any:
    """Return the active user of that name.

    Raises:
        CommandError: there is none.
    """
    model = get_user_model()
    users = model._default_manager.filter(**{model.USERNAME_FIELD: name})
    user = users.first() if is_plain_name(name) else None
    if user is None or not user.is_active:
        raise CommandError(f"there is no active user {name!r}", returncode=USAGE)
    return user


def _chosen_processes(options: Mapping[str, Any]) -> list[UUID]:
    """Return the processes that match when the command begins."""
    filtered = options["all_matching"]
    if bool(options["ids"]) == filtered:
        told = "name processes by their ids, or say --all-matching with filters"
        raise CommandError(told, returncode=USAGE)
    if not filtered:
        if filters_from(options) != Filters():
            raise CommandError("filters go with --all-matching", returncode=USAGE)
        chosen = parse_ids(options["ids"])
    else:
        chosen = [row.pk for row in matching_processes(filters_from(options))]
    if options["revision"] is not None and len(chosen) != 1:
        raise CommandError("--revision goes with one process", returncode=USAGE)
    return chosen


def _is_confirmed(
    operation: ProcessOperation, number: int, options: Mapping[str, Any]
) -> bool:
    """Whether the command may begin; for processes that filters found, it asks."""
    if not options["all_matching"] or options["yes"] or not number:
        return True
    told = f"{operation.name} {number:,} processes"
    if not sys.stdin.isatty():
        raise CommandError(f"this would {told}: say --yes", returncode=USAGE)
    return click.confirm(f"{told}?", err=True)


class BulkAction:
    """An action on some processes, one after the other, each in its own transaction."""

    def __init__(
        self,
        terminal: Terminal,
        operation: ProcessOperation,
        actor: Any,
        options: Mapping[str, Any],
    ) -> None:
        self.terminal, self.operation, self.actor = terminal, operation, actor
        self.options = options
        self._given = [given.form == "flag" for given in operation.given]  # as in bulk
        self.verdicts: Counter[str] = Counter()
        self._interrupted = False
        self._over = False

    @property
    def code(self) -> int:
        if self._interrupted:
            return INTERRUPTED
        bad = self.verdicts["refused"] + self.verdicts["unknown"]
        return SOME_REFUSED if bad else ALL_DONE

    def act_on(self, chosen: list[UUID]) -> None:
        """Act on each process. An interrupt stops after the current one; the summary has the number of the others."""
        bar = len(chosen) > 1 and sys.stderr.isatty() and not sys.stdout.isatty()
        try:
            with (
                _on_interrupt(self._interrupt),
                click.progressbar(
                    chosen, label=self.operation.name, file=sys.stderr, hidden=not bar
                ) as shown,
            ):
                for pk in shown:
                    if self._over:
                        break
                    self._act(pk)
        finally:  # also when the reader of the output has gone
            self._sum_up(len(chosen))

    def _sum_up(self, number: int) -> None:
        left = number - self.verdicts.total()
        if number == 1 and not left:
            return
        said = ", ".join(f"{n:,} {name}" for name, n in sorted(self.verdicts.items()))
        rest = f", {left:,} left as they were" if left else ""
        sys.stderr.write(f"{said or 'nothing to do'}{rest}\n")

    def _interrupt(self) -> None:
        self._interrupted = self._over = True

    def _act(self, pk: UUID) -> None:
        try:
            self.operation(pk, *self._given, request=self._request(pk))
        except PermissionMissing as refusal:
            self._tell(pk, "refused", f"{refusal} ({self.operation.permission})")
            # The user may have the permission for another definition.
            self._over = bool(self.operation.forbidden_everywhere(self.actor))
        except OperationRefused as refusal:
            self._tell(pk, self._said(pk), str(refusal))
        except DatabaseError as error:
            if lacks_tables(error):
                raise
            # The commit may have happened; a run with the same key tells.
            self._tell(pk, "unknown", f"the database did not answer: {error}")
            self._over = True
        else:
            self._tell(pk, "done", "")

    def _request(self, pk: UUID) -> ActionRequest:
        again = self.options["again"]
        name = f"procession:{self.operation.name}:{again}:{pk}"
        return ActionRequest(
            actor=self.actor,
            key=uuid5(NAMESPACE_URL, name) if again else uuid4(),
            reason=self.options["reason"],
            expected_revision=self.options["revision"],
            way=WAY,
        )

    def _said(self, pk: UUID) -> str:
        """Return the verdict of a refusal: "already" where the process has the wanted status."""
        wanted = ENDED_SO.get(self.operation.name)
        rows = ProcessInstance.objects.filter(pk=pk, status=wanted)
        return "already" if wanted and rows.exists() else "refused"

    def _tell(self, pk: UUID, verdict: str, why: str) -> None:
        self.verdicts[verdict] += 1
        if self.options["json"]:
            told = {
                "id": str(pk),
                "action": self.operation.name,
                "verdict": verdict,
                "why": why,
            }
            self.terminal.json(told)
            return
        tone = {"done": "done", "already": "idle"}.get(verdict, "failed")
        text = self.terminal.painted(f"{verdict:7}", tone)
        self.terminal.line(f"{pk}  {text}  {printable_line(why)}".rstrip())


@contextmanager
def _on_interrupt(tell: Callable[[], None]) -> Iterator[None]:
    """Calls `tell` at Ctrl-C, so that the current action is completed. A second Ctrl-C ends the command at once."""

    def handler(number: int, frame: FrameType | None) -> None:
        tell()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    try:
        before = signal.signal(signal.SIGINT, handler)
    except ValueError:  # Ctrl-C only reaches the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
