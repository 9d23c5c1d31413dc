"""The places in code where an error was raised: of the application, of an installed one, or of a library.

Code in `site-packages` is the application's where it belongs to an app of `INSTALLED_APPS`, or defines what is
registered. Code that is not installed there comes first, so that a library of Django apps does not hide its caller.
"""

from __future__ import annotations

import re
import sys
from collections import deque
from collections.abc import Iterator
from functools import lru_cache
from types import CodeType, FrameType

from django.apps import apps

from orchestrator import registry

ERRORS = 50
"""The number of errors that are looked at: those that an error came from, and the members of groups."""

OURS = ("orchestrator", "monitoring")
LIBRARIES = re.compile(r"[/\\](?:site|dist)-packages[/\\]")

Places = list[tuple[str, str]]
"""Functions, each with its module before it; the innermost is the last."""


def error_class_name(error: BaseException) -> str:
    """Return the name of an error's class, with its module unless that is Python's own."""
    kind = type(error)
    # A class that is made where no module is has none.
    said = getattr(kind, "__module__", "builtins")
    module = "" if said == "builtins" else f"{said}."
    return f"{module}{kind.__qualname__}"[-200:]


def place_in_code(error: BaseException) -> str:
    """Return the innermost function of the application that raised an error; "" if there is none.

    Without a function outside of `site-packages`, it is the innermost one there.
    """
    own, installed = _places(error)
    return own or (installed[-1][1] if installed else "")


def origin(error: BaseException) -> str:
    """Return the functions of the application that raised an error, each with the class; "" if none did.

    They are those of the error, of the errors that it came from as tracebacks show them, and of the members of groups.
    Lines, messages and their order do not count.
    """
    places = ((error_class_name(one), _own_place(one)) for one in _sources(error))
    return ", ".join(sorted({f"{name} in {own}" for name, own in places if own}))


def _own_place(error: BaseException) -> str:
    own, installed = _places(error)
    return own or (_place_in_apps(installed) if installed else "")


def _place_in_apps(installed: Places) -> str:
    """The innermost function of an app that defines what is registered, else of another app but Django's."""
    registered = registry.defining_modules()
    defining = {apps.get_containing_app_config(one) for one in registered} - {None}
    of_app = ""
    for module, named in reversed(installed):
        app = apps.get_containing_app_config(module)
        if module in registered or app in defining:
            return named
        if app is not None and not module.startswith("django."):
            of_app = of_app or named
    return of_app


def _places(error: BaseException) -> tuple[str, Places]:
    """The innermost function of an error's traceback outside of `site-packages`, and all functions there."""
    own, installed = "", Places()
    for frame in _frames(error):
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        if top in OURS or top in sys.stdlib_module_names:
            continue
        named = f"{module}.{_name(frame.f_code)}"[-200:]
        if _is_library(frame.f_code.co_filename):
            installed.append((module, named))
        else:
            own = named
    return own, installed


def _sources(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, the errors that it came from, and the members of groups; each once."""
    rest, seen = deque([error]), set[int]()
    while rest and len(seen) < ERRORS:
        one = rest.popleft()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        shown = one.__cause__ if one.__suppress_context__ else one.__context__
        rest += [] if shown is None else [shown]
        rest += one.exceptions if isinstance(one, BaseExceptionGroup) else ()


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
