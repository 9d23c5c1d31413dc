"""The message and the traceback of an error, read where the error leaves code of the application.

Both are code of the application too: a message may be a query, which fails, and a note or a class may raise. Later they
would run inside a transaction of the engine. So they are read once, and kept with the error.
"""

from __future__ import annotations

import traceback
from typing import NamedTuple

from orchestrator.exceptions import Poll, Skip
from orchestrator.text import spoken_text

KEPT = "_procession_texts"

BETWEEN = "\nThe above exception was the direct cause of the following exception:\n\n"
"""The line of Python's tracebacks between an error and its cause."""


class ErrorTexts(NamedTuple):
    """The texts of an error."""

    message: str
    traceback: str


def keep(error: BaseException) -> None:
    """Read the texts of an error, and keep them with it."""
    plain = isinstance(error, Poll | Skip)  # no failure: its traceback is never shown
    vars(error)[KEPT] = ErrorTexts(
        spoken_text(error), "" if plain else _read_traceback(error)
    )


def message_of(error: BaseException) -> str:
    """Return the message of an error."""
    kept: ErrorTexts | None = vars(error).get(KEPT)
    return spoken_text(error) if kept is None else kept.message


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error, with those of its causes."""
    kept: ErrorTexts | None = vars(error).get(KEPT)
    if kept is not None and kept.traceback:
        return kept.traceback
    cause = error.__cause__
    if cause is None or KEPT not in vars(cause):
        return _read_traceback(error)
    return f"{traceback_of(cause)}{BETWEEN}{_read_traceback(error, chain=False)}"


def _read_traceback(error: BaseException, *, chain: bool = True) -> str:
    try:
        return "".join(traceback.format_exception(error, chain=chain))
    except BaseException:  # noqa: BLE001  # the error's class raises
        return f"{type(error).__name__}: {spoken_text(error)}\n"
