"""The cause of a failure: kind, definition, step, class of the error, place in the code, and message.

Failures with the same cause form a failure group. Each incident stores the key of its cause (`fingerprint`), the class
of its error and the place; an index finds the open incidents of a group by the key.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType

from orchestrator.definition.codec import digest

LONGEST_MESSAGE = 200
DIFFERS = re.compile(
    r"""
    [^\s@'"<>]{1,64}@[^\s'"<>]{1,255}                      # a mail address
    | \b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b
    | \b\w*\d\w*(?:[-.:,/+]\w*\d\w*)*                      # ids, hashes, amounts, moments: what has digits in it
    """,
    re.VERBOSE,
)
OURS = ("orchestrator", "monitoring")
LIBRARIES = re.compile(r"[/\\](?:site|dist)-packages[/\\]")


def fingerprint(
    kind: str, definition: str, step: str, message: str, error: str, place: str
) -> str:
    """Return the key of a failure's cause.

    Args:
        kind: the kind of the incident.
        definition: the name of the process's definition.
        step: the process's step.
        message: the message of the incident.
        error: the class of the exception, with its module.
        place: the innermost function of the application that raised it, with its module.
    """
    return digest([str(kind), definition, step, error, place, normalize(message)])


def normalize(message: str) -> str:
    """Return a message without the ids, numbers and mail addresses that differ between failures of one cause."""
    plain = DIFFERS.sub("#", message[: 5 * LONGEST_MESSAGE])
    return " ".join(plain.split())[:LONGEST_MESSAGE]


def error_class_name(error: BaseException) -> str:
    """Return the name of an error's class, with its module unless that is Python's own."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"[-200:]


def place_in_code(error: BaseException) -> str:
    """Return the innermost function of the application that raised an error; "" if there is none.

    Without a function of the application's own, it is the innermost function of a library outside Procession: an
    application may be installed like a library.
    """
    own = library = ""
    for frame in _frames(error):
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        if top in OURS or top in sys.stdlib_module_names:
            continue
        named = f"{module}.{_name(frame.f_code)}"
        if not _is_library(frame.f_code.co_filename):
            own = named
        else:
            library = named
    return (own or library)[-200:]


def _frames(error: BaseException) -> Iterator[FrameType]:
    """The frames of an error's traceback, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _name(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on


@lru_cache(1000)
def _is_library(filename: str) -> bool:
    return LIBRARIES.search(filename) is not None
