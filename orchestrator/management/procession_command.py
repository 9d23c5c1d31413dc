"""The base of all commands: expected failures, such as missing tables, end them with one line."""

import codecs
import errno
import json
import os
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, InterfaceError

from orchestrator.command_line import version_line
from orchestrator.engine.sql.connection import is_conflict, passes
from orchestrator.missing_tables import MIGRATE, lacks_tables

INTERRUPTED, BROKEN_PIPE = 130, 141

UNWRITABLE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF}
"""Error numbers of a failed write, such as those of a full disk; not of a file that cannot be opened."""

CHECK_DATABASE = "see whether it is up, and whether the settings say where"


class ProcessionCommand(BaseCommand):
    """A command that ends with one line when there are no tables, no database, or no room to write."""

    unread = BROKEN_PIPE
    """The exit code when the reader closes the pipe, as in `status | head`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        open_closed_streams()
        super().__init__(*args, **options)

    def get_version(self) -> str:
        """Return what `--version` prints."""
        return version_line()

    def run_from_argv(self, argv: list[str]) -> None:
        """Run the command as a program of its own: only then are the streams its own, and the end of the process.

        Raises:
            SystemExit: Ctrl-C was pressed, or the reader has closed the pipe.
        """
        escape_unencodable()
        try:
            super().run_from_argv(argv)
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
        except BrokenPipeError:
            raise SystemExit(self.unread) from None
        finally:
            drop_unwritable_streams()

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command.

        Raises:
            CommandError: there are no tables yet, the database does not answer, or nothing can be written.
        """
        try:
            said = super().execute(*args, **options)
            self.stdout.flush()
        except (DatabaseError, InterfaceError, OSError) as error:
            if not (told := failure_line(error)):
                raise
            raise CommandError(told) from error  # which --traceback shows
        return said


def whole_number(least: int, most: float, what: str) -> Callable[[str], int]:
    """Return the type of an option that is a whole number within bounds.

    Args:
        what: what follows "is not" in the refusal of another value.
    """

    def read(text: str) -> int:
        if text.isdecimal() and least <= int(text) <= most:
            return int(text)
        raise ArgumentTypeError(f"{text!r} is not {what}")

    return read


def failure_line(error: Exception) -> str:
    """Return a line on a database or disk failure; "" for an error of the code."""
    if isinstance(error, DatabaseError) and lacks_tables(error):
        return MIGRATE
    if passes(error):
        said = " ".join(str(error).split())
        if is_conflict(error):
            return f"others were in the way, start it again: {said}"
        return f"the database does not answer; {CHECK_DATABASE}: {said}"
    if isinstance(error, OSError) and error.errno in UNWRITABLE:
        return f"cannot write: {error.strerror}"
    return ""


def open_closed_streams() -> None:
    """Open /dev/null in the place of closed streams (`>&-`), which are None in Python."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nothing = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115  # until Python ends
            setattr(sys, name, nothing)


def escape_unencodable() -> None:
    """Escape characters that the encoding of standard output lacks."""
    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        reconfigure(errors=ESCAPED)


def drop_unwritable_streams() -> None:
    """Redirect streams that cannot be flushed: at exit Python would flush again, and print its own error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


ESCAPED = "procession.escaped"
"""The name of the error handler that writes characters as JSON does, if an encoding such as ASCII lacks them."""


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error(ESCAPED, _escaped)
