"""Comparison of a value with the value that is read back from its JSON.

JSON has fewer types than Python, so another value may come back without an error: the base of a dataclass, another
member of a union, a text for a date. Equal values of related types count as the same, such as a text for a member of a
`StrEnum`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cache
from itertools import count
from operator import attrgetter
from typing import Any, get_origin
from uuid import UUID

from orchestrator.definition.annotations import components

PLAIN = frozenset(
    [str, int, bool, float, bytes, Decimal, datetime, date, time, timedelta, UUID]
)
"""Types whose values have no parts."""

Mismatch = tuple[object, ...]
"""The path to a value, and the reason as the last element."""

ANOTHER = "it would be read back as another value"
KEYS = "keys of this dict would be read back as others: declare their type, or give text as keys"
OFFSET = "its offset from UTC has seconds, which are not stored: give it in UTC"


def find_change(value: Any, read: Any, *, sequences: bool = False) -> Mismatch | None:
    """Return the first place where another value was read back; None if there is none.

    Args:
        value: the value that was written.
        read: the value that was read back.
        sequences: whether a list may stand for a tuple.
    """
    if value is read:
        return None
    return _between(value, read, sequences)


def _in_parts(
    parts: Iterable[tuple[object, Any, Any]], sequences: bool
) -> Mismatch | None:
    """The first difference among parts of a value, given with their places and what was read back of them."""
    for place, one, back in parts:
        kind = type(one)
        if one is back or (kind is type(back) and kind in PLAIN and one == back):
            continue  # most parts
        if found := _between(one, back, sequences):
            return (place, *found)
    return None


def _between(value: Any, read: Any, sequences: bool) -> Mismatch | None:
    kind, other = type(value), type(read)
    if (form := _form(kind)) is not None:
        if kind is not other and _general(kind) is not _general(other):
            return (_other_type(kind, other),)
        names, values = form
        return _in_parts(
            zip(names, values(value), values(read), strict=True), sequences
        )
    if isinstance(read, dict | set | frozenset) and isinstance(value, other):
        return _in_any_order(value, read, sequences)
    if isinstance(read, list | tuple | deque):
        if not isinstance(value, (list, tuple) if sequences else other):
            return (_other_type(kind, other),)
        if len(value) != len(read):
            return (ANOTHER,)
        return _in_parts(zip(count(), value, read), sequences)
    return None if _is_same(value, read) else (_reason(value, read),)


def _in_any_order(value: Any, read: Any, sequences: bool) -> Mismatch | None:
    """The first difference between two dicts or sets."""
    is_dict, back = isinstance(value, dict), _pairs(value, read)
    found = _in_parts(zip(back, back, back.values(), strict=True), sequences)
    if len(value) != len(read) or (is_dict and found):
        return (KEYS if is_dict else ANOTHER,)
    if not is_dict:
        return found and found[-1:]
    parts = ((key, one, read[back.get(key, key)]) for key, one in value.items())
    return _in_parts(parts, sequences)


def _pairs(value: Collection[Any], read: Collection[Any]) -> dict[Any, Any]:
    """The elements or keys that are not found among those read back, with those that stand for them.

    They are values that Python never calls equal, such as times in the hour that a clock repeats.
    """
    own = [one for one in value if one not in read]
    if not own:
        return {}
    others = [one for one in read if one not in value]
    return dict(zip(sorted(own, key=str), sorted(others, key=str), strict=False))


def _is_same(value: Any, read: Any) -> bool:
    """Whether two values without parts are equal, and of related types."""
    if isinstance(value, float) and type(read) is int:
        return value == float(read)  # a large float, in its shortest digits
    numbers = isinstance(value, int) and type(read) is float
    if not (numbers or isinstance(value, type(read))):
        return isinstance(value, Iterator) and isinstance(read, Iterator)
    if _is_equal(value, read):
        return True
    # In the hour that a clock repeats, equal moments in two zones are not equal in Python. Nor is a NaN to itself.
    return isinstance(value, datetime | Decimal) and str(value) == str(read)


def _is_equal(value: Any, read: Any) -> bool:
    """Whether two values are equal, as far as their class tells: by default two objects never are."""
    kind: Any = type(value)
    try:
        return bool(value == read) or kind.__eq__ is object.__eq__
    except Exception:  # noqa: BLE001  # arrays compare each element
        return True


def _general(kind: Any) -> Any:
    """The class of which this one is a version for types of its parameters, as pydantic makes them; or itself."""
    return getattr(kind, "__pydantic_generic_metadata__", {}).get("origin") or kind


def _reason(value: Any, read: Any) -> str:
    if not isinstance(value, type(read)):
        return _other_type(type(value), type(read))
    if isinstance(value, datetime | time) and (offset := value.utcoffset()):
        return OFFSET if offset % timedelta(minutes=1) else ANOTHER
    return ANOTHER


def _other_type(kind: type[Any], other: type[Any]) -> str:
    one, back = kind.__name__, other.__name__
    if one == back:
        one, back = f"{kind.__module__}.{one}", f"{other.__module__}.{back}"
    return f"{one} would be read back as {back}: declare {one} here, or give {back}"


FieldReader = tuple[Sequence[str], Callable[[Any], Iterable[Any]]]
"""The names of the fields of a class, and a function that reads them."""


def _read_form(kind: Any) -> FieldReader | None:
    """The fields with which a dataclass or a model of pydantic is made; None for other classes."""
    if is_dataclass(kind):
        names = tuple(field.name for field in fields(kind) if field.init)
    elif (models := getattr(kind, "__pydantic_fields__", None)) is not None:
        names = tuple(models)
    else:
        return None
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda value: [getattr(value, name) for name in names]


_form: Callable[[Any], FieldReader | None] = cache(_read_form)


@cache
def takes_sequences(annotation: Any) -> bool:
    """Return whether an annotation says `Sequence` anywhere: a tuple is written there, and a list read back."""
    return any(
        (get_origin(hint) or hint) is Sequence for hint in components(annotation)
    )
