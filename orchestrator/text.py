"""A text for people: a template with named values, which each reader is shown in a language of their own."""

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
    """A sentence of the engine: in English, as it is logged, raised and compared, and as what translators translate.

    The console translates it with `gettext` when it is shown. `xgettext --keyword=Text` finds the templates, and those
    that errors are raised with under the names of these.

    Args:
        template: the sentence, with places like `%(step)s`.
        values: what stands in its places, in their order. One that is a text itself, or an error of ours, is
            translated too.
        code: what it says, for programs; by default the first words of it.
        was: its first wording, once it is worded anew: by that it keeps its code, and failures are known as alike.
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
            named = dict(zip(names, map(told_by, values), strict=True))
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
        """A template that is kept for several places, with what it says in one of them."""
        return Text(self.template, *values, code=self.code, was=self.was)

    def changed(self, change: Callable[[str], str]) -> Text:
        """The same with its values changed, those of a text within it too."""
        return self.filled(
            *(
                one.changed(change) if isinstance(one, Text) else change(one)
                for one in self.values.values()
            )
        )

    def translated(
        self, gettext: Callable[[str], str], shown: Callable[[str, str], str]
    ) -> str:
        """The same in another language.

        Args:
            gettext: translates a template.
            shown: a value as people read it, by its name in the template.
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


def typed(name: str, text: str) -> str:
    """What an error says, after the name of its type."""
    if not isinstance(text, Text):
        return f"{name}: {text}"
    return Text("%(error)s: %(why)s", name, text, code=text.code)


def told_by(value: object) -> str:
    """What a value or an error says: a text where it is one, or an error of ours that has one."""
    told = getattr(value, "told", value)
    return told if isinstance(told, Text) else str(value)


def code_of(text: str) -> str:
    """What a text says, for programs; "" of one of the application."""
    return text.code if isinstance(text, Text) else ""


def first_wording(text: str) -> str:
    """A text as it was worded first; one of the application as it is."""
    if not isinstance(text, Text):
        return text
    values = {name: first_wording(one) for name, one in text.values.items()}
    return _filled(text.was or text.template, values)


def packed(text: str) -> dict[str, Any] | None:
    """A text as JSON, as tables keep it beside the English; nothing of one of the application."""
    if not isinstance(text, Text):
        return None
    values = {
        name: packed(one) or storable(one)[:LONGEST_VALUE]
        for name, one in text.values.items()
    }
    return {"template": text.template, "values": values, "code": text.code}


def unpacked(english: str, stored: Any) -> str:
    """The text that a row keeps as JSON, if that says the same as the English beside it.

    It says something else where code of another release has written the one and not the other. The English may have
    been cut, and may begin with a traceback.
    """
    if not stored or not english:
        return english
    try:
        text = _of(stored)
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
        return english  # of a newer release
    shown, plain = storable(text), english.rstrip()
    return text if shown.startswith(plain) or plain.endswith(shown) else english


def _of(stored: dict[str, Any]) -> Text:
    names = dict.fromkeys(PLACE.findall(stored["template"]))
    values = [stored["values"][name] for name in names]
    told = [_of(one) if isinstance(one, dict) else one for one in values]
    return Text(stored["template"], *told, code=stored["code"])


def storable(text: str) -> str:
    """Text that every database takes: no NUL, no lone surrogates."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
