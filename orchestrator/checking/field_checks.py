"""The system check of fields whose values JSON cannot tell apart, or that cannot be read back at all.

E016 no value of a union's member, or of a type of keys, is read back as itself; or what is written of an enumeration, a
type of keys or a dataclass is never read. A sample of the type is written and read; values that only sometimes come
back as others are refused where they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, get_args, get_origin
from uuid import UUID

from django.core.checks import CheckMessage, Error

from orchestrator import registry
from orchestrator.definition import ProcessManager
from orchestrator.definition.annotations import (
    UNIONS,
    alternatives,
    bare_type,
    components,
    hints,
    is_dataclass_type,
    possible_values,
)
from orchestrator.definition.codec import UNWRITABLE, adapter, decode, encode_as
from orchestrator.definition.codec.exactness import find_change
from orchestrator.definition.process_manager.state_machine import copied_fields
from orchestrator.exceptions import InvalidMessage

SAMPLES: Mapping[Any, Any] = {
    str: "text",
    int: 7,
    float: 0.5,
    bytes: b"bytes",
    Decimal: Decimal("0.5"),
    datetime: datetime(2026, 1, 2, 3, 4, 5),  # noqa: DTZ001  # a field may have either
    date: date(2026, 1, 2),
    time: time(1, 2, 3),
    timedelta: timedelta(hours=1),
    UUID: UUID(int=1),
}
"""A value of each type."""


def field_errors() -> Iterator[CheckMessage]:
    """Yield an error for each field and result of the registered definitions that never comes back as it was."""
    seen = set[str]()
    found = [(where, why) for where, hint in _declared() for why in mistakes(hint)]
    for where, reason in [*found, *_copies()]:
        said = f"{where}: {reason}."
        if said not in seen:
            seen.add(said)
            yield Error(
                said,
                hint="Give the types forms that differ: other fields, one more field with a Literal, or text.",
                id="orchestrator.E016",
            )


def _copies() -> Iterator[tuple[str, str]]:
    """Yield the fields of data to which an event's field is copied of which no value is read back, and the reason."""
    for definition in registry.definitions.values():
        if not issubclass(definition, ProcessManager):
            continue
        stored = _hints(definition.Data)
        for row in definition.all_rows():
            if row.event is None:
                continue
            given = _hints(row.event)
            for name in copied_fields(definition.Data, row):
                found = [_change(stored[name], one) for one in samples(given[name])]
                if found and all(found):
                    where = f"{definition.Data.__qualname__}.{name}"
                    yield f"{where}, copied from {row.event.__name__}", found[0]


def _declared() -> Iterator[tuple[str, Any]]:
    """Yield the fields of all classes that are stored, and the results of steps, with their names."""
    forms: list[Any] = []
    for definition in registry.definitions.values():
        if issubclass(definition, ProcessManager):
            forms += [definition.Data, *definition.issued_commands().values()]
            continue
        forms.append(definition.Input)
        if definition.static is not None:
            for vertex in definition.static.vertices.values():
                forms.append(vertex.returns)
                where = f"{definition.__name__}, the result of {vertex.name}"
                yield where, vertex.returns
    forms += map(registry.event_class, registry.event_types())
    for form in components(*forms):
        if is_dataclass_type(form):
            yield form.__qualname__, form
            for name, hint in _hints(form).items():
                yield f"{form.__qualname__}.{name}", hint


def _hints(form: Any) -> Mapping[str, Any]:
    try:
        return hints(form)
    except (NameError, TypeError):
        return {}


def mistakes(annotation: Any) -> Iterator[str]:
    """Yield a reason for each member of a union, and each type of keys, of which no value is read back as itself.

    And for each enumeration, type of keys and dataclass of which nothing that is written can be read.
    """
    for hint in _arguments(annotation):
        changed = [
            [_change(hint, value) for value in values] for values in _probes(hint)
        ]
        refused = [
            [_refused(form, one) for one in values] for form, values in _parts(hint)
        ]
        told = [found[0] for found in changed if found and all(found)]
        yield from told or [found[0] for found in refused if found and all(found)]


def _arguments(annotation: Any, within: tuple[Any, ...] = ()) -> Iterator[Any]:
    """Yield an annotation and its arguments at any depth, without the fields of dataclasses."""
    hint = bare_type(annotation)
    if any(hint is one for one in within):
        return  # an alias that names itself
    yield hint
    for argument in get_args(hint):
        yield from _arguments(argument, (*within, hint))


