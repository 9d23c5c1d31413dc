"""Outside ids: fields of a process's data by whose values others know it, such as the number of a parcel."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple, get_args, get_origin
from uuid import UUID

from orchestrator.definition.secrets import told_to_all
from orchestrator.definition.typing import alternatives, hints

MOST = 100
"""Of the ids of a list so many are kept."""

LONGEST = 200
"""So many characters of an id are kept."""


class Identifier(NamedTuple):
    """One outside id: a field of the data, and its value as text."""

    field: str
    value: str


def reasons(
    names: Any, form: type[Any], role: str, secret: Collection[str] = ()
) -> Iterator[str]:
    """What is wrong with the outside ids of a definition.

    Args:
        names: what it declares.
        form: the dataclass whose fields they are.
        role: what that is called.
        secret: the names of secret fields.
    """
    if isinstance(names, str) or not isinstance(names, Sequence):
        yield 'outside_ids holds names of fields: outside_ids = ("parcel",)'
        return
    known = hints(form)
    for name in names:
        if not isinstance(name, str) or name not in known:
            near = get_close_matches(str(name), known, n=1)
            meant = f": did you mean {near[0]!r}?" if near else ""
            yield f"the outside id {name!r} is not in its {role}{meant}"
        elif name in secret:
            yield told_to_all("the outside id", name)
        elif not _identifies(known[name]):
            yield (
                f"the outside id {name!r} cannot be looked for by its value: it must be a text, a whole number, "
                "a UUID, or a list of these"
            )


def _identifies(hint: Any) -> bool:
    """Whether all that an annotation allows are ids, lists of them, or nothing."""
    return all(_is_id(one) or _is_list(one) for one in alternatives(hint))


def _is_id(hint: Any) -> bool:
    if hint is type(None):
        return True
    found = isinstance(hint, type) and issubclass(hint, (str, int, UUID))
    return found and not issubclass(hint, bool)


def _is_list(hint: Any) -> bool:
    """Whether it is a list or a tuple of ids; an empty tuple is written `...` at its end."""
    parts = [one for one in get_args(hint) if one is not ...]
    if get_origin(hint) not in (list, tuple) or not parts:
        return False
    return all(_is_id(one) for part in parts for one in alternatives(part))


def identifiers(
    names: Sequence[str], data: Mapping[str, Any]
) -> dict[Identifier, None]:
    """The outside ids in stored data, each once and in their order; empty ones are none."""
    found: dict[Identifier, None] = {}
    for name in names:
        value = data.get(name)
        for one in value[:MOST] if isinstance(value, list) else [value]:
            if text := "" if one is None else str(one).strip()[:LONGEST].strip():
                found[Identifier(name, text)] = None
    return found
