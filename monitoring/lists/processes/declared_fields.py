"""The declared fields of the data of processes: a form offers them, and conditions are checked against them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from monitoring.queries.conditions import (
    ConditionGroup,
    ConditionMistake,
    ConditionTree,
)
from monitoring.queries.conditions.tree import format_path
from monitoring.queries.data_values import is_hidden
from orchestrator import registry, secret_names
from orchestrator.definition import Workflow
from orchestrator.definition.annotations import alternatives, hints
from orchestrator.definition.secrets import secret_fields

MEANINGS = {
    "number": ("number", _("%(field)s is a number: write one, as in 12.5")),
    "truth": ("truth", _("%(field)s is true or false: write one of these")),
    "moment": ("span", _("%(field)s is a day or time: write it as in 2026-11-23")),
}
"""The attribute of a value to compare, by kind of field, and the refusal of a value without it."""

MOST = 200
"""The maximum number of offered fields."""


def field_names(definition: str) -> list[str]:
    """Return the fields of one definition's data, or of all; fields of nested dataclasses follow a dot."""
    found: dict[str, None] = {}
    for form in _forms(definition):
        hidden = secret_fields(form)
        plain = (name for name in _names(form) if hidden.isdisjoint(name.split(".")))
        found |= dict.fromkeys(plain)
    if definition:
        hidden = secret_names.code_secrets(definition).names
        found = {name: None for name in found if hidden.isdisjoint(name.split("."))}
    return sorted(found)[:MOST]


def check_conditions(where: ConditionTree, definition: str) -> None:
    """Refuse conditions that a definition's data can never meet: comparisons with another kind of value.

    Raises:
        ConditionMistake: a condition is impossible, or is on a secret field.
    """
    if not definition:
        return
    if isinstance(where, ConditionGroup):
        for part in where.parts:
            check_conditions(part, definition)
        return
    if is_hidden(where.path, secret_names.code_secrets(definition).names):
        said_so = gettext("%(field)s is secret: nothing is looked for in it")
        raise ConditionMistake(said_so % {"field": format_path(where.path)})
    kinds = {_kind(_hint(form, where.path)) for form in _forms(definition)}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if kind and where.operator != "contains":
        meaning, said = MEANINGS[kind]
        if any(getattr(value, meaning) is None for value in where.values):
            raise ConditionMistake(said % {"field": format_path(where.path)})


def _forms(definition: str) -> Iterator[type[Any]]:
    """Yield the classes that the running code declares for the data, of all versions."""
    for (name, _version), declared in registry.definitions.items():
        if definition in ("", name):
            yield declared.Input if issubclass(declared, Workflow) else declared.Data


def _names(form: type[Any]) -> Iterator[str]:
    for name, hint in _hints(form).items():
        yield format_path((name,))
        for one in alternatives(hint):
            if is_dataclass(one):
                yield from (format_path((name, inner)) for inner in _hints(one))


def _hint(form: Any, path: tuple[str, ...]) -> Any:
    """Return the annotation at a path; None without a declaration."""
    for part in path:
        found = [one for one in alternatives(form) if is_dataclass(one)]
        if len(found) != 1:
            return None
        form = _hints(found[0]).get(part)
    return form


def _hints(form: Any) -> dict[str, Any]:
    try:
        return hints(form)
    except NameError:
        return {}


def _kind(hint: Any) -> str:
    """Return the kind of a field: "number", "truth" or "moment"; "" for any other."""
    if hint is None:
        return ""
    kinds = {_kind_of(one) for one in alternatives(hint) if one is not type(None)}
    return kinds.pop() if len(kinds) == 1 else ""


def _kind_of(hint: Any) -> str:
    if not isinstance(hint, type):
        return ""
    if issubclass(hint, bool):
        return "truth"
    if issubclass(hint, int | float | Decimal):
        return "number"
    return "moment" if issubclass(hint, date) else ""
