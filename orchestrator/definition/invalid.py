"""Refuses invalid definitions; holds the rules that both kinds share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, NoReturn

from orchestrator.definition.words import name_of
from orchestrator.exceptions import InvalidDefinition


def refuse(definition: str, broken: Iterable[tuple[object, str]]) -> None:
    """Ends the declaration of a definition if it breaks a rule.

    Args:
        definition: the name of the class.
        broken: each row that breaks a rule, None for the whole class, and the reason.

    Raises:
        InvalidDefinition: naming the class, and the first of the rows with its reason.
    """
    for row, reason in broken:
        invalid(definition, row, reason)


def whole(reasons: Iterable[str]) -> Iterator[tuple[None, str]]:
    """Reasons that concern a whole class and not one of its rows."""
    return ((None, reason) for reason in reasons)


def invalid(definition: str, row: object, reason: str) -> NoReturn:
    """Ends the declaration of a definition.

    Args:
        definition: the name of the class.
        row: the row, or None when the mistake is not in one.
        reason: what is wrong.

    Raises:
        InvalidDefinition: always.
    """
    raise InvalidDefinition(definition, "" if row is None else str(row), reason)


LONGEST = timedelta(days=365_000)
"""The longest deadline, pause or timeout. Its end can still be stored as a date."""


def attribute_reasons(cls: Any) -> Iterator[str]:
    """Mistakes in the attributes that both kinds have."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,100}", cls.name):
        yield f"the name {cls.name!r} must be 1 to 100 letters, digits, hyphens or underscores"
    if type(cls.version) is not int or cls.version < 1:
        yield f"the version {cls.version!r} must be a whole number from 1"
    if not isinstance(cls.queue, str) or not cls.queue:
        yield f"the queue {cls.queue!r} must be the name of a queue"
    if cls.patience not in (None, timedelta(0)) and not is_delay(cls.patience):
        yield f"the patience {cls.patience!r} must be 0 or a {DELAY}"
    kept = cls.retention
    if kept is not None and not (is_delay(kept) and kept.days >= 1):
        yield f"the retention {cls.retention!r} must be a timedelta of at least a day and at most 1,000 years"
    if gives_later(cls.summary):
        yield f"summary {gives_later(cls.summary)}: it is a plain function"


def refuse_misspelt(cls: type[Any], names: Sequence[str]) -> None:
    """Refuses an attribute whose name is nearly that of a known one, which the class lacks.

    Raises:
        InvalidDefinition: naming the attribute, which would have no effect.
    """
    missing = {name.lower(): name for name in names if name not in vars(cls)}
    for key in vars(cls):
        if key.startswith("_") or key in names:
            continue
        for near in get_close_matches(key.lower(), missing, n=1, cutoff=0.85):
            reason = f"it has {key}, which means nothing: write {missing[near]}"
            invalid(cls.__name__, None, reason)


DELAY = "timedelta of more than 0 and at most 1,000 years"


def is_delay(value: object) -> bool:
    """Whether a value is a delay that can pass."""
    return isinstance(value, timedelta) and timedelta(0) < value <= LONGEST


def is_asynchronous(function: object) -> bool:
    """Whether a function is an `async def`. Workers await its calls."""
    return inspect.iscoroutinefunction(function)


def gives_later(function: object) -> str:
    """Why a function call returns no plain value; "" if it does. A coroutine or generator would count as true."""
    return "is asynchronous" if is_asynchronous(function) else yields(function)


def yields(function: object) -> str:
    """Why a function is a generator; "" if it is none."""
    generates = inspect.isgeneratorfunction(function)
    return "yields" if generates or inspect.isasyncgenfunction(function) else ""


def not_plain(function: object, role: str) -> str:
    """Why a value is no plain function with a name; "" when it is one."""
    if reason := unnamed(function, role):
        return reason
    later = gives_later(function)
    return f"{name_of(function)} {later}: {role} is a plain function" if later else ""


def unnamed(value: object, role: str) -> str:
    """Why a function cannot be called by its name; "" when it can."""
    name = getattr(value, "__name__", "")
    if not callable(value) or isinstance(value, type):
        return f"{value!r} cannot be {role}: a function is needed"
    if not name or name == "<lambda>":
        return f"{role} is a named function, so that the diagram can name it"
    return ""
