"""What a list is narrowed to: the base of every list's search, whose fields are parameters of its address."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Self
from urllib.parse import urlencode

from django.http import QueryDict

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
