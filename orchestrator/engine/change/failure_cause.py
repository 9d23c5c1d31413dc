"""What failures of one cause have in common: kind, definition, step, class of the error, place in the code, message.

This is the one place that says which failures are alike. The key is stored with each incident (`fingerprint`), beside
the class of its error and the place; an index finds the open ones of a group by it.
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
    """What failures of one cause have in common.

    Args:
        kind: of the incident.
        definition: the name of the process's definition.
        step: where the process is.
        message: what is said of it.
        error: the class of the exception, with its module.
        place: the innermost function of the application that it was raised through, with its module.
    """
    return digest([str(kind), definition, step, error, place, normal(message)])


def normal(message: str) -> str:
    """A message without what differs between occurrences of one cause: ids, numbers, mail addresses."""
    plain = DIFFERS.sub("#", message[: 5 * LONGEST_MESSAGE])
    return " ".join(plain.split())[:LONGEST_MESSAGE]


def error_of(error: BaseException) -> str:
    """The class of an error, with its module unless it is Python's own."""
    kind = type(error)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}"[-200:]


def place_of(error: BaseException) -> str:
    """The innermost function of the application's that an error was raised through; "" if there is none.

    Of code that is neither the application's own nor ours, a library that the application calls, it is the innermost
    only where none of the application's own is on the way: it may be installed as a library is.
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
    """The frames that an error was raised through, the innermost last."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next


def _name(code: CodeType) -> str:
    return getattr(code, "co_qualname", code.co_name)  # from Python 3.11 on


@lru_cache(1000)
def _is_library(filename: str) -> bool:
    return LIBRARIES.search(filename) is not None