def _probes(hint: Any) -> Iterator[list[Any]]:
    """Yield the samples of each member of a union, or of each type of a dictionary's keys."""
    if get_origin(hint) in UNIONS:
        yield from map(samples, alternatives(hint))
    elif get_origin(hint) is dict:
        key, value = get_args(hint)
        given = samples(value)[:1]
        for one in alternatives(key):
            yield [{sample: item} for sample in samples(one) for item in given]


def _parts(hint: Any) -> Iterator[tuple[Any, list[Any]]]:
    """Yield what may be written and never read: an enumeration, each type of a dictionary's keys, a dataclass.

    With each come its samples.
    """
    if listed := possible_values(hint):
        yield hint, list(listed)
    elif get_origin(hint) is dict:
        for one in alternatives(get_args(hint)[0]):
            yield dict[one, Any], [{sample: None} for sample in samples(one)]  # type: ignore[valid-type]
    elif is_dataclass_type(hint) and not all(field.init for field in fields(hint)):
        yield hint, samples(hint)


def _refused(form: Any, value: Any) -> str:
    """Why what is written of a value is refused when it is read; "" if it is read, or cannot be written anyway.

    Of a dataclass only a field counts that is not given when it is made: its other fields are looked at by themselves.
    """
    try:
        writer = adapter(form)
        writer.validate_python(value, strict=True)
    except Exception:  # noqa: BLE001  # the class may refuse it in any way
        return ""
    try:
        decode(form, writer.dump_python(value, mode="json", warnings="error"))
    except InvalidMessage as error:
        return _why_unread(form, value, error.path.partition(".")[0])
    except UNWRITABLE:
        return _why_unread(form, value, "")
    except Exception:  # noqa: BLE001  # the class may refuse it in any way
        return ""
    return ""


def _why_unread(form: Any, value: Any, name: str) -> str:
    """Say why what is written of a sample is not read; `name` is the refused field of a dataclass."""
    if not is_dataclass_type(form):
        shown = next(iter(value)) if isinstance(value, dict) else value
        return f"what is written of {shown!r} is refused when it is read"
    if name in {field.name for field in fields(form) if not field.init}:
        return f"{name} is written, and not given when a {form.__name__} is made: leave init=False out"
    return ""


def _change(hint: Any, value: Any) -> str:
    """Why a value is not read back as itself; "" if it is, or is refused anyway."""
    try:
        read = decode(hint, encode_as(hint, value, exact=False))
    except Exception:  # noqa: BLE001  # the class may refuse it in any way
        return ""
    found = find_change(value, read)
    return str(found[-1]) if found else ""


def samples(annotation: Any, within: tuple[Any, ...] = ()) -> list[Any]:
    """Return some values of a type: all values of an enumeration; none of a type of which none can be made.

    Args:
        annotation: the type.
        within: the types in which it stands.
    """
    hint = bare_type(annotation)
    kind = get_origin(hint) or hint
    if any(hint is one for one in within):
        return []
    within = (*within, hint)
    if kind in SAMPLES:
        return [SAMPLES[kind]]
    if listed := possible_values(hint):
        return list(listed)
    if kind in UNIONS:
        return next(
            (found for one in alternatives(hint) if (found := samples(one, within))), []
        )
    if is_dataclass_type(kind):
        return _instances(kind, within)
    if kind in (list, set, frozenset, tuple, dict):
        return _collections(kind, get_args(hint), within)
    return []


def _collections(kind: Any, arguments: Any, within: tuple[Any, ...]) -> list[Any]:
    found = [samples(one, within)[:1] for one in arguments if one is not Ellipsis]
    if not found or not all(found):
        return []
    elements = [one for [one] in found]
    try:
        return [dict([elements])] if kind is dict else [kind(elements)]
    except (TypeError, ValueError):
        return []  # such an element has no hash


def _instances(kind: Any, within: tuple[Any, ...]) -> list[Any]:
    """An instance of a dataclass with its required fields alone, unless the class refuses their samples."""
    given = {}
    for field in fields(kind):
        if field.init and field.default is field.default_factory is MISSING:
            found = samples(_hints(kind).get(field.name), within)
            if not found:
                return []
            given[field.name] = found[0]
    try:
        return [kind(**given)]
    except Exception:  # noqa: BLE001  # the class may refuse them in any way
        return []
