"""The fields that definitions declare for the data of their processes: to choose from, and to compare rightly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from monitoring.conditions import (
    ConditionGroup,
    ConditionMistake,
    Conditions,
    DataCondition,
)
from monitoring.conditions.tree import written
from monitoring.conditions.values import Value
from monitoring.queries.data import is_hidden
from orchestrator import registry, secret_names
from orchestrator.definition import Workflow
from orchestrator.definition.secrets import names_of
from orchestrator.definition.typing import alternatives, hints

MOST = 200
"""Fields that are offered."""


def field_names(definition: str) -> list[str]:
    """The fields of one definition's data, or of all; those of dataclasses within with a dot before."""
    found: dict[str, None] = {}
    for form in _forms(definition):
        hidden = names_of(form)
        plain = (name for name in _names(form) if hidden.isdisjoint(name.split(".")))
        found |= dict.fromkeys(plain)
    if definition:
        hidden = secret_names.of_name(definition).names
        found = {name: None for name in found if hidden.isdisjoint(name.split("."))}
    return sorted(found)[:MOST]


def check(where: Conditions, definition: str) -> None:
    """Refuses what a definition's data can never meet: a comparison with a value of another kind.

    Raises:
        ConditionMistake: it says which.
    """
    if not definition:
        return
    if isinstance(where, ConditionGroup):
        for part in where.parts:
            check(part, definition)
        return
    if is_hidden(where.path, secret_names.of_name(definition).names):
        said_so = _("%(field)s is secret: nothing is looked for in it")
        raise ConditionMistake(said_so % {"field": written(where.path)})
    kinds = {_kind(_hint(form, where.path)) for form in _forms(definition)}
    kind = kinds.pop() if len(kinds) == 1 else ""
    if where.operator != "contains" and not _fits(where, kind):
        said = {
            "number": _("%(field)s is a number: write one, as in 12.5"),
            "truth": _("%(field)s is true or false: write one of these"),
            "moment": _("%(field)s is a day or time: write it as in 2026-11-23"),
        }
        raise ConditionMistake(said[kind] % {"field": written(where.path)})


def _fits(where: DataCondition, kind: str) -> bool:
    meanings: Mapping[str, Callable[[Value], object]] = {
        "number": lambda one: one.number,
        "truth": lambda one: one.truth,
        "moment": lambda one: one.span,
    }
    meaning = meanings.get(kind)
    return meaning is None or all(meaning(one) is not None for one in where.values)


def _forms(definition: str) -> Iterator[type[Any]]:
    """What the running code declares for the data, of all versions."""
    for (name, _version), declared in registry.definitions.items():
        if definition in ("", name):
            yield declared.Input if issubclass(declared, Workflow) else declared.Data


def _names(form: type[Any]) -> Iterator[str]:
    for name, hint in _hints(form).items():
        yield written((name,))
        for one in alternatives(hint):
            if is_dataclass(one):
                yield from (written((name, inner)) for inner in _hints(one))


def _hint(form: Any, path: tuple[str, ...]) -> Any:
    """The annotation of what is at a path; None where nothing is declared."""
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
    """What a field's values are compared as: "number", "truth" or "moment"; "" for anything else."""
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
