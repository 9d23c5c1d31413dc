"""Objects of rows, made in one move: Django sets one field after the other, which costs more than what a step does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeVar

from django.db import DEFAULT_DB_ALIAS
from django.db.models import NOT_PROVIDED, Model
from django.db.models.base import ModelState
from django.db.models.signals import post_init, pre_init

M = TypeVar("M", bound=Model)


def read_row(model: type[M], names: Sequence[str], values: Sequence[Any]) -> M:
    """Return the object of a row that was read, as `Model.from_db` does.

    Args:
        model: the class of the object.
        names: the attributes whose columns were read; the others are read when they are asked for.
        values: the values of these attributes, converted for the model.
    """
    if _is_listened_to(model):
        return model.from_db(DEFAULT_DB_ALIAS, names, values)
    row = _made(model, dict(zip(names, values, strict=True)))
    row._state.adding = False
    row._state.db = DEFAULT_DB_ALIAS
    return row


def new_row(model: type[M], **values: Any) -> M:
    """Return the object of a row to insert, as the class itself does.

    Args:
        model: the class of the object.
        values: the values of attributes, `instance_id` and not `instance`; the others have their defaults.

    Raises:
        TypeError: the model has no such attribute.
    """
    constants, functions = _defaults(model)
    found = constants | values
    for name, make in functions.items():
        if name not in found:
            found[name] = make()
    is_known = len(found) == len(model._meta.concrete_fields)
    if not is_known or _is_listened_to(model):
        return model(**values)  # an unknown name is its error
    return _made(model, found)


def copies(row: M, number: int) -> list[M]:
    """Return objects of rows to insert with the values of that one, which they share."""
    names = [field.attname for field in row._meta.concrete_fields]
    values = {name: getattr(row, name) for name in names}
    return [new_row(type(row), **values) for _ in range(number)]


def _is_listened_to(model: type[Model]) -> bool:
    """Whether the project is told by a signal of each object that Django makes."""
    return pre_init.has_listeners(model) or post_init.has_listeners(model)


def _made(model: type[M], values: dict[str, Any]) -> M:
    row = model.__new__(model)
    vars(row).update(values, _state=ModelState())
    return row


@cache
def _defaults(
    model: type[Model],
) -> tuple[dict[str, Any], dict[str, Callable[[], Any]]]:
    """The defaults that any number of objects may share, and the functions that make one for each object."""
    constants, functions = dict[str, Any](), dict[str, Callable[[], Any]]()
    for field in model._meta.concrete_fields:
        if callable(field.default) and field.default is not NOT_PROVIDED:
            functions[field.attname] = field.get_default
        else:
            constants[field.attname] = field.get_default()
    return constants, functions
