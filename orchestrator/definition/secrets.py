"""Secret fields: those of data, events, commands and results that pages, files and messages show masked.

`secret()` marks a field. Data flows by name, from an event to the data and on to a command, so within one definition a
secret is known by its name, at any depth: a value is masked wherever it stands under that name, also in the rows of
versions whose classes are gone. What fills a field of another name makes a secret of that one too.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, get_args, get_type_hints
from urllib.parse import quote, quote_plus
from weakref import WeakKeyDictionary

MASK = "••••••"
"""What stands in the place of a secret, whatever it is and however long."""

SHORTEST = 3
"""Characters of a value that is looked for in texts; a shorter one says nothing where it stands."""

WORD = 4
"""Below so many characters only a whole word is taken for the value."""

PIECE = 8
"""Characters of a long value by which a part of it is known, where a text was cut."""

LOOKS = 2_000
"""Pieces of one value that are looked for, at most."""

_MARK = "procession.secret"


def secret(
    *,
    default: Any = dataclasses.MISSING,
    default_factory: Any = dataclasses.MISSING,
    **more: Any,
) -> Any:
    """A field of a dataclass, an event or a command whose value is shown masked.

    Args:
        default: its value where none is given.
        default_factory: what makes that value.
        more: what else `dataclasses.field` takes.
    """
    more["metadata"] = {**(more.get("metadata") or {}), _MARK: True}
    # The stubs of `field` have a signature for each default.
    made: Callable[..., Any] = field
    return made(default=default, default_factory=default_factory, **more)


@dataclass(frozen=True)
class Secrets:
    """What is secret in one definition, or in several.

    Args:
        names: of the fields, at whatever depth.
        messages: the types of the events and commands that have such fields, each with their names.
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
        both = {*self.messages, *other.messages}
        nothing = frozenset[str]()
        return Secrets(
            self.names | other.names,
            {
                one: self.messages.get(one, nothing) | other.messages.get(one, nothing)
                for one in both
            },
            self.elements | other.elements,
        )

    def to_json(self) -> dict[str, Any]:
        """As it is stored with a definition; {} where nothing is secret."""
        if not self.names:
            return {}
        return {
            "names": sorted(self.names),
            "messages": {
                one: sorted(self.messages[one]) for one in sorted(self.messages)
            },
            "elements": sorted(self.elements),
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any] | None) -> Secrets:
        """What is stored with a definition."""
        if not body:
            return NONE
        return cls(
            frozenset(body.get("names", ())),
            {one: frozenset(names) for one, names in body.get("messages", {}).items()},
            frozenset(body.get("elements", ())),
        )


NONE = Secrets()


def names_of(*forms: Any) -> frozenset[str]:
    """The names of the secret fields of some classes and annotations, and of all that these are made of."""
    return frozenset(one.name for one in _fields(forms) if _MARK in one.metadata)


def all_names(*forms: Any) -> frozenset[str]:
    """The names of all their fields."""
    return frozenset(one.name for one in _fields(forms))


def _fields(forms: Iterable[Any]) -> Iterator[dataclasses.Field[Any]]:
    waiting, seen = list(forms), list[Any]()
    while waiting:
        form = waiting.pop()
        if any(form is one for one in seen):
            continue
        seen.append(form)
        if isinstance(form, type) and is_dataclass(form):
            yield from fields(form)
            waiting += _hints(form)
        waiting += get_args(form)
        for name in ("__supertype__", "__value__"):  # of a NewType, of a type alias
            waiting += [getattr(form, name)] if hasattr(form, name) else []


_known: WeakKeyDictionary[type[Any], list[Any]] = WeakKeyDictionary()
"""The annotations of classes, once all their names can be found: a list asks for those of a message in each row."""


def _hints(form: type[Any]) -> list[Any]:
    if form not in _known:
        try:
            _known[form] = list(get_type_hints(form).values())
        except (NameError, TypeError):  # what cannot be found cannot be looked into
            return [one.type for one in fields(form)]
    return _known[form]


