import errno
import fcntl
import getpass
import os
import stat
import sys
from argparse import ArgumentTypeError
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import Any, BinaryIO

import click
from django.core.management.base import CommandError, CommandParser

from orchestrator import registry
from orchestrator.engine.storage.pruning import REST, Pruning
from orchestrator.management.procession_command import ProcessionCommand
from orchestrator.models import Definition
from orchestrator.retention import ALL_OTHERS, retention


class Command(ProcessionCommand):
    """Removes processes that ended long ago."""

    help = "Removes processes that ended long ago, with all that belongs to them."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--keep",
            action="append",
            type=parse_keep,
            default=[],
            metavar="[NAME=]DAYS",
            help="keep the ended processes of a definition, or of all others, for DAYS days; by default as "
            "definitions and settings say",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="only count the processes to remove"
        )
        parser.add_argument(
            "--export", metavar="FILE", help="append each process as a line of JSON"
        )
        parser.add_argument(
            "--hurry",
            action="store_true",
            help="make no pauses: the database has no other work",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        keep = _kept(options["keep"])
        rest = 0 if options["hurry"] else REST
        if options["dry_run"]:
            due = Pruning(keep, _account(), None, rest).due()
            names = due.values_list("name", flat=True)
            self._say(Counter(names.iterator()), "would go with their sub-processes")
            return
        with ExitStack() as stack:
            export = None
            if options["export"] is not None:
                export = stack.enter_context(_open_export(options["export"]))
            self._prune(Pruning(keep, _account(), export, rest))

    def _prune(self, pruning: Pruning) -> None:
        number = pruning.due().count()
        with click.progressbar(length=number, label="Pruning", file=sys.stderr) as bar:
            pruning.run(bar.update)
        self._say(pruning.pruned, "removed")
        if pruning.items:
            self.stdout.write(f"{pruning.items:,} items of bulk operations removed")
        for process, said in pruning.refused.items():
            self.stderr.write(f"{process} stays, with its sub-processes: {said}")

    def _say(self, found: Counter[str], what: str) -> None:
        for name, number in sorted(found.items()):
            self.stdout.write(f"{name}: {number:,}")
        self.stdout.write(f"{found.total():,} processes {what}")


def _kept(chosen: Sequence[tuple[str, timedelta]]) -> Mapping[str, timedelta]:
    """Return how long processes are kept: as options say, else as definitions and settings say."""
    keep = dict(chosen)
    if len(keep) < len(chosen):
        raise CommandError("--keep names a definition twice")
    _refuse_unknown(keep)
    if not (keep := keep or retention()):
        raise CommandError(
            "every process is kept without a limit: say --keep DAYS, or set PROCESSION_RETENTION_DAYS"
        )
    return keep


def _refuse_unknown(keep: Mapping[str, timedelta]) -> None:
    """Refuse a name that no code and no process has: it is misspelt, and the processes meant would stay."""
    known = {one.name for one in registry.newest_definitions()}
    named = keep.keys() - known - {ALL_OTHERS}
    if not named:
        return
    known |= set(Definition.objects.values_list("name", flat=True))
    if unknown := sorted(named - known):
        there = ", ".join(sorted(known)) or "none"
        raise CommandError(
            f"--keep: there is no definition {unknown[0]!r}; there are: {there}"
        )


def _account() -> str:
    """Return the user who runs the command; in a container the number may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def _open_export(path: str) -> BinaryIO:
    """Open the file to append to, for its owner alone; complete the last line of an interrupted run."""
    try:
        file = open(path, "ab+", opener=_private_opener)  # noqa: SIM115  # the caller closes it
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
    except BlockingIOError:
        raise CommandError(
            f"another run writes to {path!r}: wait for its end, or give this one a file of its own"
        ) from None
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or error
        raise CommandError(f"cannot write to {path!r}: {told}") from None
    return file


def _private_opener(path: str, flags: int) -> int:
    """Open a file that no other user may read: secret fields are in it.

    Raises:
        BlockingIOError: another run has it open.
        OSError: it cannot be opened, or is a pipe or a device, which keep nothing of the removed processes.
    """
    number = os.open(path, flags, 0o600)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file")
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(number)
        raise
    with suppress(PermissionError):  # it is another account's
        os.fchmod(number, 0o600)
    return number


def parse_keep(text: str) -> tuple[str, timedelta]:
    """Return a definition's name and how long its processes are kept.

    Raises:
        ArgumentTypeError: the text has another form.
    """
    name, named, days = text.rpartition("=")
    if named and not name:
        raise ArgumentTypeError(
            f"{text!r} names no definition: order-listing=90, or 90 for all others"
        )
    if not days.isdecimal() or not 1 <= int(days) <= 36_500:
        raise ArgumentTypeError(
            f"{text!r} does not say how long: 90 or order-listing=90, in days from 1 to 36500"
        )
    return name or ALL_OTHERS, timedelta(days=int(days))
