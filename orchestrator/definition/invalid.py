"""How a definition is told to be invalid, and the rules that hold for both kinds."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, NoReturn

from orchestrator.exceptions import InvalidDefinition


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
"""Of a deadline, a pause or a timeout: a date behind it can still be stored."""


def attribute_reasons(cls: Any) -> Iterator[str]:
    """What is wrong with what definitions of both kinds say of themselves."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,100}", cls.name):
        yield f"the name {cls.name!r} must be 1 to 100 letters, digits, hyphens or underscores"
    if type(cls.version) is not int or cls.version < 1:
        yield f"the version {cls.version!r} must be a whole number from 1"
    if not isinstance(cls.queue, str) or not cls.queue:
        yield f"the queue {cls.queue!r} must be the name of a queue"
    if cls.patience not in (None, timedelta(0)) and not is_delay(cls.patience):
        yield f"the patience {cls.patience!r} must be 0 or a {DELAY}"
    if cls.retention is not None and not is_retention(cls.retention):
        yield f"the retention {cls.retention!r} must be a timedelta of at least a day and at most 1,000 years"
    if gives_later(cls.summary):
        yield f"summary {gives_later(cls.summary)}: it is a plain function"


def refuse_misspelt(cls: type[Any], names: Sequence[str]) -> None:
    """Makes sure that a class has no attribute whose name is nearly one of those that mean something.

    Where it has the one that is meant too, the other is the class's own affair.

    Raises:
        InvalidDefinition: it has one, and would go without effect.
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
    """Whether a time can pass and be over."""
    return isinstance(value, timedelta) and timedelta(0) < value <= LONGEST


def is_retention(value: object) -> bool:
    """Whether ended processes can be kept for a time."""
    return is_delay(value) and isinstance(value, timedelta) and value.days >= 1


def is_asynchronous(function: object) -> bool:
    """Whether a function is an `async def`, whose calls a worker awaits."""
    return inspect.iscoroutinefunction(function)


def gives_later(function: object) -> str:
    """Why calling a function gives no value yet, "" when it does: what it gives would be taken for true."""
    return "is asynchronous" if is_asynchronous(function) else yields(function)


def yields(function: object) -> str:
    """Why a function has no one value, not even when it is awaited; "" when it has."""
    generates = inspect.isgeneratorfunction(function)
    return "yields" if generates or inspect.isasyncgenfunction(function) else ""


def unnamed(value: object, role: str) -> str:
    """Why a function cannot be called by its name; "" when it can."""
    name = getattr(value, "__name__", "")
    if not callable(value) or isinstance(value, type):
        return f"{value!r} cannot be {role}: a function is needed"
    if not name or name == "<lambda>":
        return f"{role} is a named function, so that the diagram can name it"
    return ""
