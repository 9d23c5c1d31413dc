"""The fields of stored values in the order of their declaration: `jsonb` of PostgreSQL keeps another one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, get_args, get_type_hints


def in_declared_order(form: Any, value: Any) -> Any:
    """Return a stored value with its fields in the order in which a class declares them.

    Args:
        form: the type of the value; one of the application.
        value: as JSON values, which need not be of that type. Other fields follow, as they stand.
    """
    if isinstance(value, dict):
        for cls in _dataclasses_in(form):
            known = _forms(cls)
            if known.keys() >= value.keys():
                return {
                    name: in_declared_order(known[name], value[name])
                    for name in known
                    if name in value
                }
        return {name: _in_any_order(form, one) for name, one in value.items()}
    return _in_any_order(form, value)


def _in_any_order(form: Any, value: Any) -> Any:
    """The same for the values of a container, with the types that its annotation names."""
    if isinstance(value, list):
        return [in_declared_order(form, one) for one in value]
    return in_declared_order(form, value) if isinstance(value, dict) else value


def _dataclasses_in(form: Any) -> Iterator[type]:
    """The dataclasses that an annotation names, such as those of a list or a union."""
    if isinstance(form, type) and is_dataclass(form):
        yield form
        return
    for part in get_args(form):
        yield from _dataclasses_in(part)


@cache
def _forms(cls: Any) -> dict[str, Any]:
    """The types of a dataclass's fields, in their order; without a type where its annotations cannot be read."""
    try:
        hints = get_type_hints(cls)
    except Exception:  # noqa: BLE001  # they are the application's
        hints = {}
    return {one.name: hints.get(one.name) for one in fields(cls)}
