"""What a list is narrowed to, as chips that can be removed one by one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode


@dataclass(frozen=True)
class Chip:
    """One condition.

    Args:
        label: what it is about; "" where its value says it all.
        value: what it is set to, as people read it.
        without: the query string of the page without it.
    """

    label: Any
    value: Any
    without: str


def address(given: Mapping[str, str], **changed: str) -> str:
    """The query string of some conditions, some of them changed; empty ones are left out."""
    kept = {name: value for name, value in {**given, **changed}.items() if value}
    return f"?{urlencode(kept)}"
