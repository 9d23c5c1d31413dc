"""What annotations tell: whether two can agree, which elements and fields there are, and which values are possible.

Only what certainly cannot be is refused: an annotation that says nothing here agrees with everything.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Collection, Iterator
from dataclasses import is_dataclass
from enum import Enum
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from pydantic import PydanticUserError, TypeAdapter

from orchestrator.definition.messages import STRICT
from orchestrator.exceptions import Outcome

MISSING = inspect.Parameter.empty

TEXT = (str, bytes)
UNIONS = (Union, types.UnionType)


class Unknown:
    """What the annotation of something is when nothing is known of it."""


def plain(hint: Any) -> Any:
    """An annotation without the names and notes around it."""
    while True:
        if get_origin(hint) is Annotated:
            hint = get_args(hint)[0]
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif hasattr(hint, "__value__"):  # a type alias
            hint = hint.__value__
        else:
            return hint


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The members of a union; the annotation itself when it is none."""
    hint = plain(hint)
    if get_origin(hint) in UNIONS:
        return tuple(one for arg in get_args(hint) for one in alternatives(arg))
    return (type(None),) if hint is None else (hint,)


def without_none(hint: Any) -> Any:
    """The one alternative beside None; the annotation itself when there is no such."""
    others = [one for one in alternatives(hint) if one is not type(None)]
    return others[0] if len(others) == 1 else hint


def without_outcomes(hint: Any) -> Any:
    """What a function gives that may also return how it failed: the alternatives beside those; None without any."""
    found = tuple(_results(hint))
    if len(found) == len(alternatives(hint)):
        return hint
    return Union[found] if found else type(None)  # noqa: UP007  # as many as there are


def _results(hint: Any) -> Iterator[Any]:
    """The alternatives that are no outcomes, each as it is written."""
    bare = plain(hint)
    if get_origin(bare) in UNIONS:
        for one in get_args(bare):
            yield from _results(one)
    elif not (isinstance(bare, type) and issubclass(bare, Outcome)):
        yield hint


def says_nothing(hint: Any) -> bool:
    return hint in (MISSING, Any, Unknown, object) or isinstance(hint, str)


def takes_none(hint: Any) -> bool:
    """Whether None is among the values, by the annotation's own words."""
    return any(
        one in (Any, object, type(None))
        or (get_origin(one) is Literal and None in get_args(one))
        for one in alternatives(hint)
    )


def agree(given: Any, wanted: Any) -> bool:
    """Whether a value of one annotation can be one of the other."""
    return given is wanted or any(
        _agree(one, other)
        for one in alternatives(given)
        for other in alternatives(wanted)
    )


def clash(given: Any, wanted: Any) -> bool:
    """Whether a message's or data's field can certainly not fill another one; only plain classes tell.

    Messages are read strictly, so a whole number is no float here; the rest is left to the codec.
    """
    plainly = isinstance(given, type) and isinstance(wanted, type)
    return plainly and not _related(given, wanted)


def _agree(given: Any, wanted: Any) -> bool:
    if says_nothing(given) or says_nothing(wanted):
        return True
    kinds = [_kinds(given), _kinds(wanted)]
    if not all(kinds):
        return True
    if not any(
        _related(one, other) or (one, other) == (int, float)
        for one in kinds[0]
        for other in kinds[1]
    ):
        return False
    return _elements_agree(given, wanted)


def _kinds(hint: Any) -> tuple[type[Any], ...]:
    """The classes of an annotation's values; () when it does not tell."""
    origin = get_origin(hint)
    if origin is Literal:
        return tuple({type(value) for value in get_args(hint)})
    kind = origin or hint
    return (kind,) if isinstance(kind, type) else ()


def _related(given: type[Any], wanted: type[Any]) -> bool:
    try:
        return issubclass(given, wanted) or issubclass(wanted, given)
    except TypeError:
        return True  # a protocol, which only its methods would tell


def _elements_agree(given: Any, wanted: Any) -> bool:
    if Literal in (get_origin(given), get_origin(wanted)):
        return _literals_agree(given, wanted)
    one, other = _arguments(given), _arguments(wanted)
    if len(one) != len(other):
        return True
    return all(map(agree, one, other))


def _literals_agree(given: Any, wanted: Any) -> bool:
    one, other = values_of(given), values_of(wanted)
    return not (one and other) or not set(one).isdisjoint(other)


