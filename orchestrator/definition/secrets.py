"""Secret fields of data, events, commands and results. Pages, files and messages show their values masked.

`secret()` marks a field. The engine copies values by name, from an event to the data and on to a command. So a
definition masks a value by the name of its field, at any depth, also in rows of versions whose classes no longer
exist. A field that is filled from a secret field of another name is secret too.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any
from urllib.parse import quote, quote_plus

from orchestrator.definition.annotations import components, is_dataclass_type

MASK = "••••••"
"""Replaces a secret of any length."""

SHORTEST = 3
"""Fewest characters of a value that `mask_values` looks for."""

WORD = 4
"""A value with fewer characters is masked only as a whole word."""

PIECE = 8
"""Fewest characters by which a part of a long value is recognized in a cut text."""

LOOKS = 2_000
"""Most pieces of one value that `mask_values` looks for."""

_MARK = "procession.secret"


def secret(
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Any = dataclasses.MISSING,
    **more: Any,
) -> Any:
    """Declare a field of a dataclass, an event or a command whose value is shown masked.

    Args:
        default: the default value.
        default_factory: a function that makes the default value.
        more: further arguments of `dataclasses.field`.
    """
    more["metadata"] = {**(more.get("metadata") or {}), _MARK: True}
    # The stubs of `field` have a signature for each default.
    made: Callable[..., Any] = field
    return made(default=default, default_factory=default_factory, **more)


@dataclass(frozen=True)
class Secrets:
    """The secret fields of one definition, or of several.

    Args:
        names: the names of the fields, at any depth.
        messages: the secret fields of each event or command that has some, by its type.
        elements: the steps that run for each element of a secret list.
    """

    names: frozenset[str] = frozenset()
    messages: Mapping[str, frozenset[str]] = field(default_factory=dict)
    elements: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.names)

    def __or__(self, other: Secrets) -> Secrets:
        if not other.names:
            return self
        if not self.names:
            return other
        messages = dict(self.messages)
        for name, found in other.messages.items():
            messages[name] = messages.get(name, frozenset()) | found
        names, elements = self.names | other.names, self.elements | other.elements
        return Secrets(names, messages, elements)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form; {} without secrets."""
        if not self.names:
            return {}
        messages = {one: sorted(self.messages[one]) for one in sorted(self.messages)}
        names, elements = sorted(self.names), sorted(self.elements)
        return {"names": names, "messages": messages, "elements": elements}

    @classmethod
    def from_json(cls, body: Mapping[str, Any] | None) -> Secrets:
        """Return the secrets in the stored form."""
        if not body:
            return NONE
        return cls(
            frozenset(body.get("names", ())),
            {one: frozenset(names) for one, names in body.get("messages", {}).items()},
            frozenset(body.get("elements", ())),
        )


NONE = Secrets()


def secret_fields(*forms: Any) -> frozenset[str]:
    """Return the names of the secret fields of classes and annotations, at any depth."""
    return frozenset(one.name for one in _fields(forms) if _MARK in one.metadata)


def all_field_names(*forms: Any) -> frozenset[str]:
    """Return the names of all fields of classes and annotations, at any depth."""
    return frozenset(one.name for one in _fields(forms))


def _fields(forms: Iterable[Any]) -> Iterator[dataclasses.Field[Any]]:
    for form in components(*forms):
        if is_dataclass_type(form):
            yield from fields(form)


def find_secrets(
    forms: Iterable[Any],
    messages: Iterable[type[Any]],
    *,
    same: Iterable[tuple[str, str]] = (),
    elements: Iterable[tuple[str, str]] = (),
) -> Secrets:
    """Find the secret fields of a definition.

    Args:
        forms: the types of its data or input, and of its results.
        messages: its events and commands.
        same: pairs of names of fields that have the same value.
        elements: the steps that run for each element of a list, each with the field of the list.
    """
    classes = list(messages)
    names = set(secret_fields(*forms, *classes))
    _spread(names, set(same))
    steps = frozenset(step for step, over in elements if over in names)
    return Secrets(frozenset(names), _messages(names, classes), steps)


def _spread(names: set[str], pairs: set[tuple[str, str]]) -> None:
    """Adds the names of fields with the same value as a secret field."""
    before = -1
    while len(names) > before:
        before = len(names)
        for pair in pairs:
            if names.intersection(pair):
                names.update(pair)


def _messages(
    names: set[str], classes: Iterable[type[Any]]
) -> dict[str, frozenset[str]]:
    found = {one.__name__: all_field_names(one) & names for one in classes}
    return {name: secret_ones for name, secret_ones in found.items() if secret_ones}


