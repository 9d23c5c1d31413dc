"""The strict JSON codec for messages and process data.

It refuses values that only some databases store (NUL, lone surrogates, NaN), that Python could not read again (deep
nesting), or that would be read back as other values. The error names the path of the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from typing import Any, TypeVar

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError
from pydantic_core import to_json

from orchestrator.definition.annotations import (
    components,
    is_dataclass_type,
    is_immutable,
)
from orchestrator.definition.codec.exactness import find_change, leeway_of
from orchestrator.definition.codec.json_values import (
    MAX_BYTES,
    MAX_DEPTH,
    canonical_json,
    check_json,
    digest,
    limited_digest,
    settled,
    text_digest,
)
from orchestrator.definition.messages import STRICT
from orchestrator.definition.secrets import (
    MASK,
    all_field_names,
    mask_values,
    secret_fields,
    secret_texts,
)
from orchestrator.exceptions import InvalidMessage

__all__ = [
    "MAX_BYTES",
    "MAX_DEPTH",
    "UNWRITABLE",
    "adapter",
    "canonical_json",
    "check_json",
    "copied",
    "decode",
    "decode_text",
    "digest",
    "encode",
    "encode_as",
    "json_mistakes",
    "limited_digest",
    "make_strict",
    "stored_form",
    "text_digest",
    "why_unwritable",
]

T = TypeVar("T")


def adapter(cls: type[T]) -> TypeAdapter[T]:
    """Return the compiled reader and writer of one dataclass.

    Raises:
        InvalidMessage: a field's type has no JSON form.
    """
    try:
        return _adapter(cls)
    except (PydanticUserError, NameError, TypeError) as error:
        first = str(error).splitlines()[0]
        name = getattr(cls, "__name__", str(cls))
        raise InvalidMessage(f"{name} cannot be written as JSON: {first}") from None


def _adapter(cls: Any) -> TypeAdapter[Any]:
    # Unions of the same members are equal in any order, but are read in theirs.
    return _built(cls, "" if type(cls) is type else str(cls))


@cache
def _built(cls: Any, written: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(cls, config=PLAIN)
    except PydanticUserError as error:
        if error.code != "type-adapter-config-unused":
            raise
        return TypeAdapter(cls)  # a dataclass, which has a configuration of its own


PLAIN = ConfigDict(ser_json_inf_nan="constants", strict=True)
"""Keeps NaN, so that `check_json` refuses it. By default pydantic writes null for a NaN of undeclared type."""

UNWRITABLE = (ValueError, RecursionError, TypeError, AttributeError)
"""Errors of values without a JSON form, such as a bad key or a dataclass that lacks a field."""


def make_strict(annotation: Any) -> None:
    """Make pydantic read the dataclasses in an annotation, nested ones too, as strictly as messages."""
    for hint in components(annotation):
        if is_dataclass_type(hint) and not hasattr(hint, "__pydantic_config__"):
            hint.__pydantic_config__ = STRICT  # what pydantic looks for


def why_unwritable(annotation: Any) -> str:
    """Return why values of this annotation cannot be written as JSON, or ""."""
    try:
        TypeAdapter(annotation).json_schema(mode="serialization")
    except (PydanticUserError, NameError, TypeError) as error:
        return str(error).splitlines()[0]
    return ""


def encode(value: object) -> dict[str, Any]:
    """Write a message or process data as JSON values that `decode` reads as the same values.

    Raises:
        InvalidMessage: a value has another type than declared, cannot be stored, or would be read back as another one.
    """
    kind: Any = type(value)
    form, name = adapter(kind), kind.__name__
    try:
        body = _dumped(form, value)
    except UNWRITABLE as error:
        bad = _unwritable(form, kind, value, error)
        raise InvalidMessage(f"{name}: {bad}", alike=f"{name}: {bad.alike}") from None
    try:
        check_json(body)
    except InvalidMessage as error:
        error.alike = f"{name}: {_alike(error, kind)}"
        raise
    try:
        return _exact(form, kind, value, body)  # type: ignore[no-any-return]  # a dataclass always becomes a dict
    except InvalidMessage as error:
        alike = f"{name}: {_alike(error, kind)}"
        raise InvalidMessage(f"{name}: {error}", alike=alike) from None


def encode_as(annotation: Any, value: object, *, exact: bool = True) -> Any:
    """Write a value of the annotated type as JSON values that can be read again.

    Args:
        annotation: the type.
        value: the value.
        exact: whether the same value must be read back, and not only one of the type.

    Raises:
        InvalidMessage: it has another type than declared, is too large, cannot be stored, or would be read back as
            another value.
    """
    form = adapter(annotation)
    try:
        form.validate_python(value, strict=True)
        body = _dumped(form, value)
    except UNWRITABLE as error:
        bad = _unwritable(form, annotation, value, error)
        raise InvalidMessage(str(bad)[:500], alike=bad.alike) from None
    try:
        check_json(body)
        if not exact:
            return _readable(form, body)
        return _exact(form, annotation, value, body)
    except InvalidMessage as error:
        error.alike = _alike(error, annotation)
        raise


def copied(annotation: Any, value: Any) -> Any:
    """Return a value of the annotated type as it would be read again, so that a function can change its own copy only.

    Immutable values are returned as they are.
    """
    try:
        if _is_immutable(annotation):
            return value
        form = _adapter(annotation)
        return form.validate_json(form.dump_json(value, warnings="error"))
    except (*UNWRITABLE, NameError):
        return deepcopy(value)  # of another type: a person may give any result


_is_immutable: Callable[[Any], bool] = cache(is_immutable)


def _dumped(form: TypeAdapter[Any], value: object) -> Any:
    body = form.dump_python(value, mode="json", warnings="error")
    return _in_order(value, body) if _has_sets(form) else body


@cache
def _has_sets(form: TypeAdapter[Any]) -> bool:
    """Whether values of a form may hold sets. Their order differs between operating system processes."""
    try:
        return '"uniqueItems"' in json.dumps(form.json_schema(), default=str)
    except PydanticUserError:
        return True


def _in_order(value: Any, body: Any) -> Any:
    """Sorts the lists that were sets, so that equal values have equal JSON."""
    if isinstance(body, list) and isinstance(value, set | frozenset):
        return sorted(map(_in_order, value, body), key=canonical_json)
    if isinstance(body, list) and isinstance(value, list | tuple):
        return list(map(_in_order, value, body))
    if isinstance(body, dict) and isinstance(value, dict):
        pairs = zip(body, map(_in_order, value.values(), body.values()), strict=True)
        return dict(pairs)
    if isinstance(body, dict):
        return {
            name: _in_order(getattr(value, name, None), body[name]) for name in body
        }
    return body


def _unwritable(
    form: TypeAdapter[Any], annotation: Any, value: object, error: Exception
) -> InvalidMessage:
    """The error of a value that cannot be written: nesting, type or serializer. It names the path if pydantic does."""
    told = " ".join(str(error).split())
    alike = ALTERED.sub("input_type", told)
    try:
        _readable(form, form.dump_python(value, mode="json", warnings="none"))
    except InvalidMessage as named:
        told, alike = f"{named} ({told})", _alike(named, annotation)
    except Exception:  # noqa: BLE001, S110  # a value of an unrelated class lacks the attributes
        pass
    return InvalidMessage(_discreet(told, annotation, value), alike=alike)


def _alike(error: InvalidMessage, annotation: Any) -> str:
    """The message of an error without the values, and without what is no name of a field in its path."""
    names = all_field_names(annotation)
    places = (one if one in names else "#" for one in error.path.split("."))
    said = str(error).removeprefix(f"{error.path}: ") if error.path else str(error)
    return f"{'.'.join(places)}: {said}"


def _discreet(text: str, annotation: Any, value: object) -> str:
    """Masks secrets in pydantic's error, which quotes the value."""
    if not (names := secret_fields(annotation)):
        return text
    said = GIVEN.sub(f"input_value={MASK}, input_type", text)
    return mask_values(said, secret_texts(value, names))


