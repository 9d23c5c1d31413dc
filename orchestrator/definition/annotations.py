"""Type annotations: their agreement, the types of elements and fields, and the possible values.

An annotation that says nothing, such as `Any`, agrees with every other one.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from functools import cache, partial
from typing import (
    Annotated,
    Any,
    Literal,
    NewType,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)
from uuid import UUID

from orchestrator.exceptions import Outcome

MISSING = inspect.Parameter.empty

TEXT = (str, bytes)
UNIONS = (Union, types.UnionType)


class Unknown:
    """The annotation of a value of unknown type."""


def bare_type(hint: Any) -> Any:
    """Return an annotation without `Annotated`, `NewType` and aliases around it."""
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
    """Return the members of a union; any other annotation itself."""
    hint = bare_type(hint)
    if get_origin(hint) in UNIONS:
        return tuple(one for arg in get_args(hint) for one in alternatives(arg))
    return (type(None),) if hint is None else (hint,)


def without_none(hint: Any) -> Any:
    """Return the one alternative beside None; the annotation itself if there is none or there are several."""
    others = [one for one in alternatives(hint) if one is not type(None)]
    return others[0] if len(others) == 1 else hint


def without_outcomes(hint: Any) -> Any:
    """Return the type of a function's result without outcomes such as `Skip`; NoneType if nothing else is left."""
    found = tuple(_results(hint))
    if len(found) == len(alternatives(hint)):
        return hint
    return Union[found] if found else type(None)  # noqa: UP007  # of any number of types


def _results(hint: Any) -> Iterator[Any]:
    """Yield the alternatives that are not outcomes, each as it is written."""
    bare = bare_type(hint)
    if get_origin(bare) in UNIONS:
        for one in get_args(bare):
            yield from _results(one)
    elif not (isinstance(bare, type) and issubclass(bare, Outcome)):
        yield hint


def says_nothing(hint: Any) -> bool:
    return hint in (MISSING, Any, Unknown, object) or isinstance(hint, str)


def takes_none(hint: Any) -> bool:
    """Return whether None is one of the values of an annotation."""
    return any(
        one in (Any, object, type(None))
        or (get_origin(one) is Literal and None in get_args(one))
        for one in alternatives(hint)
    )


def agree(given: Any, wanted: Any) -> bool:
    """Return whether every value of one annotation is also a value of the other.

    It compares whole structures: a list of texts is not a list of numbers, and an optional value fits only an
    optional field. An int is also a float.
    """
    others = alternatives(wanted)
    return given is wanted or all(_fits(one, others) for one in alternatives(given))


def _fits(given: Any, wanted: tuple[Any, ...]) -> bool:
    """Whether one alternative fits several. If its values can be listed, each of them must fit one."""
    if any(given is one or says_nothing(one) for one in wanted):
        return True
    if values := tuple(_values(given)):
        return all(any(_is_one(value, one) for one in wanted) for value in values)
    return any(_agree(given, one) for one in wanted)


def _agree(given: Any, wanted: Any) -> bool:
    if says_nothing(given):
        return True
    if get_origin(wanted) is Literal:
        return False
    kind, other = _kind(given), _kind(wanted)
    if kind is None or other is None:
        return True
    if is_typeddict(kind) or is_typeddict(other):
        return _keys_agree(given, wanted)
    return _is_kind(kind, other) and _elements_agree(given, wanted)


def _kind(hint: Any) -> type[Any] | None:
    """The class of an annotation's values; None when it is not known."""
    kind = get_origin(hint) or hint
    return kind if isinstance(kind, type) else None


def _is_kind(given: type[Any], wanted: type[Any]) -> bool:
    if (given, wanted) in UNLIKE:
        return False
    try:
        return issubclass(given, wanted) or (given, wanted) == (int, float)
    except TypeError:
        return True  # a protocol: only methods would decide


UNLIKE = [(datetime, date)]
"""Sub-classes whose values are written in another form."""


def _is_one(value: Any, wanted: Any) -> bool:
    """Whether a single value is one of an annotation."""
    if listed := tuple(_values(wanted)):
        return any(value == one and type(value) is type(one) for one in listed)
    kind = _kind(wanted)
    return kind is None or _is_kind(type(value), kind)


def _elements_agree(given: Any, wanted: Any) -> bool:
    one, other = _arguments(given), _arguments(wanted)
    if not one or not other or issubclass(_kind(given) or object, TEXT):
        return True
    if _is_fixed(given) and not _is_fixed(wanted):
        other *= len(one)
    if _is_fixed(wanted) and not _is_fixed(given):
        return _kind(wanted) is not tuple
    return len(one) == len(other) and all(map(agree, one, other))


def _is_fixed(hint: Any) -> bool:
    """Whether it is a tuple with a fixed number of elements."""
    return get_origin(hint) is tuple and Ellipsis not in get_args(hint)


