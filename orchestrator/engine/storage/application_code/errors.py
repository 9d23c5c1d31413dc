"""Errors of the application's code, told apart from those of the engine.

A LeaseLost or an UnknownEventType that a step's own calls raise is a failure like any other.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from typing import Any

from orchestrator.engine.storage.application_code import error_texts
from orchestrator.exceptions import ExitRefused


def marked_error(
    error: BaseException,
    name: str,
    ours: tuple[type[Exception], ...],
    *,
    with_traceback: bool = True,
) -> Exception:
    """The error of code of the application, marked as such unless it is one of `ours`, with its texts."""
    if isinstance(error, Exception):
        failure = error
        if not isinstance(error, ours):
            vars(error).setdefault(FROM_APPLICATION, True)
    else:
        failure = refuse_exit(name, error)
        failure.__cause__ = error
        vars(failure)[FROM_APPLICATION] = True
    error_texts.keep(failure, with_traceback=with_traceback)
    return failure


def refuse_exit(name: str, ending: BaseException) -> ExitRefused:
    """Return the error of code of the application that raised an exception that ends programs."""
    text = error_texts.message_of(ending)
    said = f": {text}" if text else ""
    return ExitRefused(
        "%(function)s raised %(error)s, which ends programs; a step fails by raising an Exception",
        name,
        f"{type(ending).__name__}{said}",
    )


def as_failure(error: BaseException, name: str) -> Exception:
    """Return what came out of a piece of work as its error; the engine itself sends nothing that ends programs.

    Raises:
        KeyboardInterrupt: a person has interrupted the engine. In a worker process no signal raises this.
    """
    if isinstance(error, Exception):
        return error
    if isinstance(error, KeyboardInterrupt):
        raise error
    refused = refuse_exit(name, error)
    refused.__cause__ = error
    return refused


class EngineErrors(ContextDecorator):
    """Marks errors inside this context, which runs inside the application's code, as the engine's."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        if isinstance(error, Exception):
            vars(error).setdefault(FROM_APPLICATION, False)


FROM_APPLICATION = "_of_the_application"


def from_application(error: BaseException) -> bool:
    """Whether an error came out of the application's code."""
    return bool(vars(error).get(FROM_APPLICATION))


def from_engine(error: BaseException, kinds: Any) -> bool:
    """Whether an error is of one of these kinds, and the engine's own: not out of the application's code."""
    return isinstance(error, kinds) and not from_application(error)
