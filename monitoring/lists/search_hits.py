"""The matches of the search box, as a page shows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.functional import Promise

from monitoring.base.row_addresses import place_of
from orchestrator.models import ProcessInstance

SHOWN = 5
"""The number of matches of each kind that the page shows; a list has the others."""

SHORTEST = 3
"""The minimum length of a text to search in names, summaries and messages of failures."""


@dataclass(frozen=True)
class SearchHit:
    """One match of the text.

    Args:
        address: the page that shows it.
        title: its name.
        about: further details.
        status: its status; "" for none.
        at: when it began.
    """

    address: str
    title: str
    about: str = ""
    status: str = ""
    at: datetime | None = None


@dataclass(frozen=True)
class SearchHits:
    """The matches of one kind.

    Args:
        kind: the label of the kind.
        all: the address of the list with all matches; "" for none.
        shown: the first matches.
        more: whether there are more that no list has.
        note: what was looked at, if not everything; "" else.
        similar: whether they are only similar to the text; a reader is not redirected to one.
    """

    kind: Promise
    all: str = ""
    shown: list[SearchHit] = field(default_factory=list)
    more: bool = False
    note: Promise | str = ""
    similar: bool = False


def join_parts(*parts: Any) -> str:
    """Return the parts of a text that are there, as one line."""
    return " · ".join(str(part) for part in parts if part)


def process_hit(row: ProcessInstance, found_by: str | None = None) -> SearchHit:
    """Return the match of a process, and the field by which it was found, if that is not its key."""
    about = join_parts(row.name, found_by, row.summary)
    return SearchHit(place_of(row), str(row), about, row.status, row.started_at)
