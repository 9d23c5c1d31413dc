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
    """A delay as people say it: "10 minutes", "1 hour 30 minutes", "1.2 seconds"; different delays differ."""
    minutes, seconds = divmod(delay.seconds, 60)
    hours, minutes = divmod(minutes, 60)
    exact = f"{seconds}.{delay.microseconds:06d}".rstrip("0").rstrip(".")
    units = {"day": delay.days, "hour": hours, "minute": minutes, "second": exact}
    parts = [
        f"{count} {unit}{'' if str(count) == '1' else 's'}"
        for unit, count in units.items()
        if str(count) != "0"
    ]
    return " ".join(parts) or "0 seconds"


def name_of(value: object) -> str:
    """The name of a function or class; of anything else, which no definition may hold, how it is written."""
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else repr(value)


def written(value: object) -> str:
    """A value as people read it."""
    return str(value.value) if isinstance(value, Enum) else str(value)
