"""What an operator's form says, made into a request to the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Self

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from orchestrator.definition.codec import MAX_BYTES
from orchestrator.engine.operations import ActionRequest, Operation
from orchestrator.exceptions import (
    InvalidMessage,
    OperationRefused,
    PermissionMissing,
    StaleRevision,
)
from orchestrator.strict_json import parse
from orchestrator.text import code_of


class FromProgram(dict[str, Any]):
    """What a program says in the place of a form: a value for each name, as texts or as JSON has them.

    A name that the form does not know is refused: one that is misspelt would go by unheard.
    """

    def __init__(self, values: Mapping[str, Any], *, as_json: bool) -> None:
        super().__init__(values)
        self.as_json = as_json


class JsonText(forms.Textarea):
    """Where a value is written as JSON; of a program that speaks JSON it is that value itself."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        value = super().value_from_datadict(data, files, name)
        if isinstance(data, FromProgram) and data.as_json and name in data:
            return json.dumps(value, ensure_ascii=False)
        return value


class JsonField(forms.CharField):
    """A value that the operator writes as JSON."""

    widget: Any = JsonText

    def __init__(self) -> None:
        super().__init__(max_length=MAX_BYTES, strip=False)

    def clean(self, value: Any) -> Any:
        """The value; the refusal names the place of the mistake.

        Raises:
            ValidationError: it is not JSON, or too large or deep to be stored.
        """
        try:
            return parse(super().clean(value).encode())
        except InvalidMessage as mistake:
            raise forms.ValidationError(
                _("This is not JSON: %(why)s") % {"why": mistake}
            ) from None


MOST_REVISION = 2**31 - 1
"""The largest that a table has room for."""

MOST_DAYS = 3_650

FIELDS: dict[str, Any] = {
    "text": lambda: forms.CharField(max_length=200),
    "number": lambda: forms.IntegerField(min_value=1),
    "days": lambda: forms.IntegerField(
        min_value=1, max_value=MOST_DAYS, required=False
    ),
    "json": JsonField,
    "flag": lambda: forms.BooleanField(required=False),
    "person": lambda: forms.CharField(max_length=254, required=False),
}
"""The form's field for each kind of thing that an action is told."""


class ActionForm(forms.Form):
    """Key (one for each opened dialog, so that pressing twice acts once), revision seen, reason, and what is given."""

    key = forms.UUIDField(widget=forms.HiddenInput)
    revision = forms.IntegerField(
        min_value=0,
        max_value=MOST_REVISION,
        required=False,
        widget=forms.HiddenInput,
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        error_messages={"required": _("Say why: the reason is kept with the action.")},
        widget=forms.Textarea,
    )

    def __init__(self, operation: Operation, data: Any) -> None:
        super().__init__(data)
        self.operation = operation
        self.fields["reason"].required = operation.asks_reason
        for given in operation.given:
            self.fields[given.name] = FIELDS[given.form]()

    def full_clean(self) -> None:
        super().full_clean()
        if isinstance(self.data, FromProgram):
            for name in sorted(self.data.keys() - self.fields.keys()):
                unknown = forms.ValidationError(_("There is no such field."))
                self.errors[name[:40]] = self.error_class(unknown.messages)

    def clean_reason(self) -> str:
        return str(self.cleaned_data["reason"]).replace("\0", "")

    def given(self) -> list[Any]:
        """What the action is told besides, in its order; the form must be valid."""
        return [self.cleaned_data[given.name] for given in self.operation.given]

    def asked(self, request: HttpRequest) -> ActionRequest:
        """The request to the engine; the form must be valid."""
        return ActionRequest(
            actor=request.user,
            key=self.cleaned_data["key"],
            reason=self.cleaned_data["reason"],
            expected_revision=self.cleaned_data["revision"],
            address=address_of(request),
            way=getattr(request, "way", ""),
        )


def address_of(request: HttpRequest) -> str | None:
    """Where a request comes from, for the audit; None where a socket of Unix or a proxy gives no address."""
    given = request.META.get("REMOTE_ADDR") or ""
    host, _colon, _port = given.rpartition(":")  # some proxies add it
    for one in (given, host.strip("[]")):
        with suppress(ValueError):
            return str(ip_address(one.partition("%")[0]))  # the database knows no zones
    return None


@dataclass(frozen=True)
class ActionAnswer:
    """What became of an action.

    Args:
        text: the sentence to show.
        status: the HTTP status that goes with it.
        leads_to: where it leads.
        code: for programs, what kind of refusal it is.
        errors: what is wrong with each field.
        reason: the code of what the refusal says, which stays whatever it is worded.
        about: for programs, what it was done to.
    """

    text: Any
    status: int = 200
    leads_to: str = ""
    code: str = ""
    errors: Mapping[str, list[str]] = field(default_factory=dict)
    reason: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def invalid(cls, form: forms.Form, text: Any = "") -> Self:
        """Of a form that is not filled in as it must be."""
        errors = {
            name: [str(one) for one in said] for name, said in form.errors.items()
        }
        first = text or next(iter(form.errors.values()))[0]
        return cls(first, 400, code="invalid", errors=errors)

    @classmethod
    def refused(cls, refusal: OperationRefused, text: Any) -> Self:
        """Of what was not carried out.

        Args:
            refusal: why.
            text: the same in the words of whoever asked.
        """
        reason = code_of(refusal.told)
        if isinstance(refusal, PermissionMissing):
            return cls(text, 403, code="forbidden", reason=reason)
        stale = isinstance(refusal, StaleRevision)
        return cls(text, 409, code="stale" if stale else "refused", reason=reason)

    @property
    def done(self) -> bool:
        return self.status == 200
