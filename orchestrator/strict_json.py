"""JSON from outside, read strictly and in bounded time and memory.

`parse` refuses what readers understand differently (a key twice, NaN, text that is no text) and what would exhaust one
(size, depth, number of keys). It counts size, depth and keys on the raw bytes, before it builds any value.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import NoReturn

from orchestrator.definition.codec import MAX_BYTES, MAX_DEPTH, check_json
from orchestrator.exceptions import InvalidMessage

MAX_KEYS = 5_000


class TooLarge(InvalidMessage):
    """The value exceeds the limits; it may well be JSON."""


@dataclass(frozen=True)
class Limits:
    """The limits of one value: bytes, depth of nesting, and keys in all."""

    bytes: int = MAX_BYTES
    depth: int = MAX_DEPTH
    keys: int = MAX_KEYS


MESSAGE_LIMITS = Limits()
"""The limits of messages from outside."""

# A string to its end (or the end of the input), a bracket or a colon. Possessive, so that no input is read twice.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.?+)*+"?+|[\[{\]}:]', re.DOTALL)
_SHOWN = 40  # characters of a refused key or number


def parse(raw: bytes, limits: Limits = MESSAGE_LIMITS) -> object:
    """Read one JSON value.

    Args:
        raw: UTF-8.
        limits: by default 256 KiB, nested 64 deep, with 5,000 keys in all.

    Raises:
        TooLarge: the value exceeds the limits.
        InvalidMessage: it has a mistake; the message names the place of the bad value if it has one.
    """
    _check_size(raw, limits)
    text = _decoded(raw)
    _check_shape(raw, limits)
    value = _loaded(text)
    check_json(value, depth=MAX_DEPTH - limits.depth)
    return value


def _check_size(raw: bytes, limits: Limits) -> None:
    if len(raw) > limits.bytes:
        most = limits.bytes // 1024
        raise TooLarge(f"larger than {most} KiB; send less at once")


def _decoded(raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidMessage(f"not UTF-8 at byte {error.start}") from None


def _check_shape(raw: bytes, limits: Limits) -> None:
    depth = keys = 0
    for token in _TOKEN.finditer(raw):
        first = raw[token.start()]
        if first in b"[{":
            depth += 1
        elif first in b"]}":
            depth -= 1
        elif first in b":":
            keys += 1
        if depth > limits.depth:
            raise TooLarge(f"nested deeper than {limits.depth} levels")
        if keys > limits.keys:
            raise TooLarge(f"more than {limits.keys:,} keys; send less at once")


def _loaded(text: str) -> object:
    try:
        return json.loads(
            text,
            object_pairs_hook=_object,
            parse_constant=_refuse_constant,
            parse_float=_finite,
        )
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise InvalidMessage(f"not JSON: {error.msg} at {where}") from None
    except ValueError:  # Python reads no whole number of more than 4,300 digits
        raise InvalidMessage("a number has too many digits") from None


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise InvalidMessage(f"the key {key[:_SHOWN]!a} occurs twice in one object")
        found[key] = value
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidMessage(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise InvalidMessage(f"the number {digits[:_SHOWN]} is too large")
    return number
