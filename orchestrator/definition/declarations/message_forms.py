"""The forms of stored messages: without the fields at their default, and as an earlier release has stored them."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Any, TypeVar

from orchestrator.definition.annotations import hints, is_class
from orchestrator.definition.codec import canonical_json, decode, encode, encode_as
from orchestrator.definition.messages import Message
from orchestrator.exceptions import InvalidMessage

M = TypeVar("M", bound=Message)
T = TypeVar("T")


def encode_message(message: Message) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write an event or a command as JSON values: the form that is stored, and the full form.

    The stored form leaves out the fields at their default, so that code which lacks a new field with a default reads
    the message too.

    Raises:
        InvalidMessage: as `encode`.
    """
    full, stored = encode(message), {}
    defaults = _defaults(type(message))
    for name, value in full.items():
        default = defaults.get(name)
        if default is None or not default.stands_for(getattr(message, name), value):
            stored[name] = value
    return stored, full


@dataclass(frozen=True)
class Default:
    """The default of a field, and its JSON text."""

    value: Any
    text: str

    def stands_for(self, value: Any, written: Any) -> bool:
        """Return whether a value is the default: equal values of other types or texts are not."""
        same_type = type(value) is type(self.value)
        return same_type and canonical_json(written) == self.text


EMPTY = (list, dict, set, frozenset, tuple)
"""The factories that may be called: what they make is always the same."""


def _find_defaults(kind: type[Message]) -> dict[str, Default]:
    """The defaults of a message's fields by name. Those that a function of the application makes are left out."""
    found = {}
    for one in fields(kind):  # type: ignore[arg-type]  # the class statement makes it a dataclass
        value = one.default
        if one.default_factory in EMPTY:
            value = one.default_factory()
        if value is MISSING or not one.init:
            continue
        try:
            written = encode_as(hints(kind)[one.name], value, exact=False)
        except (InvalidMessage, NameError, TypeError, KeyError):
            continue  # its default is not of its type
        found[one.name] = Default(value, canonical_json(written))
    return found


_defaults: Callable[[Any], dict[str, Default]] = cache(_find_defaults)


def decode_message(kind: type[M], body: object) -> M:
    """Read JSON values as an event or a command, in today's form or in the older one that its class converts.

    Raises:
        InvalidMessage: it has neither form.
    """
    try:
        return decode(kind, body)
    except InvalidMessage as error:
        convert = kind._from_older  # not a public name: fields may have any
        if convert is None or not isinstance(body, dict):
            raise
        try:
            return decode(kind, convert(deepcopy(body)))
        except InvalidMessage:
            raise error from None
        except KeyboardInterrupt:
            raise
        except BaseException as raised:  # noqa: BLE001  # the application's function may raise anything
            more = f"; from_older raised {type(raised).__name__}"
            raise InvalidMessage(f"{error}{more}", alike=error.alike + more) from None


def decode_stored(form: type[T], body: object) -> T:
    """Read a stored value as its type; a message in an older form too.

    Raises:
        InvalidMessage: it has another form.
    """
    read: Callable[[Any, object], T] = (
        decode_message if is_class(form, Message) else decode
    )
    return read(form, body)


def current_form(form: type[Any], body: object) -> dict[str, Any] | None:
    """Return stored JSON values in today's form, with all fields; None if the running code cannot read them."""
    try:
        return encode(decode_stored(form, body))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001  # the class's own checks may raise anything
        return None
