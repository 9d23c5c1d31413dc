"""Reading conditions from the text of an address, or from the fields of a form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from django.utils.translation import gettext as _

from monitoring.conditions.tree import (
    OPERATORS,
    ConditionGroup,
    Conditions,
    DataCondition,
    Path,
)
from monitoring.conditions.values import WORD, Value

LONGEST = 1_000
"""Characters of a text."""

MOST = 20
"""Conditions in one text."""

DEEPEST = 10
"""Parentheses in one another."""

IN_QUOTES = r'"((?:[^"\\]|\\.)*)"'
PART = re.compile(rf'{IN_QUOTES}|([^\s()<>=!,".]+)')
VALUE = re.compile(rf"{IN_QUOTES}|({WORD.pattern})")
OPERATOR = re.compile(r"(?:!=|<=|>=|=|<|>)|(?:in|contains|exists)\b", re.IGNORECASE)
JOIN = re.compile(r"(?:and|or)\b", re.IGNORECASE)


class ConditionMistake(Exception):
    """A text that cannot be read.

    Args:
        reason: what is wrong.
        at: before which character, counted from 0.
        text: the whole.
        field: of a form in which it is: "field", "operator" or "value"; "" where it is in the text.
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


def read(text: str) -> Conditions:
    """The conditions in a text.

    Raises:
        ConditionMistake: it cannot be read, or says more than is looked for.
    """
    if len(text) > LONGEST:
        said = _("This is longer than %(number)d characters.")
        raise ConditionMistake(said % {"number": LONGEST})
    return _Reader(text).whole()


def added(before: str, joined: str, path: str, operator: str, value: str) -> str:
    """The text of some conditions with one more, from the fields of a form.

    Args:
        before: the conditions that are there; "" for none.
        joined: "and" or "or".
        path: the field.
        operator: one of `OPERATORS`.
        value: what it is compared with; for "in" several with commas between them.

    Raises:
        ConditionMistake: one of them cannot be read.
    """
    found = _path(path)
    if operator not in OPERATORS:
        raise ConditionMistake(_("Choose a comparison."), field="operator")
    given = value.split(",") if operator == "in" else [value]
    values = tuple(_value(one.strip()) for one in given if one.strip())
    if operator == "exists":
        values = ()
    elif not values:
        raise ConditionMistake(_("Say what it is compared with."), field="value")
    more: Conditions = DataCondition(found, operator, values)
    if before:
        more = ConditionGroup(
            "or" if joined == "or" else "and", (*_parts(before, joined), more)
        )
    return str(read(str(more)))


def _path(text: str) -> Path:
    """A path that is written alone."""
    reader = _Reader(text)
    try:
        found = reader.path()
    except ConditionMistake as mistake:
        mistake.field = "field"
        raise
    if reader.rest():
        said = _("Put a name with such characters in quotes.")
        raise ConditionMistake(said, reader.at, text, "field")
    return found


def _parts(text: str, joined: str) -> tuple[Conditions, ...]:
    """The conditions to which one more is added: those of a group that is joined in the same way, or the whole."""
    whole = read(text)
    same = isinstance(whole, ConditionGroup) and whole.joined == joined
    return whole.parts if isinstance(whole, ConditionGroup) and same else (whole,)


def _value(text: str) -> Value:
    found = VALUE.fullmatch(text)
    return _found(found) if found else Value(text, quoted=True)


def _found(match: re.Match[str]) -> Value:
    quoted, plain = match.groups()
    return Value(_unescaped(quoted), quoted=True) if plain is None else Value(plain)


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


class _Reader:
    """Reads a text from its beginning to its end."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0
        self.number = 0

    def whole(self) -> Conditions:
        found = self._alternatives(0)
        if self.rest():
            raise self._mistake(_("Join conditions by “and” or “or”."))
        return found

    def rest(self) -> str:
        """What has not been read yet."""
        while self.text[self.at : self.at + 1].isspace():
            self.at += 1
        return self.text[self.at :]

    def _alternatives(self, depth: int) -> Conditions:
        return self._group("or", lambda: self._group("and", lambda: self._one(depth)))

    def _group(self, joined: str, read_part: Callable[[], Conditions]) -> Conditions:
        """The parts that a word joins, as a group; a single part as itself."""
        parts = [read_part()]
        while self._joined(joined):
            parts.append(read_part())
        return parts[0] if len(parts) == 1 else ConditionGroup(joined, tuple(parts))

    def _joined(self, word: str) -> bool:
        self.rest()
        found = JOIN.match(self.text, self.at)
        if found is None or found.group().lower() != word:
            return False
        self.at = found.end()
        return True

    def _one(self, depth: int) -> Conditions:
        if self._taken("("):
            if depth >= DEEPEST:
                raise self._mistake(_("These are too many parentheses."))
            found = self._alternatives(depth + 1)
            if not self._taken(")"):
                raise self._mistake(_("A parenthesis is not closed."))
            return found
        self.number += 1
        if self.number > MOST:
            said = _("These are more than %(number)d conditions.")
            raise self._mistake(said % {"number": MOST})
        path = self.path()
        operator = self._operator()
        return DataCondition(path, operator, self._values(operator))

    def path(self) -> Path:
        """The fields and places at this place of the text."""
        parts = [self._part()]
        while self.text[self.at : self.at + 1] == ".":
            self.at += 1
            parts.append(self._part())
        return tuple(parts)

    def _part(self) -> str:
        return _found(self._next(PART, _("Name a field of the data."))).text

    def _operator(self) -> str:
        said = _("Write one of these: %(words)s.") % {"words": " ".join(OPERATORS)}
        return self._next(OPERATOR, said).group().lower()

    def _values(self, operator: str) -> tuple[Value, ...]:
        if operator == "exists":
            return ()
        if operator != "in":
            return (self._value(),)
        if not self._taken("("):
            raise self._mistake(_("Write the values in parentheses: in (a, b)."))
        values = [self._value()]
        while self._taken(","):
            values.append(self._value())
        if not self._taken(")"):
            raise self._mistake(_("A parenthesis is not closed."))
        return tuple(values)

    def _value(self) -> Value:
        return _found(self._next(VALUE, _("Say what it is compared with.")))

    def _next(self, form: re.Pattern[str], mistake: str) -> re.Match[str]:
        """The next part of the text, which must have this form.

        Raises:
            ConditionMistake: it has another form.
        """
        self.rest()
        found = form.match(self.text, self.at)
        if found is None:
            raise self._mistake(mistake)
        self.at = found.end()
        return found

    def _taken(self, sign: str) -> bool:
        if not self.rest().startswith(sign):
            return False
        self.at += len(sign)
        return True

    def _mistake(self, reason: Any) -> ConditionMistake:
        return ConditionMistake(str(reason), self.at, self.text)
