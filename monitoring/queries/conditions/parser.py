"""Parse conditions from the text of an address, or from the fields of a form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from monitoring.queries.conditions.tree import (
    OPERATORS,
    ConditionGroup,
    ConditionTree,
    DataCondition,
    Path,
)
from monitoring.queries.conditions.values import WORD, Value

LONGEST = 1_000
"""The maximum number of characters of a text."""

MOST = 20
"""The maximum number of conditions in one text."""

DEEPEST = 10
"""The maximum depth of nested parentheses."""

IN_QUOTES = r'"((?:[^"\\]|\\.)*)"'
PART = re.compile(rf'{IN_QUOTES}|([^\s()<>=!,".]+)')
VALUE = re.compile(rf"{IN_QUOTES}|({WORD.pattern})")
OPERATOR = re.compile(r"(?:!=|<=|>=|=|<|>)|(?:in|contains|exists)\b", re.IGNORECASE)
JOIN = re.compile(r"(?:and|or)\b", re.IGNORECASE)


class ConditionMistake(Exception):
    """A mistake in the text of conditions.

    Args:
        reason: the mistake in words.
        at: the character after the mistake, counted from 0.
        text: the whole text.
        field: the field of a form with the mistake: "field", "operator" or "value"; "" for a mistake in a text.
    """

    def __init__(
        self, reason: str, at: int = 0, text: str = "", field: str = ""
    ) -> None:
        super().__init__(reason)
        self.reason, self.at, self.text, self.field = reason, at, text, field

    def __str__(self) -> str:
        if not self.at:
            return self.reason
        shown = self.text[max(self.at - 30, 0) : self.at]
        said = _("%(reason)s (after “%(before)s”)")
        return said % {"reason": self.reason, "before": shown.strip()}


def parse_conditions(text: str) -> ConditionTree:
    """Parse the conditions in a text.

    Raises:
        ConditionMistake: the text is malformed or too long, or has too many conditions.
    """
    if len(text) > LONGEST:
        said = _("This is longer than %(number)d characters.")
        raise ConditionMistake(said % {"number": LONGEST})
    return _Reader(text).whole()


def add_condition(
    before: str, joined: str, path: str, operator: str, value: str
) -> str:
    """Return a text of conditions with one more condition, from the fields of a form.

    Args:
        before: the text of the conditions so far; "" for none.
        joined: "and" or "or".
        path: the field to compare.
        operator: one of `OPERATORS`.
        value: the value to compare with; for "in" several values with commas between them.

    Raises:
        ConditionMistake: a field of the form is malformed.
    """
    found = _path(path)
    if operator not in OPERATORS:
        raise ConditionMistake(_("Choose a comparison."), field="operator")
    more: ConditionTree = DataCondition(found, operator, _form_values(operator, value))
    if before:
        word = "or" if joined == "or" else "and"
        more = ConditionGroup(word, (*_parts(before, joined), more))
    return str(parse_conditions(str(more)))


def _form_values(operator: str, text: str) -> tuple[Value, ...]:
    """Parse the value field of a form; "exists" has no value."""
    if operator == "exists":
        return ()
    given = text.split(",") if operator == "in" else [text]
    values = tuple(_value(one.strip()) for one in given if one.strip())
    if not values:
        raise ConditionMistake(_("Say what it is compared with."), field="value")
    return values


def _path(text: str) -> Path:
    """Parse a text that has a path and nothing else."""
    reader = _Reader(text)
    try:
        found = reader.path()
        if reader.rest():
            raise reader.mistake(_("Put a name with such characters in quotes."))
    except ConditionMistake as mistake:
        mistake.field = "field"
        raise
    return found


def _parts(text: str, joined: str) -> tuple[ConditionTree, ...]:
    """Return the parts of a group that the same word joins; other conditions are one part."""
    whole = parse_conditions(text)
    if isinstance(whole, ConditionGroup) and whole.joined == joined:
        return whole.parts
    return (whole,)


def _value(text: str) -> Value:
    found = VALUE.fullmatch(text)
    return _to_value(found) if found else Value(text, quoted=True)


def _to_value(match: re.Match[str]) -> Value:
    quoted, plain = match.groups()
    if plain is not None:
        return Value(plain)
    return Value(re.sub(r"\\(.)", r"\1", quoted), quoted=True)


class _Reader:
    """A parser that reads a text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.number = text, 0, 0

    def whole(self) -> ConditionTree:
        found = self._alternatives(0)
        if self.rest():
            raise self.mistake(_("Join conditions by “and” or “or”."))
        return found

    def rest(self) -> str:
        """Return the unread part of the text."""
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.text[self.at :]

    def _alternatives(self, depth: int) -> ConditionTree:
        return self._group("or", lambda: self._group("and", lambda: self._term(depth)))

    def _group(
        self, joined: str, read_part: Callable[[], ConditionTree]
    ) -> ConditionTree:
        """Return the parts that a word joins, as a group; a single part as itself."""
        parts = [read_part()]
        while self._take_join(joined):
            parts.append(read_part())
        return parts[0] if len(parts) == 1 else ConditionGroup(joined, tuple(parts))

    def _take_join(self, word: str) -> bool:
        self.rest()
        found = JOIN.match(self.text, self.at)
        if found is None or found.group().lower() != word:
            return False
        self.at = found.end()
        return True

    def _term(self, depth: int) -> ConditionTree:
        if self._take("("):
            if depth >= DEEPEST:
                raise self.mistake(_("These are too many parentheses."))
            found = self._alternatives(depth + 1)
            if not self._take(")"):
                raise self.mistake(_("A parenthesis is not closed."))
            return found
        self.number += 1
        if self.number > MOST:
            said = _("These are more than %(number)d conditions.")
            raise self.mistake(said % {"number": MOST})
        path, operator = self.path(), self._operator()
        return DataCondition(path, operator, self._values(operator))

    def path(self) -> Path:
        """Parse the path at this place of the text."""
        parts = [self._part()]
        while self.text[self.at : self.at + 1] == ".":
            self.at += 1
            parts.append(self._part())
        return tuple(parts)

    def _part(self) -> str:
        return _to_value(self._next(PART, _("Name a field of the data."))).text

    def _operator(self) -> str:
        said = _("Write one of these: %(words)s.") % {"words": " ".join(OPERATORS)}
        return self._next(OPERATOR, said).group().lower()

    def _values(self, operator: str) -> tuple[Value, ...]:
        if operator == "exists":
            return ()
        if operator != "in":
            return (self._value(),)
        if not self._take("("):
            raise self.mistake(_("Write the values in parentheses: in (a, b)."))
        values = [self._value()]
        while self._take(","):
            values.append(self._value())
        if not self._take(")"):
            raise self.mistake(_("A parenthesis is not closed."))
        return tuple(values)

    def _value(self) -> Value:
        return _to_value(self._next(VALUE, _("Say what it is compared with.")))

    def _next(self, form: re.Pattern[str], mistake: str) -> re.Match[str]:
        """Return the next part of the text, which must have this form.

        Raises:
            ConditionMistake: it has another form.
        """
        self.rest()
        found = form.match(self.text, self.at)
        if found is None:
            raise self.mistake(mistake)
        self.at = found.end()
        return found

    def _take(self, sign: str) -> bool:
        if not self.rest().startswith(sign):
            return False
        self.at += len(sign)
        return True

    def mistake(self, reason: Any) -> ConditionMistake:
        return ConditionMistake(str(reason), self.at, self.text)
