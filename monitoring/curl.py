"""What a form does as a call of curl, for pages as the server sends them; `curl.js` keeps it as the form stands."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from django import forms

UNSEEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""What a terminal would act upon, and what shows a text in another order than it has."""

BRINGS = '-H "Authorization: Bearer $PROCESSION_TOKEN"'
"""The shell fills it in: the token stands in no page, and in no history of commands."""


def call(address: str, given: Mapping[str, str]) -> str:
    """The call, a line for each value; whatever these are, a POSIX shell takes each for one word.

    Args:
        address: the whole address.
        given: the values of the form by name.
    """
    lines = [_line(name, value) for name, value in given.items()]
    return " \\\n  ".join([f"curl {_quoted(address)}", BRINGS, *lines])


def _line(name: str, value: str) -> str:
    if UNSEEN.search(name + value):
        written = f"{quote(name, safe='')}={quote(value, safe='')}"
        return f"--data-raw {_quoted(written)}"
    return f"--data-urlencode {_quoted(f'{name}={value}')}"


def _quoted(text: str) -> str:
    quoted = shlex.quote(text)
    return quoted if quoted.startswith("'") else f"'{text}'"


def values_of(fields: Iterable[forms.BoundField]) -> dict[str, str]:
    """What a browser would send of fields of a form as they stand."""
    found = {}
    for bound in fields:
        value = bound.value()
        if isinstance(bound.field, forms.BooleanField):
            if value:
                found[bound.html_name] = "on"
        elif isinstance(bound.field, forms.ChoiceField) and value in (None, ""):
            choices: Any = bound.field.choices
            first = next(iter(choices), ("", ""))
            found[bound.html_name] = str(first[0])
        else:
            found[bound.html_name] = "" if value is None else str(value)
    return found
