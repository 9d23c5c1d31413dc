"""What differs between two JSON values, place by place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

from monitoring.queries.instance.entries import MISSING, FieldChange

SHOWN = 100
"""Places that are told."""


def json_diff(before: Any, after: Any, names: frozenset[str]) -> list[FieldChange]:
    """The places in which two JSON values differ, in the order of the newer one; of very many the first.

    What stands under secret names is masked.
    """
    found = islice(_differences("", before, after), SHOWN)
    return [change.masked(names) for change in found]


def _differences(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [*after, *(name for name in before if name not in after)]:
            inner = f"{path}.{name}" if path else name
            yield from _differences(
                inner, before.get(name, MISSING), after.get(name, MISSING)
            )
    elif isinstance(before, list) and isinstance(after, list):
        for place in range(max(len(before), len(after))):
            inner = f"{path}.{place}" if path else str(place)
            pair = (
                value[place] if place < len(value) else MISSING
                for value in (before, after)
            )
            yield from _differences(inner, *pair)
    elif type(before) is not type(after) or before != after:
        yield FieldChange(path, before, after)
