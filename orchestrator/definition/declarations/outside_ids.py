"""Outside ids: fields of a process's data that identify it in other systems, such as the number of a parcel."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args, get_origin
from uuid import UUID

from orchestrator.definition.annotations import alternatives, hints
from orchestrator.definition.declarations.process_definition import ProcessDefinition
from orchestrator.definition.secrets import secret_key_mistake

MOST = 100
"""Most ids of a list that are stored."""

LONGEST = 200
"""Most characters of an id that are stored."""

SUBJECT = re.compile(r"(?:[^\W\d]\w*(?:\.[^\W\d]\w*){1,2})?")
"""The form of a subject: the label of an app, a model and perhaps a field; empty for none."""


class Identifier(NamedTuple):
    """One outside id: a field of the data, and its value as text."""

    field: str
    value: str


def identity_mistakes(
    cls: type[ProcessDefinition], form: type[Any], role: str, secret: Collection[str]
) -> Iterator[str]:
    """Yield the mistakes in the correlation field, the subject and the outside ids of a definition.

    Args:
        cls: the definition.
        form: the dataclass with the fields.
        role: the name of this dataclass in messages: data or Input.
        secret: the names of secret fields.
    """
    if cls.correlation and cls.correlation not in hints(form):
        yield f"the correlation field {cls.correlation!r} is not in its {role}"
    if cls.correlation in secret:
        yield secret_key_mistake("the correlation field", cls.correlation)
    subject: Any = cls.subject
    if not isinstance(subject, str) or not SUBJECT.fullmatch(subject):
        yield f'the subject {subject!r} must be "app.Model" or "app.Model.field"'
    names: Any = cls.outside_ids
    if isinstance(names, str) or not isinstance(names, Sequence):
        yield 'outside_ids holds names of fields: outside_ids = ("parcel",)'
        return
    for name in names:
        yield from _id_mistakes(name, hints(form), role, secret)


def _id_mistakes(
    name: Any, known: Mapping[str, Any], role: str, secret: Collection[str]
) -> Iterator[str]:
    if not isinstance(name, str) or name not in known:
        near = get_close_matches(str(name), known, n=1)
        meant = f": did you mean {near[0]!r}?" if near else ""
        yield f"the outside id {name!r} is not in its {role}{meant}"
    elif name in secret:
        yield secret_key_mistake("the outside id", name)
    elif not _identifies(known[name]):
        yield NO_ID.format(name)


NO_ID = (
    "the outside id {0!r} cannot be looked for by its value: it must be a text, a whole number, a UUID, "
    "or a list of these"
)


def _identifies(hint: Any) -> bool:
    """Return whether an annotation allows only ids, lists of ids, or None."""
    return all(_is_id(one) or _is_list(one) for one in alternatives(hint))


def _is_id(hint: Any) -> bool:
    if hint is type(None):
        return True
    found = isinstance(hint, type) and issubclass(hint, (str, int, UUID))
    return found and not issubclass(hint, bool)


def _is_list(hint: Any) -> bool:
    """Whether it is a list or a tuple of ids."""
    parts = [one for one in get_args(hint) if one is not ...]
    if get_origin(hint) not in (list, tuple) or not parts:
        return False
    return all(_is_id(one) for part in parts for one in alternatives(part))


def identifiers(
    names: Sequence[str], data: Mapping[str, Any]
) -> dict[Identifier, None]:
    """Return the outside ids in stored data, each once and in their order, without empty ones."""
    found: dict[Identifier, None] = {}
    for name in names:
        value = data.get(name)
        for one in value[:MOST] if isinstance(value, list) else [value]:
            if text := "" if one is None else str(one).strip()[:LONGEST].strip():
                found[Identifier(name, text)] = None
    return found
