"""What definitions of both kinds have: a name, a version, and a business key by which messages find their process."""

from __future__ import annotations

import re
from collections.abc import Iterator


def mistakes(name: str, version: object) -> Iterator[str]:
    """What is wrong with the name and the version of a definition."""
    if not re.fullmatch(r"[a-zA-Z0-9_-]{1,100}", name):
        yield f"the name {name!r} must be 1 to 100 letters, digits, hyphens or underscores"
    if type(version) is not int or version < 1:
        yield f"the version {version!r} must be a whole number from 1"


def kebab(name: str) -> str:
    """The name of a definition whose class has this name."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


def key_in(message: object, field: str) -> str:
    """The business key in that field of a message or of data, as text; "" when it carries none."""
    value = getattr(message, field, "") if field else ""
    return "" if value is None else str(value)