def _keys_agree(given: Any, wanted: Any) -> bool:
    """Whether the keys and values of a TypedDict fit, on either side."""
    if not is_typeddict(_kind(given)):
        return _kind(given) is dict and not _arguments(given)
    own = hints(_kind(given) or dict)
    if not is_typeddict(_kind(wanted)):
        (_, value) = _arguments(wanted) or (str, Any)
        return _is_kind(dict, _kind(wanted) or dict) and all(
            agree(one, value) for one in own.values()
        )
    other: Any = _kind(wanted)
    required: frozenset[str] = getattr(_kind(given), "__required_keys__", frozenset())
    return other.__required_keys__ <= required and all(
        name in hints(other) and agree(one, hints(other)[name])
        for name, one in own.items()
    )


def _arguments(hint: Any) -> tuple[Any, ...]:
    return tuple(arg for arg in get_args(hint) if arg is not Ellipsis)


def element_type(hint: Any) -> Any:
    """Return the annotation of the elements of a list, set or tuple; None for other types, or Unknown."""
    return _common(hint, _element)


def _common(hint: Any, part: Callable[[Any], Any]) -> Any:
    """Return a part of all alternatives but None; None if an alternative lacks it, or Unknown."""
    if says_nothing(bare_type(hint)):
        return Unknown
    found = [part(one) for one in alternatives(hint) if one is not type(None)]
    if not found or None in found:
        return None
    return found[0] if len(found) == 1 else Unknown


def _element(hint: Any) -> Any:
    kind = _kind(hint) or object
    if not issubclass(kind, Collection) or issubclass(kind, (*TEXT, dict)):
        return None
    arguments = _arguments(hint)
    return arguments[0] if len(set(arguments)) == 1 else Unknown


def field_type(hint: Any, name: str) -> Any:
    """Return the annotation of a field or property; None if there is none of that name, or Unknown."""
    return _common(hint, partial(_field, name))


def _field(name: str, hint: Any) -> Any:
    kind = _kind(hint)
    if kind is None:
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


def possible_values(hint: Any) -> tuple[Any, ...]:
    """Return all values that an annotation allows; () if there is no list of them."""
    found: list[Any] = []
    for one in alternatives(hint):
        values = tuple(_values(one))
        if not values:
            return ()
        found += values
    return tuple(found)


def domain(cls: type[Any], name: str) -> tuple[Any, ...]:
    """Return all values of a dataclass's field; () if there is no list of them, as for a union."""
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


def type_text(hint: Any) -> str:
    """Return the text of an annotation in Python."""
    if hint is MISSING:
        return "Any"
    is_plain = isinstance(hint, type) and not getattr(hint, "__args__", ())
    return hint.__name__ if is_plain else str(hint)


hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)
"""The resolved annotations of a dataclass. Raises NameError as long as one of them is unknown."""


def return_type(function: Any) -> Any:
    """Return the return annotation of a function; Unknown without one, or while its names cannot be resolved."""
    try:
        return get_type_hints(function).get("return", Unknown)
    except NameError:
        return Unknown


def takes_arguments(function: Any, count: int) -> bool:
    """Return whether a function can be called with this many values."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except TypeError:
        return False
    except ValueError:
        return True  # a builtin without a signature
    return True


def is_class(value: object, base: type[Any]) -> bool:
    """Return whether a value is this class or a subclass of it."""
    return isinstance(value, type) and issubclass(value, base)


def components(*annotations: Any) -> Iterator[Any]:
    """Return the annotations, their arguments and the fields of their dataclasses, at any depth, each once."""
    return _within(annotations, lambda hint: [*get_args(hint), *_field_hints(hint)])


def _within(
    annotations: Iterable[Any], parts: Callable[[Any], Iterable[Any]]
) -> Iterator[Any]:
    """Yield annotations, and their parts at any depth, each once."""
    waiting, seen = list(annotations), set[int]()
    while waiting:
        hint = bare_type(waiting.pop())
        if id(hint) not in seen:
            seen.add(id(hint))
            yield hint
            waiting += parts(hint)


def is_dataclass_type(hint: Any) -> bool:
    """Return whether a value is a dataclass itself, not an instance of one."""
    return isinstance(hint, type) and is_dataclass(hint)


def _field_hints(form: Any) -> list[Any]:
    """The annotations of a dataclass's fields, unresolved if a name is unknown; empty for other values."""
    if not is_dataclass_type(form):
        return []
    try:
        return list(hints(form).values())
    except (NameError, TypeError):
        return [one.type for one in fields(form)]


NUMBERS = (int, float, bool, complex, Decimal)
TIMES = (datetime, date, time, timedelta)
FIXED = (*TEXT, *NUMBERS, *TIMES, type(None), UUID)
"""Classes with immutable values."""


def is_immutable(annotation: Any) -> bool:
    """Return whether the values of an annotation are immutable, so that functions can share one."""
    inner = _within([annotation], lambda hint: _parts(hint) or ())
    return all(_parts(hint) is not None for hint in inner)


def _parts(hint: Any) -> Sequence[Any] | None:
    """The annotations of an immutable value's elements; None if the value is mutable."""
    kind = get_origin(hint) or hint
    if hint is None or kind is Literal or kind in FIXED:
        return ()
    if kind in UNIONS or kind in (tuple, frozenset):
        return _arguments(hint) or None
    if not isinstance(kind, type):
        return None
    if issubclass(kind, Enum):
        return ()
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]  # what dataclass notes
    return _field_hints(kind) or None if frozen and kind is hint else None
