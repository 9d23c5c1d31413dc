"""The form fields for the fields of an event's class, by their types; other types are written as JSON."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import EnumType
from typing import Any, Literal
from uuid import UUID

from django import forms
from django.utils.translation import gettext_lazy as _

from monitoring.forms.action_forms import JsonField, JsonText
from orchestrator.definition import Event
from orchestrator.definition.codec import MAX_BYTES, adapter

OMITTED = object()
"""The value of a field that the event does not get."""

UNKNOWN = object()
"""The type of a field whose annotation cannot be read."""

HINTS: dict[Any, Any] = {
    int: _("a whole number"),
    float: _("a number"),
    Decimal: _("a decimal number"),
    date: _("a day"),
    datetime: _("a time as in 2026-11-23T09:30:00+09:00"),
    time: _("a time of day as in 09:30:00"),
    timedelta: _("a time span as in PT1H30M"),
    UUID: _("an id as in 0193a1b2-c3d4-7e5f-8a9b-0c1d2e3f4a5b"),
}
"""The format of each type that is written in one line."""


@dataclass(frozen=True)
class MessageField:
    """One field of an event's class.

    Args:
        name: as the class has it.
        annotation: its type, without what makes it optional.
        optional: whether it may be None.
        default: its default as JSON values; OMITTED where it must be given.
    """

    name: str
    annotation: Any
    optional: bool
    default: Any

    @property
    def required(self) -> bool:
        return self.default is OMITTED and not self.optional

    @property
    def choices(self) -> dict[str, Any]:
        """The choices as JSON values, by the text that the form sends; empty for a field without choices."""
        values: list[Any] = []
        if typing.get_origin(self.annotation) is Literal:
            values = list(typing.get_args(self.annotation))
        elif isinstance(self.annotation, EnumType):
            values = list(self.annotation)
        elif self.annotation is bool and self.optional:
            values = [True, False]
        said = [_as_json(self.annotation, value) for value in values]
        return {_json_text(one): one for one in said if one is not UNKNOWN}

    @property
    def hint(self) -> Any:
        """The format of the value; "" where the form shows it."""
        if self.annotation is str or self.annotation is bool or self.choices:
            return ""
        return HINTS[self.annotation] if self._is_plain else _("JSON")

    def form_field(self) -> forms.Field:
        """Return the form's field, which shows the mistakes of its value."""
        field = self._made()
        # An empty text is a text, and a box without a tick is False.
        always = isinstance(field, forms.BooleanField) or self.annotation is str
        field.required = self.required and not always
        field.label, field.help_text = self.name, self.hint
        if self.default is not OMITTED:
            field.initial = self.written(self.default)
        return field

    def written(self, value: Any) -> Any:
        """Return a JSON value as the form's field has it; None for null."""
        plain = isinstance(value, str | bool) and not self.choices
        return (
            value if value is None or (plain and self._is_plain) else _json_text(value)
        )

    def _made(self) -> forms.Field:
        if choices := self.choices:
            named = [(key, _choice_label(value)) for key, value in choices.items()]
            must = self.default is not OMITTED and not self.optional
            return forms.ChoiceField(choices=[*([] if must else [("", "—")]), *named])
        if self.annotation is bool:
            return forms.BooleanField()
        if self.annotation is str:
            area = forms.Textarea({"rows": 1, "spellcheck": "false"})
            return forms.CharField(max_length=MAX_BYTES, strip=False, widget=area)
        if self.annotation is date:
            day = forms.DateInput({"type": "date"})
            return forms.CharField(max_length=40, widget=day)
        if self._is_plain:
            return forms.CharField(max_length=5_000)
        return OwnJsonField()

    @property
    def _is_plain(self) -> bool:
        """Whether the value is written as it is, and not as JSON."""
        one_type = isinstance(self.annotation, type)  # others may have no hash
        return one_type and self.annotation in (str, bool, *HINTS)

    def value(self, given: Any) -> Any:
        """Return the value for the event; OMITTED where the event's default holds.

        Raises:
            ValidationError: the form's value cannot be read.
        """
        blank = given in ("", None) and self._is_empty_nothing
        if given is OMITTED or blank:
            return None if self.optional else OMITTED
        if choices := self.choices:
            return choices.get(given)
        if self.annotation is bool:
            return bool(given)
        if self.annotation is str:
            return str(given).replace("\r\n", "\n")  # as it was before browsers sent it
        if self.annotation is int:
            return _convert(int, given, _("Write a whole number."))
        if self.annotation is float:
            return _convert(float, given, _("Write a number."))
        return given

    @property
    def _is_empty_nothing(self) -> bool:
        """Whether an empty field of the form means no value. JSON has null for that, and an empty text is a text."""
        if self.annotation is str:
            return self.optional
        return self._is_plain or bool(self.choices)


class OwnJsonField(JsonField):
    """A field for a value as JSON; OMITTED when it is empty."""

    widget = JsonText({"rows": 3, "class": "json", "spellcheck": "false"})

    def clean(self, value: Any) -> Any:
        """Return the value.

        Raises:
            ValidationError: it is missing, or no JSON.
        """
        if not str(value or "").strip():
            self.validate(None)
            return OMITTED
        return super().clean(value)


def event_fields(event: type[Event]) -> list[MessageField]:
    """Return the fields of an event's class, in its order."""
    try:
        hints = typing.get_type_hints(event)
    except Exception:  # noqa: BLE001  # an annotation may be anything
        hints = {}
    return [
        MessageField(field.name, *_bare_type(annotation), _default(field, annotation))
        for field in dataclasses.fields(event)
        if field.init
        for annotation in [hints.get(field.name, UNKNOWN)]
    ]


def _bare_type(annotation: Any) -> tuple[Any, bool]:
    """Return a type without its names and without None, and whether None is allowed."""
    while hasattr(annotation, "__supertype__"):
        annotation = annotation.__supertype__
    if hasattr(annotation, "__value__"):  # a name that a `type` statement gives
        return _bare_type(annotation.__value__)
    if typing.get_origin(annotation) not in (typing.Union, types.UnionType):
        return annotation, False
    given = typing.get_args(annotation)
    left = [one for one in given if one is not type(None)]
    if len(left) == len(given) or len(left) != 1:
        return annotation, type(None) in given
    return _bare_type(left[0])[0], True


def _default(field: dataclasses.Field[Any], annotation: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        value = field.default
    elif field.default_factory is not dataclasses.MISSING:
        try:
            value = field.default_factory()
        except Exception:  # noqa: BLE001  # it may do anything
            return None
    else:
        return OMITTED
    said = _as_json(annotation, value)
    return None if said is UNKNOWN else said


def _as_json(annotation: Any, value: Any) -> Any:
    """Return a value as JSON values; UNKNOWN where it has none."""
    try:
        return adapter(annotation).dump_python(value, mode="json", warnings="error")
    except Exception:  # noqa: BLE001  # a type of the application's may raise anything
        return UNKNOWN


def _json_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _choice_label(value: Any) -> Any:
    """Return a choice as people read it."""
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return value if isinstance(value, str) else _json_text(value)


def _convert(form: Any, given: Any, mistake: Any) -> Any:
    try:
        return form(given)
    except ValueError:
        raise forms.ValidationError(mistake) from None
