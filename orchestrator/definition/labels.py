"""Labels of steps, functions, values and delays."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import Enum


def spoken_name(name: str) -> str:
    """Return the label of a step's name: "AwaitingListing" and "awaiting_listing" give "Awaiting listing"."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_-]+", " ", name).strip().lower()
    return words[:1].upper() + words[1:]


def spoken_condition(predicate: object) -> str:
    """Return the label of a predicate."""
    return name_of(predicate).replace("_", " ")


def spoken_delay(delay: timedelta) -> str:
    """Return the label of a delay, such as "1 hour 30 minutes" or "1.2 seconds". Different delays differ in it."""
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
    """Return the name of a function or class; the `repr` of any other value, which no definition may contain."""
    name = getattr(value, "__name__", None)
    return name if isinstance(name, str) else repr(value)


def value_label(value: object) -> str:
    """Return the label of a value."""
    return str(value.value) if isinstance(value, Enum) else str(value)
