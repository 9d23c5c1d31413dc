"""The base of every list: its filters, and pages that continue from a key, for lists of any length."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import cached_property
from operator import attrgetter
from typing import Any, ClassVar, Generic, Self, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Model, QuerySet
from django.http import QueryDict
from django.utils import timezone

Row = TypeVar("Row")
Told = TypeVar("Told")
OneModel = TypeVar("OneModel", bound=Model)

LONGEST = 200
"""The maximum length of a parameter; the rest is cut off."""

RENAMED = {"since": "from", "until": "to"}
"""Fields whose parameters have another name."""


@dataclass(frozen=True)
class Chip:
    """One condition of a list, which a person can remove.

    Args:
        label: of the filter.
        value: as people read it.
        without: the query string without it.
        name: its parameter.
    """

    label: Any
    value: Any
    without: str = ""
    name: str = ""


@dataclass(frozen=True)
class Search:
    """The filters of a list: each field is a parameter of the address, except keyword-only fields.

    Args:
        reader: the user, for "me" and for permissions.
    """

    LABELS: ClassVar[Mapping[str, Any]] = {}
    """The labels of the parameters."""

    reader: Any = field(default=None, kw_only=True)

    @classmethod
    def names(cls) -> dict[str, str]:
        """Return the parameters of the address by field."""
        asked = (one.name for one in fields(cls) if not one.kw_only)
        return {name: RENAMED.get(name, name) for name in asked}

    @classmethod
    def from_query(
        cls, query: QueryDict | Mapping[str, Any], reader: Any = None, **fixed: str
    ) -> Self:
        """Read the filters of an address; `fixed` fields override those of the address."""
        given = {
            name: clean_text(query.get(parameter, ""))
            for name, parameter in cls.names().items()
        }
        return cls(**(given | fixed), reader=reader)

    @classmethod
    def from_stored(cls, about: Mapping[str, Any]) -> Self:
        """Read the filters of a stored selection, exactly as they are stored.

        Raises:
            TypeError: a newer release has stored an unknown filter; ignoring it would select more rows.
        """
        if unknown := about.keys() - cls.names().values():
            raise TypeError(f"unknown filters: {', '.join(sorted(unknown))}")
        given = {
            name: str(about[parameter])
            for name, parameter in cls.names().items()
            if parameter in about
        }
        return cls(**given)

    def parameters(self, **changed: str) -> dict[str, str]:
        """Return the set filters as parameters of the address, with changes."""
        given = {key: getattr(self, name) for name, key in self.names().items()}
        return {name: value for name, value in (given | changed).items() if value}

    def address(self, **changed: str) -> str:
        """Return the set filters as a query string, with changes; "?" without filters."""
        return f"?{urlencode(self.parameters(**changed))}"

    def narrowing(self) -> dict[str, str]:
        """Return the parameters that exclude rows."""
        return self.parameters()

    def words(self) -> Mapping[str, Any]:
        """Return readable values by parameter, where they differ from the address."""
        return {}

    def chips(self) -> list[Chip]:
        """Return the set filters, each with the address without it."""
        words = self.words()
        return [
            Chip(
                self.LABELS.get(name, name),
                words.get(name, value),
                self.address(**{name: ""}),
                name,
            )
            for name, value in self.narrowing().items()
        ]

    def mistakes(self) -> Iterator[str]:
        """Yield the mistakes in the filters, each with the valid alternative, in words."""
        yield from ()

    @cached_property
    def mistake(self) -> str:
        """The first mistake; "" without one. With a mistake no row matches."""
        return next(iter(self.mistakes()), "")


def clean_text(text: Any, longest: int = LONGEST) -> str:
    """Return a parameter without null characters and surrounding spaces, cut to a length."""
    return str(text).replace("\0", "").strip()[:longest]


@dataclass(frozen=True)
class KeyedPage(Generic[Row]):
    """A page of a list.

    Args:
        rows: in the order of the list.
        older: the key from which the next page continues; "" at the end of the list.
        first: whether it is the first page.
    """

    rows: list[Row]
    older: str = ""
    first: bool = True

    def of(self, rows: list[Told]) -> KeyedPage[Told]:
        """Return the same page with other rows."""
        return KeyedPage(rows, self.older, self.first)


def make_page(
    found: list[Row],
    size: int,
    key: Callable[[Row], Any] = attrgetter("pk"),
    *,
    edge: str = "",
    first: bool = True,
) -> KeyedPage[Row]:
    """Return a page from its rows and one more.

    Args:
        found: the rows; one more than `size` means that another page follows.
        size: the number of rows on the page.
        key: returns the key of a row.
        edge: the key at which a bounded search stopped; "" if it did not.
        first: whether it is the first page.
    """
    older = str(key(found[size - 1])) if len(found) > size else edge
    return KeyedPage(found[:size], older, first)


def page_by_key(
    rows: QuerySet[OneModel], size: int, after: str = "", *, ascending: bool = False
) -> KeyedPage[OneModel]:
    """Return the page after a key.

    Args:
        rows: by key, descending.
        size: the number of rows on the page.
        after: the key as in an address; anything else means the first page.
        ascending: whether the rows are ascending instead.
    """
    key = parse_number(after)
    if key is not None:
        rows = rows.filter(**{"pk__gt" if ascending else "pk__lt": key})
    return make_page(list(rows[: size + 1]), size, first=key is None)


def every_page(
    read: Callable[[str], KeyedPage[Row]], before: str = ""
) -> Iterator[list[Row]]:
    """Yield the rows of a whole list page by page; each page is read when the caller wants it.

    Args:
        read: returns the page after a key; the first page for "".
        before: the key from which to start.
    """
    while True:
        page = read(before)
        if page.rows:
            yield page.rows
        if not page.older:
            return
        before = page.older


def parse_number(text: str, digits: int = 18) -> int | None:
    """Parse a number of an address; None for anything else."""
    return int(text[:digits]) if text.isascii() and text.isdecimal() else None


def format_place(*place: datetime | UUID | int | None) -> str:
    """Write a place in a list for an address: times to the microsecond, then a key."""
    return "_".join(
        f"{one.timestamp():.6f}" if isinstance(one, datetime) else str(one or 0)
        for one in place
    )


def _parse_key(text: str) -> int:
    return int(text[:18])


def parse_place(
    text: str, times: int = 1, parse_key: Callable[[str], Any] = _parse_key
) -> tuple[Any, ...] | None:
    """Parse a place that `format_place` wrote; None for anything else.

    Args:
        text: of an address.
        times: the number of times before the key; all but the last may be None.
        parse_key: parses the key, or raises ValueError.
    """
    *seconds, key = text.split("_")
    zone = timezone.get_default_timezone()
    try:
        found = [
            datetime.fromtimestamp(one, tz=zone) if one else None
            for one in map(float, seconds)
        ]
        place = (*found, parse_key(key))
    except (ValueError, OverflowError, OSError):
        return None
    return place if len(found) == times and found[-1] else None
