"""JSON values as they are stored: the limits, the form that every database returns, and checksums."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from orchestrator.exceptions import InvalidMessage

MAX_DEPTH = 64
MAX_BYTES = 256 * 1024
MAX_BITS = 14_280
"""Size of an int: Python reads at most 4,300 digits."""


def check_json(value: object, depth: int = 0) -> None:
    """Refuse values that databases or JSON readers treat differently.

    Args:
        value: the JSON values.
        depth: the number of levels above it.

    Raises:
        InvalidMessage: there is such a value; the error has its path.
    """
    if found := _mistake(value, depth):
        *path, reason = found
        raise InvalidMessage(reason, ".".join(path))


def _mistake(value: object, depth: int) -> tuple[str, ...] | None:
    """The path to a value that is refused, and the reason."""
    if depth > MAX_DEPTH:
        raise InvalidMessage(f"nested deeper than {MAX_DEPTH} levels")
    parts: Iterable[tuple[object, object]]
    if isinstance(value, dict):
        if bad := _of_keys(value):
            return bad
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    else:
        return _of_plain(value)
    for place, item in parts:
        if type(item) is str and item.isascii() and item.isprintable():
            continue  # most values
        if found := _mistake(item, depth + 1):
            return (str(place), *found)
    return None


def _of_keys(value: dict[Any, object]) -> tuple[str, ...] | None:
    for key in value:
        if not isinstance(key, str):
            return (f"the key {key!r} must be text",)
        if bad := _of_text(key):
            return bad
    return None


def _of_plain(value: object) -> tuple[str, ...] | None:
    if isinstance(value, str):
        return _of_text(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            return ("NaN and Infinity are not JSON numbers",)
    elif isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            return ("a number has too many digits",)
    elif value is not None:
        return (f"{type(value).__name__} is not a JSON value",)
    return None


def _of_text(text: str) -> tuple[str, ...] | None:
    if "\0" in text:
        return ("text must not contain the NUL character",)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return ("text must not contain lone surrogates",)
    return None


def settled(value: Any) -> Any:
    """Brings floats into the form that every database returns; a list or dict is changed itself.

    PostgreSQL returns large floats as whole numbers, and has no negative zero.
    """
    if isinstance(value, float):
        text = repr(value)
        return int(Decimal(text)) if "e+" in text else value or 0.0
    parts: Iterable[tuple[Any, Any]] = ()
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list):
        parts = enumerate(value)
    for place, item in parts:
        if type(item) in UNSETTLED:
            value[place] = settled(item)
    return value


UNSETTLED = frozenset([float, dict, list])


def canonical_json(value: object) -> str:
    """Return the canonical JSON text: sorted keys, no spaces. Equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def digest(value: object) -> str:
    """Return the SHA-256 of a value's canonical JSON, in hex."""
    return text_digest(canonical_json(value))


def text_digest(text: str) -> str:
    """Return the SHA-256 of canonical JSON, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def limited_digest(body: object) -> str:
    """Return the checksum of JSON values that are small enough to be stored.

    Raises:
        InvalidMessage: the canonical form has more than MAX_BYTES.
    """
    text = canonical_json(body).encode()
    if len(text) > MAX_BYTES:
        raise InvalidMessage(
            f"it has {len(text):,} bytes as JSON, at most {MAX_BYTES:,} are stored: keep large things elsewhere and "
            "give back where they are"
        )
    return hashlib.sha256(text).hexdigest()
