"""The value of a condition: a text that may mean a number, true or false, a day or a moment.

The stored value decides the meaning: `12` is a number beside numbers, and a text beside texts. A value in quotes is
always a text. A stored text in the form of a number or a moment is compared as a number or a moment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from typing import Any

from django.utils import timezone

NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?", re.ASCII)
WORD = re.compile(r'[^\s()<>=!,"]+')

TimeSpan = tuple[datetime, datetime]
"""The beginning and the end, exclusive; the two are equal for a moment."""


@dataclass(frozen=True)
class Value:
    """One value as it was written.

    Args:
        text: without the quotes.
        quoted: whether it was in quotes, and is always a text.
    """

    text: str
    quoted: bool = False

    def __str__(self) -> str:
        plain = not self.quoted and WORD.fullmatch(self.text)
        return self.text if plain else quote(self.text)

    @cached_property
    def number(self) -> Decimal | None:
        """The value as a number; None if it has another form."""
        return None if self.quoted else parse_decimal(self.text)

    @cached_property
    def truth(self) -> bool | None:
        """The value as true or false; None if it has another form."""
        known = {"true": True, "false": False}
        return None if self.quoted else known.get(self.text.casefold())

    @cached_property
    def span(self) -> TimeSpan | None:
        """The value as a day or moment; None if it has another form."""
        return None if self.quoted else parse_span(self.text)

    def equals(self, stored: Any) -> bool:
        """Whether it equals a stored value."""
        if isinstance(stored, bool):
            return self.truth is stored
        if isinstance(stored, str) and stored == self.text:
            return True
        return self.order(stored, texts=False) == 0

    def order(self, stored: Any, *, texts: bool = True) -> int | None:
        """Return whether a stored value is less (-1), equal (0) or more (1); None for values of different kinds.

        Args:
            stored: the value in the data.
            texts: whether to compare two texts letter by letter.
        """
        if isinstance(stored, bool):
            return None
        if isinstance(stored, int | float | Decimal):
            return None if self.number is None else _compare(stored, self.number)
        if not isinstance(stored, str):
            return None
        if self.number is not None and (number := parse_decimal(stored)) is not None:
            return _compare(number, self.number)
        if self.span is not None and (span := parse_span(stored)) is not None:
            return _place_in_span(span[0], self.span)
        means_more = self.number is not None or self.span is not None
        return _compare(stored, self.text) if texts and not means_more else None

    def is_in(self, stored: Any) -> bool:
        """Whether a stored value contains it: a text as letters, a list as an element, an object as a key."""
        if isinstance(stored, str):
            return self.text.casefold() in stored.casefold()
        if isinstance(stored, list):
            return any(self.equals(one) for one in stored)
        return isinstance(stored, dict) and self.text in stored


def quote(text: str) -> str:
    """Write a text in quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def parse_decimal(text: str) -> Decimal | None:
    """Parse a number; None for anything else."""
    return Decimal(text) if NUMBER.fullmatch(text) else None


def parse_span(text: str) -> TimeSpan | None:
    """Parse a day or a moment; a moment without a zone is in the zone of the pages. None for anything else."""
    if len(text) < len("2026-01-01") or not text[:4].isdecimal():
        return None
    try:
        if len(text) == len("2026-01-01"):
            day = datetime.combine(date.fromisoformat(text), time.min)
            begin, end = timezone.make_aware(day), day + timedelta(days=1)
            return begin, timezone.make_aware(end)
        moment = datetime.fromisoformat(text)
        if timezone.is_naive(moment):
            moment = timezone.make_aware(moment)
    except (ValueError, OverflowError):
        return None
    return moment, moment


def _compare(stored: Any, given: Any) -> int:
    return int(stored > given) - int(stored < given)


def _place_in_span(moment: datetime, span: TimeSpan) -> int:
    """Return the place of a moment: before (-1), in (0) or after (1) a span."""
    begin, end = span
    return -1 if moment < begin else int(moment >= end and moment != begin)
