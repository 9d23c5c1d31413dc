"""The message and the traceback of an error, read where the error leaves code of the application.

Both are code of the application too: a message may be a query, which fails, and a note or a class may raise. Later they
would run inside a transaction of the engine. So they are read once, and kept with the error.
"""

from __future__ import annotations

import traceback
from types import TracebackType
from typing import NamedTuple

from orchestrator.exceptions import Poll, Skip
from orchestrator.text import UNSPOKEN, text_from

KEPT = "_procession_texts"

BETWEEN = "\nThe above exception was the direct cause of the following exception:\n\n"
"""The line of Python's tracebacks between an error and its cause."""


class ErrorTexts(NamedTuple):
    """The texts of an error, and the place where it was raised."""

    message: str
    traceback: str
    raised_at: TracebackType | None


def keep(error: BaseException, *, with_traceback: bool = True) -> None:
    """Read the texts of an error, and keep them with it, unless a call inside has done so."""
    known: ErrorTexts | None = vars(error).get(KEPT)
    at = _raised_at(error)
    if known is not None and known.raised_at in (None, at):
        return
    is_failure = not isinstance(error, Poll | Skip)
    read = _read_traceback(error) if with_traceback and is_failure else ""
    vars(error)[KEPT] = ErrorTexts(_read_message(error), read, at)


def _raised_at(error: BaseException) -> TracebackType | None:
    """The innermost entry of an error's traceback, which stays the same while the error passes."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    return at


def message_of(error: BaseException) -> str:
    """Return the message of an error."""
    kept: ErrorTexts | None = vars(error).get(KEPT)
    return _read_message(error) if kept is None else kept.message


def traceback_of(error: BaseException) -> str:
    """Return the traceback of an error, with those of its causes."""
    kept: ErrorTexts | None = vars(error).get(KEPT)
    if kept is not None and kept.traceback:
        return kept.traceback
    cause = error.__cause__
    if cause is None or KEPT not in vars(cause):
        return _read_traceback(error)
    return f"{traceback_of(cause)}{BETWEEN}{_read_traceback(error, chain=False)}"


def _read_message(error: BaseException) -> str:
    try:
        return text_from(error)
    except BaseException as unspoken:  # noqa: BLE001  # the application's
        return UNSPOKEN.filled(type(unspoken).__name__)


def _read_traceback(error: BaseException, *, chain: bool = True) -> str:
    try:
        return "".join(traceback.format_exception(error, chain=chain))
    except BaseException:  # noqa: BLE001  # the error's class raises
        return f"{type(error).__name__}: {_read_message(error)}\n"