def secret_key_mistake(role: str, name: str) -> str:
    """Return why a secret field cannot identify a process."""
    return (
        f"{role} {name!r} is secret, and would be shown and looked for by its value: take another field, "
        "or do not mark it as secret"
    )


# Values


def mask_fields(value: Any, names: Iterable[str]) -> Any:
    """Mask the values of secret names in JSON values."""
    hidden_ones = names if isinstance(names, frozenset) else frozenset(names)
    return _masked(value, hidden_ones) if hidden_ones else value


def _masked(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: MASK if name in names else _masked(item, names)
            for name, item in value.items()
        }
    if isinstance(value, list):
        return [_masked(item, names) for item in value]
    return value


TEXT = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\\?\Z))(?:(\s*:)\s*)?', re.DOTALL)
"""A JSON string, which may be cut, and the colon behind it if it is a name."""


def mask_json(text: str, names: Iterable[str]) -> str:
    """Mask the values of secret names in JSON text, which may be cut at its end."""
    hidden_ones = frozenset(names)
    told, place = list[str](), 0
    while hidden_ones and (found := TEXT.search(text, place)):
        quoted, colon = found.groups()
        if colon and _read(quoted) in hidden_ones:
            mask = json.dumps(MASK, ensure_ascii=False)
            told.append(f"{text[place : found.end(2)]} {mask}")
            place = _end_of_value(text, found.end())
        else:
            told.append(text[place : found.end()])
            place = found.end()
    return "".join([*told, text[place:]])


def _read(quoted: str) -> Any:
    try:
        return json.loads(quoted)
    except ValueError:
        return quoted


def _end_of_value(text: str, start: int) -> int:
    """The end of a JSON value; the end of the text, if the value is cut."""
    try:
        _, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError:
        return len(text)
    return end if NEXT.match(text, end) else len(text)


NEXT = re.compile(r"\s*([,}\]]|\Z)")
"""The text after a complete value."""


def secret_texts(body: Any, names: Iterable[str] = ()) -> set[str]:
    """Return the values of secret fields as texts: of the named fields, and of the marked fields of dataclasses."""
    found = set[str]()
    _collect(body, frozenset(names), found, inside=False)
    return found


def _collect(
    value: Any, names: frozenset[str], found: set[str], *, inside: bool
) -> None:
    if is_dataclass(value) and not isinstance(value, type):
        for one in fields(value):
            known = inside or one.name in names or _MARK in one.metadata
            _collect(getattr(value, one.name, None), names, found, inside=known)
    elif isinstance(value, Mapping):
        for name, item in value.items():
            _collect(item, names, found, inside=inside or name in names)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            _collect(item, names, found, inside=inside)
    elif inside and value is not None and not isinstance(value, bool):
        found.add(str(value.value if isinstance(value, Enum) else value))


def mask_values(text: str, secret_values: Iterable[str]) -> str:
    """Mask values in a text, in any spelling.

    A program may write a value plainly, in the notation of Python or JSON, or in a URL. It may cut a long value.
    """
    forms = {
        form
        for value in secret_values
        if len(value.strip()) >= SHORTEST
        for form in spellings(value)
    }
    text = _without(text, (form for form in forms if form in text))
    long = (form for form in forms if len(form) > PIECE + WORD)
    return _without(text, {piece for form in long for piece in _pieces(form, text)})


def _without(text: str, forms: Iterable[str]) -> str:
    for form in sorted(forms, key=len, reverse=True):
        whole = rf"(?<!\w){re.escape(form)}(?!\w)"
        short = len(form) < WORD
        text = re.sub(whole, MASK, text) if short else text.replace(form, MASK)
    return text


def spellings(value: str) -> set[str]:
    """Return the spellings in which a program may write a value."""
    bare = value.strip()
    spelled = {
        json.dumps(bare)[1:-1],
        json.dumps(bare, ensure_ascii=False)[1:-1],
        repr(bare)[1:-1],
        ascii(bare)[1:-1],
        quote(bare),
        quote(bare, safe=""),
        quote_plus(bare),
        " ".join(bare.split()),
    }
    lines = {line.strip() for line in bare.splitlines() if len(line.strip()) >= PIECE}
    return {bare, *spelled, *lines}


def _pieces(value: str, text: str) -> Iterator[str]:
    """The parts of a value that occur in a text."""
    place, pace = 0, max(2, len(value) // LOOKS)
    while place + PIECE <= len(value):
        at = text.find(value[place : place + PIECE])
        if at < 0:
            place += pace
            continue
        first, last = place, place + PIECE
        start, end = at, at + PIECE
        while first and start and value[first - 1] == text[start - 1]:
            first, start = first - 1, start - 1
        while last < len(value) and end < len(text) and value[last] == text[end]:
            last, end = last + 1, end + 1
        yield text[start:end]
        place = last
