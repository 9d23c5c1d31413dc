"""Every list: what it is narrowed to, and its pages, each of which goes on from a key however long the list is."""

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
"""Characters of a parameter that are read."""

RENAMED = {"since": "from", "until": "to"}
"""Fields that their parameters call otherwise."""


@dataclass(frozen=True)
class Chip:
    """One condition of a list, which can be removed by itself.

    Args:
        label: what it is about.
        value: what it is set to, as people read it.
        without: the query string of the page without it.
        name: its parameter.
    """

    label: Any
    value: Any
    without: str = ""
    name: str = ""


@dataclass(frozen=True)
class Search:
    """What a list is narrowed to: each field is a parameter of the address, but for those that go by keyword alone.

    Args:
        reader: who "me" is, and whose permissions count.
    """

    LABELS: ClassVar[Mapping[str, Any]] = {}
    """What the parameters are called."""

    reader: Any = field(default=None, kw_only=True)

    @classmethod
    def names(cls) -> dict[str, str]:
        """The parameters of the address, by field."""
        asked = (one.name for one in fields(cls) if not one.kw_only)
        return {name: RENAMED.get(name, name) for name in asked}

    @classmethod
    def from_query(
        cls, query: QueryDict | Mapping[str, Any], reader: Any = None, **fixed: str
    ) -> Self:
        """What an address says, but for what is fixed whatever it says."""
        given = {
            name: clean(query.get(parameter, ""))
            for name, parameter in cls.names().items()
        }
        return cls(**(given | fixed), reader=reader)

    def parameters(self, **changed: str) -> dict[str, str]:
        """What is set, as parameters of the address, some of them changed."""
        given = {key: getattr(self, name) for name, key in self.names().items()}
        return {name: value for name, value in (given | changed).items() if value}

    def address(self, **changed: str) -> str:
        """The same as a query string; "?" where nothing is set."""
        return f"?{urlencode(self.parameters(**changed))}"

    def narrowing(self) -> dict[str, str]:
        """The parameters that leave rows out."""
        return self.parameters()

    def words(self) -> Mapping[str, Any]:
        """What is set as people read it, by parameter, where that is not as the address says it."""
        return {}

    def chips(self) -> list[Chip]:
        """What is set, each with the way to remove it."""
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
        """What cannot be understood of it, with what would be."""
        yield from ()

    @cached_property
    def mistake(self) -> str:
        """The first of these; "" where nothing is wrong. With a mistake nothing matches."""
        return next(iter(self.mistakes()), "")


def clean(text: Any, longest: int = LONGEST) -> str:
    """A parameter without what no text in the tables can contain."""
    return str(text).replace("\0", "").strip()[:longest]


@dataclass(frozen=True)
class KeyedPage(Generic[Row]):
    """A page of a list.

    Args:
        rows: in the order of the list.
        older: the key from which the list goes on, whichever way it runs; "" where it ends.
        first: whether the list begins with it.
    """

    rows: list[Row]
    older: str = ""
    first: bool = True

    def of(self, rows: list[Told]) -> KeyedPage[Told]:
        """The same page with something else for each row."""
        return KeyedPage(rows, self.older, self.first)


def page_of(
    found: list[Row],
    size: int,
    key: Callable[[Row], Any] = attrgetter("pk"),
    *,
    edge: str = "",
    first: bool = True,
) -> KeyedPage[Row]:
    """The page of rows of which one more was looked for than it has.

    Args:
        found: the rows.
        size: how many it has.
        key: of a row.
        edge: the key at which the looking stopped, where there may be more behind it.
        first: whether the list begins with them.
    """
    older = str(key(found[size - 1])) if len(found) > size else edge
    return KeyedPage(found[:size], older, first)


def page_by_key(
    rows: QuerySet[OneModel], size: int, after: str = "", *, ascending: bool = False
) -> KeyedPage[OneModel]:
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


def every_page(
    read: Callable[[str], KeyedPage[Row]], before: str = ""
) -> Iterator[list[Row]]:
    """The rows of a whole list, some at a time; each page is read when the one before has been taken.

    Args:
        read: gives the page that goes on from a key; the first one for "".
        before: the key from which the list is read.
    """
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


def uuid_in(text: object) -> UUID | None:
    """The id that a text is; None for anything else."""
    try:
        return UUID(str(text))
    except ValueError:
        return None


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