GIVEN = re.compile(r"input_value=.*?, input_type", re.DOTALL)
ALTERED = re.compile(r"input_value=.*, input_type", re.DOTALL)
"""The same up to the last value: a value may have any text in it."""


def _readable(form: TypeAdapter[Any], body: Any) -> Any:
    """Bring JSON values into the stored form, and read them once.

    Pydantic reads strictly but writes leniently: it writes None for every type.
    """
    body = settled(body)
    _read(form, body)
    return body


def _exact(form: TypeAdapter[Any], annotation: Any, value: object, body: Any) -> Any:
    """Bring JSON values into the stored form, and compare what is read of them with the value."""
    body = settled(body)
    read = _read(form, body)
    if found := find_change(value, read, leeway_of(annotation)):
        *path, reason = found
        raise InvalidMessage(str(reason), ".".join(map(str, path)))
    return body


def stored_form(value: object) -> Any:
    """Return a single value as it stands in stored JSON."""
    return _in_order(value, adapter(type(value)).dump_python(value, mode="json"))


def decode(cls: type[T], body: object) -> T:
    """Read JSON values as the given dataclass: no missing, extra or converted fields.

    Raises:
        InvalidMessage: a field does not fit; the error has its path.
    """
    try:
        check_json(body)
        value: T = _read(adapter(cls), body)
    except InvalidMessage as error:
        error.alike = _alike(error, cls)
        if not (names := secret_fields(cls)):
            raise
        # The class's own checks may quote the values.
        told = str(error).removeprefix(f"{error.path}: ") if error.path else str(error)
        told = mask_values(told, secret_texts(body, names))
        raise InvalidMessage(told, error.path, error.alike) from None
    return value


def json_mistakes(cls: type[Any], body: object) -> list[tuple[tuple[str, ...], str]]:
    """Return every error in JSON values for a dataclass: the path and the reason."""
    try:
        check_json(body)
        adapter(cls).validate_json(json.dumps(body))
    except InvalidMessage as error:
        told = str(error).removeprefix(f"{error.path}: ")
        return [(tuple(filter(None, error.path.split("."))), told)]
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return [(tuple(map(str, one["loc"])), one["msg"]) for one in found]
    return []


def decode_text(cls: type[T], text: str) -> T:
    """Read JSON text that was checked before, as `decode` does."""
    value: T = _parsed(adapter(cls), text)
    return value


def _read(form: TypeAdapter[Any], body: object) -> Any:
    return _parsed(form, to_json(body))


def _parsed(form: TypeAdapter[Any], text: str | bytes) -> Any:
    try:
        return form.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(map(str, first["loc"]))
        others = error.error_count() - 1
        more = f" (and {others} more)" if others else ""
        raise InvalidMessage(f"{first['msg']}{more}", path) from None
