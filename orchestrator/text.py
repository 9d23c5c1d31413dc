"""A text for people: a template with named values, which each reader sees in a language of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache
from typing import Any, Self

LONGEST_VALUE = 500
"""Characters of a value that are stored."""

PLACE = re.compile(r"%\((\w+)\)s")
CLAUSE_ENDS = re.compile(r"[:;.,] ")
WORD = re.compile(r"\b(?!(?:an?|the)\b)\w+")
LINKING = re.compile(
    r"(_(and|any|as|at|be|by|from|in|is|it|its|no|not|of|or|that|this|to|was|were|with))+$"
)
"""Words that a code does not end with."""


class Text(str):
    """A sentence of the engine: in English for logs, errors and comparisons, and as a template with values to
    translate.

    The console translates it with `gettext` when it is shown. `xgettext --keyword=Text` finds the templates; for those
    of errors the names of the error classes are keywords too.

    Args:
        template: the sentence, with places like `%(step)s`.
        values: the values of its places, in their order; a `Text` or a ProcessionError among them is translated too.
        code: a word for programs that says the same; by default made of its first words.
        was: its first wording, once it has a new one: its code, and the groups of its failures, stay the same.
    """

    template: str
    values: dict[str, str]
    was: str

    def __new__(
        cls, template: str, *values: object, code: str = "", was: str = ""
    ) -> Self:
        named, english = dict[str, str](), template
        if values:
            names = dict.fromkeys(PLACE.findall(template))
            named = dict(zip(names, map(text_from, values), strict=True))
            english = _filled(template, named)
        self = super().__new__(cls, english)
        self.template, self.values, self.was = template, named, was
        if code:
            self.code = code
        return self

    @cached_property
    def code(self) -> str:
        return _code(self.was or self.template)

    def filled(self, *values: object) -> Text:
        """Return the template with other values."""
        return Text(self.template, *values, code=self.code, was=self.was)

    def changed(self, change: Callable[[str], str]) -> Text:
        """Return the text with each value changed, those of a text within it too."""
        return self.filled(
            *(
                one.changed(change) if isinstance(one, Text) else change(one)
                for one in self.values.values()
            )
        )

    def translated(
        self, gettext: Callable[[str], str], shown: Callable[[str, str], str]
    ) -> str:
        """Return the text in another language.

        Args:
            gettext: translates a template.
            shown: returns a value as people read it, by its name in the template.
        """
        values = {
            name: one.translated(gettext, shown)
            if isinstance(one, Text)
            else shown(name, one)
            for name, one in self.values.items()
        }
        return _filled(gettext(self.template), values)


def _filled(template: str, values: Mapping[str, str]) -> str:
    return PLACE.sub(lambda place: values.get(place[1], place[0]), template)


@lru_cache(1_000)
def _code(template: str) -> str:
    clauses = map(WORD.findall, CLAUSE_ENDS.split(PLACE.sub("", template).lower()))
    code = "_".join(next((words for words in clauses if len(words) > 1), [])[:6])
    short = LINKING.sub("", code)
    return short if short.count("_") > 1 else code


def with_error_type(name: str, text: str) -> str:
    """Return the text of an error after the name of its type."""
    if not isinstance(text, Text):
        return f"{name}: {text}"
    return Text("%(error)s: %(why)s", name, text, code=text.code)


def text_from(value: object) -> str:
    """Return a value or an error as a text; one that is a `Text`, or has one, stays translatable."""
    told = getattr(value, "told", value)
    return told if isinstance(told, Text) else str(value)


def code_of(text: str) -> str:
    """Return the code of a text; "" for a text of the application."""
    return text.code if isinstance(text, Text) else ""


def first_wording(text: str) -> str:
    """Return a text in its first wording; a text of the application as it is."""
    if not isinstance(text, Text):
        return text
    values = {name: first_wording(one) for name, one in text.values.items()}
    return _filled(text.was or text.template, values)


def pack_text(text: str) -> dict[str, Any] | None:
    """Return a text as JSON, for its column beside the English; None for a text of the application."""
    if not isinstance(text, Text):
        return None
    values = {
        name: pack_text(one) or storable_text(one)[:LONGEST_VALUE]
        for name, one in text.values.items()
    }
    return {"template": text.template, "values": values, "code": text.code}


def unpack_text(english: str, stored: Any) -> str:
    """Return the text that a row has as JSON, if it agrees with the English beside it; else the English.

    They differ if code of another release wrote only one of them. The English may be cut, and may begin with a
    traceback.
    """
    if not stored or not english:
        return english
    try:
        text = _of(stored)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return english  # of a newer release
    shown, plain = storable_text(text), english.rstrip()
    return text if shown.startswith(plain) or plain.endswith(shown) else english


def _of(stored: dict[str, Any]) -> Text:
    names = dict.fromkeys(PLACE.findall(stored["template"]))
    values = [stored["values"][name] for name in names]
    told = [_of(one) if isinstance(one, dict) else one for one in values]
    return Text(stored["template"], *told, code=stored["code"])


STEERING = re.compile(
    r"[\0-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+"
)
"""Characters that steer what shows a text: they end a line, change its direction, or are controls or half a pair.

They are listed here, since the Unicode table of each Python knows other characters.
"""

UNSEEN_MARKS = re.compile(
    r"[\s\u00ad\u034f\u180e\u200b-\u200d\u2060-\u2064\u2800\u3164\ufe00-\ufe0f\ufeff]*"
)
"""Spaces, joiners and other characters that cannot be seen alone."""

PLAIN_NAME = (
    "not blank, without control characters, lone surrogates, and characters that end a line or change its "
    "direction"
)
"""The rule for names, as refusals word it."""


def steers(text: str) -> bool:
    """Return whether a text has characters that steer the page, the terminal or the file that shows it."""
    return STEERING.search(text) is not None


def is_blank(text: str) -> bool:
    """Return whether nothing of a text is seen."""
    return UNSEEN_MARKS.fullmatch(text) is not None


def is_plain_name(text: str) -> bool:
    """Return whether a text can be a name: something of it is seen, and nothing in it steers what shows it."""
    return not steers(text) and not is_blank(text)


def shortened(text: str, longest: int) -> str:
    """Return a text, of a longer one the beginning: it ends with "…", after a word if the last one is not very long."""
    if len(text) <= longest:
        return text
    cut = text[: longest - 1]
    words = text[:longest].rpartition(" ")[0]
    return f"{(words if len(words) > longest / 2 else cut).rstrip()}…"


def storable_text(text: str) -> str:
    """Return a text that every database takes: without NUL and lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def storable_words(text: str) -> str:
    """Return a text that every database takes; a `Text` stays translatable."""
    if isinstance(text, Text):
        return text.changed(storable_text)
    return storable_text(text)


def spoken_text(value: object) -> str:
    """Return what a value of the application says, as a storable text; its class may raise instead of saying it."""
    try:
        return storable_words(text_from(value))
    except BaseException as unspoken:  # noqa: BLE001  # the application's
        return UNSPOKEN.filled(type(unspoken).__name__)


UNSPOKEN = Text("its text cannot be had (%(error)s)")
