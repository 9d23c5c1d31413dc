"""What a condition compares with: a text that may mean a number, true or false, a day or a moment.

What it means is decided by what is stored: `12` is a number beside numbers and a text beside texts; in quotes it is a
text alone. Stored texts that are written as numbers or moments, as amounts and times are, are compared as these.
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

Span = tuple[datetime, datetime]
"""From when, and until before when; a moment ends where it begins."""


@dataclass(frozen=True)
class Value:
    """One value as it was written.

    Args:
        text: without the quotes.
        quoted: whether it stood in quotes, and so is a text whatever it looks like.
    """

    text: str
    quoted: bool = False

    def __str__(self) -> str:
        plain = not self.quoted and WORD.fullmatch(self.text)
        return self.text if plain else in_quotes(self.text)

    @cached_property
    def number(self) -> Decimal | None:
        """The number that it means, if it means one."""
        return None if self.quoted else number_in(self.text)

    @cached_property
    def truth(self) -> bool | None:
        """What it means where something is true or false."""
        known = {"true": True, "false": False}
        return None if self.quoted else known.get(self.text.casefold())

    @cached_property
    def span(self) -> Span | None:
        """The day or moment that it means, if it means one."""
        return None if self.quoted else span_of(self.text)

    def equals(self, stored: Any) -> bool:
        """Whether it is what is stored."""
        if isinstance(stored, bool):
            return self.truth is stored
        if isinstance(stored, str) and stored == self.text:
            return True
        return self.order(stored, texts=False) == 0

    def order(self, stored: Any, *, texts: bool = True) -> int | None:
        """The order of a stored value: less (-1), the same (0) or more (1); None where they cannot be compared.

        Args:
            stored: what the data has.
            texts: whether two texts are compared letter by letter.
        """
        if isinstance(stored, bool):
            return None
        if isinstance(stored, int | float | Decimal):
            return None if self.number is None else _compared(stored, self.number)
        if not isinstance(stored, str):
            return None
        if self.number is not None and (number := number_in(stored)) is not None:
            return _compared(number, self.number)
        if self.span is not None and (span := span_of(stored)) is not None:
            return _placed(span[0], self.span)
        means_more = self.number is not None or self.span is not None
        return _compared(stored, self.text) if texts and not means_more else None

    def is_in(self, stored: Any) -> bool:
        """Whether what is stored contains it: a text some letters, a list an element, an object a key."""
        if isinstance(stored, str):
            return self.text.casefold() in stored.casefold()
        if isinstance(stored, list):
            return any(self.equals(one) for one in stored)
        return isinstance(stored, dict) and self.text in stored


def in_quotes(text: str) -> str:
    """A text as it is written in quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def number_in(text: str) -> Decimal | None:
    """The number that a text is written as."""
    return Decimal(text) if NUMBER.fullmatch(text) else None


def span_of(text: str) -> Span | None:
    """The day or moment that a text is written as, in the zone of the pages where it names none."""
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


def _compared(stored: Any, given: Any) -> int:
    return int(stored > given) - int(stored < given)


def _placed(moment: datetime, span: Span) -> int:
    """Where a moment lies: before, in or after a span."""
    begin, end = span
    if moment < begin:
        return -1
    return 1 if moment >= end and moment != begin else 0
