"""Whether to read a value of a type runs code of the application."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, fields
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from orchestrator.definition.annotations import (
    FIXED,
    UNIONS,
    bare_type,
    hints,
    is_class,
    is_dataclass_type,
)

HOLDERS = (tuple, frozenset, list, dict, set)

MADE = ("__init__", "__new__", "__setattr__")
"""The methods by which a value is made; `dataclass` writes those that a class does not have itself."""


def runs_code(annotation: Any) -> bool:
    """Return whether to read a value of an annotation may run code of the application, such as `__post_init__`."""
    waiting, seen = [annotation], set[int]()
    while waiting:
        hint = bare_type(waiting.pop())
        if id(hint) in seen:
            continue
        seen.add(id(hint))
        parts = _parts_without_code(hint)
        if parts is None:
            return True
        waiting += parts
    return False


def _parts_without_code(hint: Any) -> Sequence[Any] | None:
    """The annotations inside an annotation that is read without code of the application; None for the others."""
    kind = get_origin(hint) or hint
    if hint is None or kind in (Literal, Any, object, ...) or kind in FIXED:
        return ()
    if kind in UNIONS or kind in HOLDERS:
        return get_args(hint)
    if is_class(kind, Enum):
        return () if kind._missing_.__func__ is Enum._missing_.__func__ else None  # type: ignore[attr-defined]  # a class method
    if is_dataclass_type(kind) and kind is hint:
        return _fields_without_code(kind)
    return None


def _fields_without_code(kind: type[Any]) -> Sequence[Any] | None:
    own = hasattr(kind, "__post_init__") or getattr(kind, "_from_older", None)
    factories = {one.default_factory for one in fields(kind)} - {MISSING, *HOLDERS}
    written = all(_is_written(kind, name) for name in MADE)
    if own or factories or not written:
        return None
    try:
        known = hints(kind)
    except (NameError, TypeError):
        return None
    return [known[one.name] for one in fields(kind)]


def _is_written(kind: type[Any], name: str) -> bool:
    """Whether a method is Python's own, or one that `dataclass` has written."""
    method = getattr(kind, name)
    code = getattr(method, "__code__", None)
    return (
        method is getattr(object, name)
        or getattr(code, "co_filename", "") == "<string>"
    )
