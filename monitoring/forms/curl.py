"""A form as a call of curl, when the server renders the page; `curl.js` updates the call as people fill in the form."""

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
"""Control characters of terminals, and characters that change the direction of a text."""

BRINGS = '-H "Authorization: Bearer $PROCESSION_TOKEN"'
"""The header with the token, which the shell fills in, so that no page and no command history has it."""


def curl_call(address: str, given: Mapping[str, str]) -> str:
    """Return the call, with a line for each value. A POSIX shell takes each value for one word.

    Args:
        address: the whole address.
        given: the values of the form by name.
    """
    lines = [_line(name, value) for name, value in given.items()]
    return " \\\n  ".join([f"curl {_quote(address)}", BRINGS, *lines])


def _line(name: str, value: str) -> str:
    if UNSEEN.search(name + value):
        written = f"{quote(name, safe='')}={quote(value, safe='')}"
        return f"--data-raw {_quote(written)}"
    return f"--data-urlencode {_quote(f'{name}={value}')}"


def _quote(text: str) -> str:
    quoted = shlex.quote(text)
    return quoted if quoted.startswith("'") else f"'{text}'"


def form_values(fields: Iterable[forms.BoundField]) -> dict[str, str]:
    """Return the values that a browser would send for fields of a form."""
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