def _arguments(hint: Any) -> tuple[Any, ...]:
    return tuple(arg for arg in get_args(hint) if arg is not Ellipsis)


def element(hint: Any) -> Any:
    """The annotation of a list's, set's or tuple's elements; None when it is none, Unknown when it does not say."""
    if says_nothing(plain(hint)):
        return Unknown
    found = [_element(one) for one in alternatives(hint) if one is not type(None)]
    return found[0] if len(found) == 1 else (Unknown if all(found) and found else None)


def _element(hint: Any) -> Any:
    kind = get_origin(hint) or hint
    if not (isinstance(kind, type) and issubclass(kind, Collection)):
        return None
    if issubclass(kind, (*TEXT, dict)):
        return None
    arguments = _arguments(hint)
    return arguments[0] if len(set(arguments)) == 1 else Unknown


def field_of(hint: Any, name: str) -> Any:
    """The annotation of a field or property; None when there is none of that name, Unknown when it cannot be known."""
    if says_nothing(plain(hint)):
        return Unknown
    found = [_field(one, name) for one in alternatives(hint) if one is not type(None)]
    if any(one is None for one in found) or not found:
        return None
    return found[0] if len(found) == 1 else Unknown


def _field(hint: Any, name: str) -> Any:
    kind = get_origin(hint) or hint
    if not isinstance(kind, type):
        return Unknown
    try:
        declared = hints(kind)
    except NameError:
        return Unknown  # a name of a module that is still being imported
    if name in declared:
        return declared[name]
    attribute = getattr(kind, name, None)
    if isinstance(attribute, property) and attribute.fget is not None:
        return get_type_hints(attribute.fget).get("return", Unknown)
    return None


def values_of(hint: Any) -> tuple[Any, ...]:
    """All values that an annotation allows; () when they cannot be listed."""
    found: list[Any] = []
    for one in alternatives(hint):
        values = tuple(_values(one))
        if not values:
            return ()
        found += values
    return tuple(found)


def domain(cls: type[Any], name: str) -> tuple[Any, ...]:
    """All values of a dataclass's field, or () when they cannot be listed; those of a union are not."""
    hint = hints(cls).get(name)
    return () if hint is type(None) else tuple(_values(hint))


def _values(hint: Any) -> Iterator[Any]:
    if hint is bool:
        yield from (True, False)
    elif hint is type(None):
        yield None
    elif get_origin(hint) is Literal:
        yield from get_args(hint)
    elif isinstance(hint, type) and issubclass(hint, Enum):
        yield from hint


def spelled(hint: Any) -> str:
    """An annotation as people write it."""
    if hint is MISSING:
        return "Any"
    is_plain = isinstance(hint, type) and not getattr(hint, "__args__", ())
    return hint.__name__ if is_plain else str(hint)


def hints(cls: type[Any]) -> dict[str, Any]:
    """The resolved annotations of a dataclass.

    Raises:
        NameError: one cannot be resolved yet.
    """
    if cls not in _hints:
        _hints[cls] = get_type_hints(cls)
    return _hints[cls]


_hints: dict[type[Any], dict[str, Any]] = {}


def is_class(value: object, base: type[Any]) -> bool:
    """Whether it is this class or one that is derived from it."""
    return isinstance(value, type) and issubclass(value, base)


# The forms in which inputs and results are stored: strict, and such that JSON can hold them


def make_strict(annotation: Any) -> None:
    """Gives the dataclasses in an annotation, those in their fields too, the strict form that messages have."""
    waiting, seen = [annotation], set[int]()
    while waiting:
        hint = plain(waiting.pop())
        if id(hint) in seen:
            continue
        seen.add(id(hint))
        waiting += get_args(hint)
        if isinstance(hint, type) and is_dataclass(hint):
            if not hasattr(hint, "__pydantic_config__"):
                hint.__pydantic_config__ = STRICT  # type: ignore[attr-defined]  # what pydantic looks for
            waiting += _annotations(hint)


def _annotations(form: type[Any]) -> list[Any]:
    try:
        return list(hints(form).values())
    except NameError:
        return []  # refused when its form is built


def without_json_form(annotation: Any) -> str:
    """Why values of this annotation cannot be written as JSON; "" when they can."""
    try:
        TypeAdapter(annotation).json_schema(mode="serialization")
    except (PydanticUserError, NameError, TypeError) as error:
        return str(error).splitlines()[0]
    return ""
