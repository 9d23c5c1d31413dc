"""The differences between two states of data or two JSON values, field by field, with secrets masked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import Any

from orchestrator.definition.secrets import MASK, mask_fields

PLACES = 100
"""The maximum number of differences between two values that a page shows."""

MISSING = object()


@dataclass(frozen=True)
class FieldChange:
    """One field before and after; MISSING where it did not exist."""

    name: str
    before: Any
    after: Any
    hides: bool = False
    """Whether the difference is masked."""
    of_data: bool = False
    """Whether it is a field of the data, which needs a permission."""

    @property
    def differs(self) -> bool:
        return self.hides or self.before != self.after

    def masked(self, names: frozenset[str]) -> FieldChange:
        """Return the same change with secrets masked."""
        if not names:
            return self
        inside = not names.isdisjoint(self.name.split("."))

        def shown(value: Any) -> Any:
            if value is MISSING:
                return value
            return MASK if inside else mask_fields(value, names)

        before, after = shown(self.before), shown(self.after)
        hides = self.differs and before == after
        return FieldChange(self.name, before, after, hides, self.of_data)

    @property
    def was_there(self) -> bool:
        return self.before is not MISSING

    @property
    def is_there(self) -> bool:
        return self.after is not MISSING


def pair_fields(
    before: Mapping[str, Any], after: Mapping[str, Any]
) -> Iterator[tuple[str, Any, Any]]:
    """Yield each field of two states with both values, in the order of the newer state; MISSING for an absent value."""
    for name in [*after, *(name for name in before if name not in after)]:
        yield name, before.get(name, MISSING), after.get(name, MISSING)


def differences(
    before: Mapping[str, Any], after: Mapping[str, Any], hidden: frozenset[str]
) -> list[FieldChange]:
    """Return the fields that differ between two states of the data, in the order of the newer one.

    Args:
        before: the older state.
        after: the newer state.
        hidden: the names of secret fields; they are masked after the comparison, so that a change is shown.
    """
    return [
        FieldChange(name, was, now, of_data=True).masked(hidden)
        for name, was, now in pair_fields(before, after)
        # A new field without a value is no difference.
        if was != now and not (was is MISSING and now in ("", None))
    ]


def json_diff(before: Any, after: Any, names: frozenset[str]) -> list[FieldChange]:
    """Return the first differences between two JSON values, in the order of the newer value.

    Values of secret names are masked.
    """
    found = islice(_differences("", before, after), PLACES)
    return [change.masked(names) for change in found]


def _differences(path: str, before: Any, after: Any) -> Iterator[FieldChange]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name, was, now in pair_fields(before, after):
            yield from _differences(f"{path}.{name}" if path else name, was, now)
    elif isinstance(before, list) and isinstance(after, list):
        for place, pair in enumerate(zip_longest(before, after, fillvalue=MISSING)):
            yield from _differences(f"{path}.{place}" if path else str(place), *pair)
    elif type(before) is not type(after) or before != after:
        yield FieldChange(path, before, after)