def of_process_manager(
    data: Any,
    events: Iterable[type[Any]],
    commands: Iterable[tuple[type[Any], Mapping[str, str]]],
    same: Iterable[tuple[str, str]] = (),
) -> Secrets:
    """What is secret in a process manager.

    Args:
        data: its dataclass.
        events: those that it has rows for.
        commands: those that it issues, each with the sources of the fields that are filled from another name.
        same: names of fields that are compared, and so have the same value.
    """
    taken, issued = list(events), list(commands)
    names = set(names_of(data, *taken, *(command for command, _ in issued)))
    pairs = {pair for _, renames in issued for pair in renames.items()} | {*same}
    _spread(names, pairs)
    return Secrets(
        frozenset(names), _messages(names, [*taken, *(one for one, _ in issued)])
    )


def of_workflow(
    given: Any,
    events: Iterable[type[Any]],
    results: Iterable[Any],
    elements: Iterable[tuple[str, str]],
) -> Secrets:
    """What is secret in a workflow.

    Args:
        given: the dataclass of its input.
        events: those that its steps wait for.
        results: the types of what its steps give.
        elements: the steps that run for each element of a list, each with the name of the field that holds it.
    """
    taken = list(events)
    names = names_of(given, *taken, *results)
    secret_ones = frozenset(step for step, over in elements if over in names)
    return Secrets(names, _messages(names, taken), secret_ones)


def _spread(names: set[str], pairs: set[tuple[str, str]]) -> None:
    """Adds what has the same value under another name."""
    before = -1
    while len(names) > before:
        before = len(names)
        for pair in pairs:
            if names.intersection(pair):
                names.update(pair)


def _messages(
    names: Iterable[str], classes: Iterable[type[Any]]
) -> dict[str, frozenset[str]]:
    wanted = frozenset(names)
    found = {one.__name__: wanted & all_names(one) for one in classes}
    return {name: secret_ones for name, secret_ones in found.items() if secret_ones}


def told_to_all(role: str, name: str) -> str:
    """Why a secret field cannot be what others know a process by."""
    return (
        f"{role} {name!r} is secret, and would be shown and looked for by its value: take another field, "
        "or do not mark it as secret"
    )


# Values


def masked(value: Any, names: Iterable[str]) -> Any:
    """JSON values with what stands under secret names masked."""
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


TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[\[\]{}:,]|[^\s"\[\]{}:,]+|\s+', re.DOTALL
)
"""A part of JSON text; the last one may be cut."""


def masked_text(text: str, names: Iterable[str]) -> str:
    """JSON text, which may be cut at its end, with what stands under secret names masked."""
    hidden_ones = frozenset(names)
    if not hidden_ones:
        return text
    parts = [found.group() for found in TOKEN.finditer(text)]
    told, place = list[str](), 0
    while place < len(parts):
        part, place = parts[place], place + 1
        told.append(part)
        if part.startswith('"') and _read(part) in hidden_ones:
            after = _past_blanks(parts, place)
            if after < len(parts) and parts[after] == ":":
                told += [
                    *parts[place : after + 1],
                    " ",
                    json.dumps(MASK, ensure_ascii=False),
                ]
                place = _past_value(parts, _past_blanks(parts, after + 1))
    return "".join(told)


def _read(part: str) -> Any:
    try:
        return json.loads(part)
    except ValueError:
        return part


def _past_blanks(parts: list[str], place: int) -> int:
    while place < len(parts) and parts[place].isspace():
        place += 1
    return place


def _past_value(parts: list[str], place: int) -> int:
    depth = 0
    while place < len(parts):
        depth += (parts[place] in "[{") - (parts[place] in "]}")
        place += 1
        if depth <= 0:
            break
    return place


def values(body: Any, names: Iterable[str] = ()) -> set[str]:
    """The values of secret fields, as texts: of JSON values by their names, of dataclasses also by their marks."""
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


def hidden(text: str, secret_values: Iterable[str]) -> str:
    """A text with these values masked, however it writes them.

    A program writes a value as it is, as Python or JSON spell it, or in an address; of a long one perhaps only a part.
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
    """How a program may write a value."""
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
    """The parts of a value that a text has."""
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
