"""Presses buttons of pages as a browser does: with what their forms have."""

import re
from html import unescape
from typing import Any

from tests.services.client import Client

HIDDEN = r'<input type="hidden"\s+name="(\w+)"\s+value="([^"]*)"'


def hidden(page: str) -> dict[str, str]:
    """Return the hidden fields of a page but that of the search."""
    found = dict(re.findall(HIDDEN, page))
    return {name: unescape(text) for name, text in found.items() if name != "query"}


def form(page: str, **changed: Any) -> dict[str, str]:
    """Return what the form of a page sends that begins an operation on many."""
    usual = {"reason": "the line is back", "samples": "", "batch": "100"}
    changed = {name: str(value) for name, value in changed.items()}
    return {**hidden(page), **usual, **changed}


def pressed(client: Client, address: str, **changed: Any) -> Any:
    """Open the page that begins an operation on many, press its button, and return the answer."""
    return client.post(address, form(client.read(address), **changed))
