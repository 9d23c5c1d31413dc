"""How steps, functions, values and delays are written in labels and messages."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import Enum


def spoken_name(name: str) -> str:
    """A step's name as people read it: "AwaitingListing" and "awaiting_listing" give "Awaiting listing"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name).strip().lower()
    return words[:1].upper() + words[1:]


def spoken_condition(predicate: object) -> str:
    """The name of a predicate as people read it."""
    return name_of(predicate).replace("_", " ")


def spoken_delay(delay: timedelta) -> str:
    """A delay as people say it: "10 minutes", "1 hour 30 minutes"."""
    rest = int(delay.total_seconds())
    parts = []
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count} {unit}{'s' if count > 1 else ''}")
    return " ".join(parts) or f"{delay.total_seconds():g} seconds"


def name_of(value: object) -> str:
    """The name of a function or class; of anything else, which no definition may hold, how it is written."""
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else repr(value)


def written(value: object) -> str:
    """A value as people read it."""
    return str(value.value) if isinstance(value, Enum) else str(value)
