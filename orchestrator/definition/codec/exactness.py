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
from typing import Any, NamedTuple, get_args, get_origin
from uuid import UUID

from orchestrator.definition.annotations import UNIONS, bare_type, components

PLAIN = frozenset(
    [str, int, bool, float, bytes, Decimal, datetime, date, timedelta, UUID]
)
"""Types whose values have no parts, and are the same where they are equal."""

Mismatch = tuple[object, ...]
"""The path to a value, and the reason as the last element."""

ANOTHER = "it would be read back as another value"
KEYS = "keys of this dict would be read back as others: declare their type, or give text as keys"
ZONE = "its zone has no offset without a date, and is not stored: give the zone's name beside a time without zone"
OFFSET = "its offset from UTC has seconds, which are not stored: give it in UTC"


class Leeway(NamedTuple):
    """Values that may be read back as another type, by the annotation of a value.

    Args:
        lists: whether a list may stand for a tuple.
        digits: whether a large float may come back as the whole number with its digits.
    """

    lists: bool = False
    digits: bool = True


def find_change(
    value: Any,
    read: Any,
    leeway: Leeway = Leeway(),  # noqa: B008  # it is immutable
) -> Mismatch | None:
    """Return the first place where another value was read back; None if there is none.

    Args:
        value: the value that was written.
        read: the value that was read back.
        leeway: what may be read back as another type.
    """
    if value is read:
        return None
    return _between(value, read, leeway)


def _in_parts(
    parts: Iterable[tuple[object, Any, Any]], leeway: Leeway
) -> Mismatch | None:
    """The first difference among parts of a value, given with their places and what was read back of them."""
    for place, one, back in parts:
        kind = type(one)
        if one is back or (kind is type(back) and kind in PLAIN and one == back):
            continue  # most parts
        if found := _between(one, back, leeway):
            return (place, *found)
    return None


def _between(value: Any, read: Any, leeway: Leeway) -> Mismatch | None:
    kind, other = type(value), type(read)
    if (form := _form(kind)) is not None:
        if kind is not other and _general(kind) is not _general(other):
            return (_other_type(kind, other),)
        names, values = form
        return _in_parts(zip(names, values(value), values(read), strict=True), leeway)
    if isinstance(read, dict | set | frozenset) and isinstance(value, other):
        return _in_any_order(value, read, leeway)
    if isinstance(read, list | tuple | deque):
        if not isinstance(value, (list, tuple) if leeway.lists else other):
            return (_other_type(kind, other),)
        if len(value) != len(read):
            return (ANOTHER,)
        return _in_parts(zip(count(), value, read), leeway)
    return None if _is_same(value, read, leeway) else (_reason(value, read),)


def _in_any_order(value: Any, read: Any, leeway: Leeway) -> Mismatch | None:
    """The first difference between two dicts or sets."""
    is_dict, back = isinstance(value, dict), _pairs(value, read)
    if (True in value or False in value) and _truths(value) != _truths(read):
        return (KEYS if is_dict else ANOTHER,)
    found = _in_parts(zip(back, back, back.values(), strict=True), leeway)
    if len(value) != len(read) or (is_dict and found):
        return (KEYS if is_dict else ANOTHER,)
    if not is_dict:
        return found and found[-1:]
    parts = ((key, one, read[back.get(key, key)]) for key, one in value.items())
    return _in_parts(parts, leeway)


def _truths(values: Collection[Any]) -> int:
    """The number of elements or keys that are no numbers, though Python calls 1 and True equal."""
    return sum(isinstance(one, bool) for one in values)


def _pairs(value: Collection[Any], read: Collection[Any]) -> dict[Any, Any]:
    """The elements or keys that are not found among those read back, with those that stand for them.

    They are values that Python never calls equal, such as times in the hour that a clock repeats.
    """
    own = [one for one in value if one not in read]
    if not own:
        return {}
    others = [one for one in read if one not in value]
    return dict(zip(sorted(own, key=str), sorted(others, key=str), strict=False))


def _is_same(value: Any, read: Any, leeway: Leeway) -> bool:
    """Whether two values without parts are equal, and of related types."""
    if isinstance(value, float) and type(read) is int:
        return value == (float(read) if leeway.digits else read)
    if isinstance(value, bool) is not isinstance(read, bool):
        return False
    numbers = isinstance(value, int) and type(read) is float
    if not (numbers or isinstance(value, type(read))):
        return isinstance(value, Iterator) and isinstance(read, Iterator)
    if isinstance(value, time) and (value.tzinfo is None) != (read.tzinfo is None):
        return False
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
    if isinstance(value, time) and value.tzinfo and value.utcoffset() is None:
        return ZONE
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
    """The fields of a dataclass or a model of pydantic that make a value; None for other classes."""
    if is_dataclass(kind):
        # A field that is neither given nor compared is a cache.
        found = [one for one in fields(kind) if one.init or one.compare]
        names = tuple(one.name for one in found)
        if not all(one.init for one in found):
            return names, lambda value: [getattr(value, name, None) for name in names]
    elif (models := getattr(kind, "__pydantic_fields__", None)) is not None:
        names = tuple(models)
    else:
        return None
    if len(names) > 1:
        return names, attrgetter(*names)
    return names, lambda value: [getattr(value, name) for name in names]


_form: Callable[[Any], FieldReader | None] = cache(_read_form)


@cache
def leeway_of(annotation: Any) -> Leeway:
    """Return what values of an annotation may be read back as.

    Where it says `Sequence` anywhere, a tuple is written, and a list read back. In a union with int, a large float is
    read back as an int: only one of equal value is taken, which the digits of a float need not be.
    """
    hints = list(components(annotation))
    unions = [
        {*map(bare_type, get_args(hint))}
        for hint in hints
        if get_origin(hint) in UNIONS
    ]
    return Leeway(
        lists=any((get_origin(hint) or hint) is Sequence for hint in hints),
        digits=not any({int, float} <= members for members in unions),
    )
