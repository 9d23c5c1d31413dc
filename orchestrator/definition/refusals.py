"""Refusal of invalid definitions, and the rules that both kinds share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from difflib import get_close_matches
from typing import Any, NoReturn

from orchestrator.definition.labels import name_of
from orchestrator.exceptions import InvalidDefinition


def refuse(definition: str, broken: Iterable[tuple[object, str]]) -> None:
    """Refuse a definition that breaks a rule.

    Args:
        definition: the name of the class.
        broken: the broken rows, None for the whole class, each with the reason.

    Raises:
        InvalidDefinition: a rule is broken; the error names the class, the first broken row and the reason.
    """
    for row, reason in broken:
        refuse_row(definition, row, reason)


def class_mistakes(reasons: Iterable[str]) -> Iterator[tuple[None, str]]:
    """Yield the reasons as mistakes of the whole class, not of a row."""
    return ((None, reason) for reason in reasons)


def refuse_row(definition: str, row: object, reason: str) -> NoReturn:
    """Refuse a row of a definition.

    Args:
        definition: the name of the class.
        row: the row; None for the whole class.
        reason: the mistake.

    Raises:
        InvalidDefinition: always.
    """
    raise InvalidDefinition(definition, "" if row is None else str(row), reason)


LONGEST = timedelta(days=365_000)
"""The longest deadline, pause or timeout. Its end can still be stored as a date."""


def attribute_mistakes(cls: Any) -> Iterator[str]:
    """Yield the mistakes in the attributes that both kinds have."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,100}", cls.name):
        yield f"the name {cls.name!r} must be 1 to 100 letters, digits, hyphens or underscores"
    if type(cls.version) is not int or cls.version < 1:
        yield f"the version {cls.version!r} must be a whole number from 1"
    if not isinstance(cls.queue, str) or not cls.queue:
        yield f"the queue {cls.queue!r} must be the name of a queue"
    if cls.patience not in (None, timedelta(0)) and not is_delay(cls.patience):
        yield f"the patience {cls.patience!r} must be 0 or a {DELAY}"
    if cls.missing not in ("ignore", "park"):
        yield f'missing={cls.missing!r} must be "ignore" or "park"'
    kept = cls.retention
    if kept is not None and not (is_delay(kept) and kept.days >= 1):
        yield f"the retention {cls.retention!r} must be a timedelta of at least a day and at most 1,000 years"
    if why_deferred(cls.summary):
        yield f"summary {why_deferred(cls.summary)}: it is a plain function"


def refuse_misspelt(
    cls: type[Any], names: Sequence[str], misplaced: Mapping[str, str]
) -> None:
    """Refuse an attribute that would have no effect.

    Args:
        cls: the class.
        names: the known attributes. A name that resembles one that the class lacks is refused.
        misplaced: names that belong elsewhere, and where; a function may have one.

    Raises:
        InvalidDefinition: the class has such an attribute.
    """
    for key in vars(cls).keys() & misplaced.keys():
        if not inspect.isroutine(inspect.getattr_static(cls, key)):
            reason = f"it has {key}, which means nothing here: {misplaced[key]}"
            refuse_row(cls.__name__, None, reason)
    missing = {name.lower(): name for name in names if name not in vars(cls)}
    for key in vars(cls):
        if key.startswith("_") or key in names:
            continue
        for near in get_close_matches(key.lower(), missing, n=1, cutoff=0.85):
            reason = f"it has {key}, which means nothing: write {missing[near]}"
            refuse_row(cls.__name__, None, reason)


DELAY = "timedelta of more than 0 and at most 1,000 years"


def is_delay(value: object) -> bool:
    """Return whether a value is a positive delay of at most LONGEST."""
    return isinstance(value, timedelta) and timedelta(0) < value <= LONGEST


def why_deferred(function: object) -> str:
    """Return why a call gives no plain value, or "". A condition would take a coroutine or a generator as true."""
    return (
        "is asynchronous"
        if inspect.iscoroutinefunction(function)
        else why_generator(function)
    )


def why_generator(function: object) -> str:
    """Return "yields" for a generator function, else ""."""
    generates = inspect.isgeneratorfunction(function)
    return "yields" if generates or inspect.isasyncgenfunction(function) else ""


def why_not_plain(function: object, role: str) -> str:
    """Return why a value is not a plain function with a name, or ""."""
    if reason := why_unnamed(function, role):
        return reason
    later = why_deferred(function)
    return f"{name_of(function)} {later}: {role} is a plain function" if later else ""


def why_unnamed(value: object, role: str) -> str:
    """Return why a value is not a function with a name, or ""."""
    name = getattr(value, "__name__", "")
    if not callable(value) or isinstance(value, type):
        return f"{value!r} cannot be {role}: a function is needed"
    if not name or name == "<lambda>":
        return f"{role} is a named function, so that the diagram can name it"
    return ""
