"""How a definition is told to be invalid, and the rules that hold for both kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NoReturn

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


def name_reasons(name: str, version: object) -> Iterator[str]:
    """What is wrong with the name and the version of a definition."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,100}", name):
        yield f"the name {name!r} must be 1 to 100 letters, digits, hyphens or underscores"
    if type(version) is not int or version < 1:
        yield f"the version {version!r} must be a whole number from 1"


def unnamed(value: object, role: str) -> str:
    """Why a function cannot be called by its name; "" when it can."""
    name = getattr(value, "__name__", "")
    if not callable(value) or isinstance(value, type):
        return f"{value!r} cannot be {role}: a function is needed"
    if not name or name == "<lambda>":
        return f"{role} is a named function, so that the diagram can name it"
    return ""
