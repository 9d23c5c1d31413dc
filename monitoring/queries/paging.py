"""A page of a list: its rows, and the key from which the next page goes on, however long the list is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet
from django.utils import timezone

Row = TypeVar("Row")
Told = TypeVar("Told")
OneModel = TypeVar("OneModel", bound=Model)


@dataclass(frozen=True)
class Page(Generic[Row]):
    """A page of a list.

    Args:
        rows: in the order of the list.
        older: the key from which the list goes on, whichever way it runs; "" where it ends.
        first: whether the list begins with it.
    """

    rows: list[Row]
    older: str = ""
    first: bool = True

    def of(self, rows: list[Told]) -> Page[Told]:
        """The same page with something else for each row."""
        return Page(rows, self.older, self.first)


def page_of(
    found: list[Row],
    size: int,
    key: Callable[[Row], Any] = attrgetter("pk"),
    *,
    edge: str = "",
    first: bool = True,
) -> Page[Row]:
    """The page of rows of which one more was looked for than it has.

    Args:
        found: the rows.
        size: how many it has.
        key: of a row.
        edge: the key at which the looking stopped, where there may be more behind it.
        first: whether the list begins with them.
    """
    older = str(key(found[size - 1])) if len(found) > size else edge
    return Page(found[:size], older, first)


def page_by_key(
    rows: QuerySet[OneModel], size: int, after: str = "", *, ascending: bool = False
) -> Page[OneModel]:
    """The page that goes on from a key.

    Args:
        rows: in the order of their keys, the last one first.
        size: how many it has.
        after: the key, as an address says it; anything else begins the list.
        ascending: whether they are in that order the other way round.
    """
    key = number_in(after)
    if key is not None:
        rows = rows.filter(**{"pk__gt" if ascending else "pk__lt": key})
    return page_of(list(rows[: size + 1]), size, first=key is None)


def every_page(read: Callable[[str], Page[Row]]) -> Iterator[list[Row]]:
    """The rows of a whole list, some at a time; each page is read when the one before has been taken.

    Args:
        read: gives the page that goes on from a key; the first one for "".
    """
    before = ""
    while True:
        page = read(before)
        if page.rows:
            yield page.rows
        if not page.older:
            return
        before = page.older


def number_in(text: str, digits: int = 18) -> int | None:
    """The number that a parameter of an address is; None for anything else."""
    return int(text[:digits]) if text.isascii() and text.isdecimal() else None


def written(*place: datetime | int | None) -> str:
    """A place in a list as an address says it: times to the microsecond, then a key."""
    return "_".join(
        f"{one.timestamp():.6f}" if isinstance(one, datetime) else str(one or 0)
        for one in place
    )


def place_in(text: str) -> tuple[list[datetime | None], int] | None:
    """The times of a place as `written` has it, and its key; None for anything else."""
    *times, key = text.split("_")
    zone = timezone.get_default_timezone()
    try:
        seconds = [float(one) for one in times]
        found = [
            datetime.fromtimestamp(one, tz=zone) if one else None for one in seconds
        ]
        return found, int(key[:18])
    except (ValueError, OverflowError, OSError):
        return None
