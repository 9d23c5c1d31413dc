"""Reads pages and files as people do, and looks for what should not be on them."""

import csv
import io
import json
from collections.abc import Callable
from typing import Any

from django.utils.html import strip_tags

from monitoring.views.lists.exports import BEGINNING
from tests.services.client import Client

BY_SCRIPT = {"HX-Request": "true"}
"""What a page sends when its script asks for parts of it."""

PLANTED = ("<script>alert", "<img src=x", "<svg/onload", "id=planted>")
"""What texts of tests.browser.samples.HARMFUL become on a page that takes them for markup."""


def plain(html: str) -> str:
    """Return the text of a page without its tags."""
    return " ".join(strip_tags(html).split())


def between(page: str, start: str, end: str) -> str:
    """Return what follows the first `start`, until `end`."""
    return page.partition(start)[2].partition(end)[0]


def planted(page: str) -> list[str]:
    """Return what harmful texts have become markup of a page."""
    return [one for one in PLANTED if one in page]


def all_rows(page_from: Callable[[str], Any]) -> list[Any]:
    """Return the rows of all pages, each of which says where the next one begins; the first begins at ""."""
    found, older = list[Any](), ""
    for _ in range(1_000):
        page = page_from(older)
        found += page.rows
        if not page.older:
            return found
        older = str(page.older)
    raise AssertionError("the pages have no end")


def rows_of(client: Client, address: str) -> list[dict[str, Any]]:
    """Return the rows of a file of CSV or JSON lines."""
    text = client.read(address)
    if ".jsonl" in address:
        return [json.loads(line) for line in text.splitlines()]
    assert text.startswith(BEGINNING)
    lines = io.StringIO(text.removeprefix(BEGINNING), newline="")
    return list(csv.DictReader(lines))
