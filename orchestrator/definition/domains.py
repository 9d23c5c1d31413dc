"""The values a field can have, where its type says so: enumerations, literals, booleans."""

from __future__ import annotations

from enum import Enum
from typing import Any, Literal, get_args, get_origin, get_type_hints


def domain(cls: type[Any], name: str) -> tuple[object, ...]:
    """All values of a dataclass's field, or () when they cannot be listed."""
    hint = hints(cls).get(name)
    if hint is bool:
        return (True, False)
    if get_origin(hint) is Literal:
        return get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return tuple(hint)
    return ()


def hints(cls: type[Any]) -> dict[str, Any]:
    """The resolved annotations of a dataclass."""
    if cls not in _hints:
        _hints[cls] = get_type_hints(cls)
    return _hints[cls]


_hints: dict[type[Any], dict[str, Any]] = {}
