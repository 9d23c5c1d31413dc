"""A command of ours, which ends in a line in any project: without tables, a database, or anybody who reads."""

import codecs
import errno
import json
import os
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError

from orchestrator.engine.storage.passing_errors import in_each_others_way, passes
from orchestrator.missing_tables import MIGRATE, lacks_tables

INTERRUPTED, BROKEN_PIPE = 130, 141

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Of what is written, and not of what is opened by its name: the disk is full."""

LOOK = "see whether it is up, and whether the settings say where"


class ProcessionCommand(BaseCommand):
    """Says in one line what to do when there are no tables, no database, or no room for what is written."""

    unread = BROKEN_PIPE
    """The exit code when whoever reads has seen enough, as in `status | head`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        let_there_be_streams()
        super().__init__(*args, **options)

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command as a program of its own: only then are the streams its own, and the end of the process.

        Raises:
            SystemExit: somebody pressed Ctrl-C, or nobody reads any more.
        """
        take_any_character()
        try:
            super().run_from_argv(argv)
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            raise SystemExit(self.unread) from None
        finally:
            let_go_of_what_cannot_be_written()

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: there are no tables yet, the database does not answer, or nothing can be written.
        """
        try:
            said = super().execute(*args, **options)
            self.stdout.flush()
        except (DatabaseError, InterfaceError, OSError) as error:
            if not (told := in_a_line(error)):
                raise
            raise CommandError(told) from error  # which --traceback shows
        return said


def in_a_line(error: Exception) -> str:
    """What is said of an error that is none of the code's; "" of others."""
    if isinstance(error, DatabaseError) and lacks_tables(error):
        return MIGRATE
    if passes(error):
        said = " ".join(str(error).split())
        if in_each_others_way(error):
            return f"others were in the way, start it again: {said}"
        return f"the database does not answer; {LOOK}: {said}"
    if isinstance(error, OSError) and error.errno in UNWRITABLE:
        return f"cannot write: {error.strerror}"
    return ""


def let_there_be_streams() -> None:
    """Those that are closed (`>&-`) Python has as None."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115  # until Python ends
            setattr(sys, name, nothing)


def take_any_character() -> None:
    """Let standard output do so, whatever its encoding is."""
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors=ESCAPED)


def let_go_of_what_cannot_be_written() -> None:
    """Python tries it again when it ends, and would tell of it in its own words."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


ESCAPED = "procession.escaped"
"""How characters are written that an encoding lacks, ASCII most of them: as JSON does, so that JSON stays JSON."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(ESCAPED, _escaped)
