"""Forms of actions, and their requests to the engine."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self
from uuid import uuid4

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from monitoring.base.requests import MOST_REVISION, client_address
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


class ProgramData(dict[str, Any]):
    """The data of a form from a program: values by name, as texts or as JSON values.

    The form refuses a name that it does not have, so that a misspelt name is noticed.
    """

    def __init__(self, values: Mapping[str, Any], *, as_json: bool) -> None:
        super().__init__(values)
        self.as_json = as_json


class JsonText(forms.Textarea):
    """A text area for a JSON value; a program that sends JSON sends the value itself."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> Any:
        value = super().value_from_datadict(data, files, name)
        if isinstance(data, ProgramData) and data.as_json and name in data:
            return json.dumps(value, ensure_ascii=False)
        return value


class JsonField(forms.CharField):
    """A field for a JSON value."""

    widget: Any = JsonText

    def __init__(self) -> None:
        super().__init__(max_length=MAX_BYTES, strip=False)

    def clean(self, value: Any) -> Any:
        """Return the parsed value.

        Raises:
            ValidationError: the text is not JSON, or too large or deep to store; it names the place.
        """
        try:
            return parse(super().clean(value).encode())
        except InvalidMessage as mistake:
            raise forms.ValidationError(
                _("This is not JSON: %(why)s") % {"why": mistake}
            ) from None


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
"""The form's field for each kind of argument of an action."""


class ActionForm(forms.Form):
    """The form of an action: key, revision seen, reason and arguments.

    Each opened dialog has its own key, so that a second press does not act again.
    """

    key = forms.UUIDField(widget=forms.HiddenInput)
    revision = forms.IntegerField(
        min_value=0, max_value=MOST_REVISION, required=False, widget=forms.HiddenInput
    )
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        error_messages={"required": _("Say why: the reason is kept with the action.")},
        widget=forms.Textarea({"rows": 3, "maxlength": 500}),
    )

    def __init__(self, operation: Operation, data: Any) -> None:
        super().__init__(data)
        self.operation = operation
        self.new_key = uuid4().hex if data is None else str(data.get("key", ""))[:40]
        """The key that the form is sent with next."""
        self.fields["reason"].required = operation.requires_reason
        for given in operation.given:
            self.fields[given.name] = FIELDS[given.form]()

    def full_clean(self) -> None:
        super().full_clean()
        if isinstance(self.data, ProgramData):
            for name in sorted(self.data.keys() - self.fields.keys()):
                unknown = forms.ValidationError(_("There is no such field."))
                self.errors[name[:40]] = self.error_class(unknown.messages)

    def clean_reason(self) -> str:
        return str(self.cleaned_data["reason"]).replace("\0", "")

    def given(self) -> list[Any]:
        """Return the arguments of the action, in its order; the form must be valid."""
        return [self.cleaned_data[given.name] for given in self.operation.given]

    def asked(self, request: HttpRequest) -> ActionRequest:
        """Return the request to the engine; the form must be valid."""
        return ActionRequest(
            actor=request.user,
            key=self.cleaned_data["key"],
            reason=self.cleaned_data["reason"],
            expected_revision=self.cleaned_data["revision"],
            address=client_address(request),
            way=getattr(request, "way", ""),
        )


@dataclass(frozen=True)
class ActionAnswer:
    """The answer to an action.

    Args:
        text: the sentence for people.
        status: the HTTP status.
        leads_to: the address to go to next.
        code: the kind of refusal, for programs.
        errors: the errors of each field.
        reason: the code of the refusal's text, which stays when the wording changes.
        about: facts on the target, for programs.
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
        """Return the answer to an invalid form."""
        errors = {
            name: [str(one) for one in said] for name, said in form.errors.items()
        }
        first = text or next(iter(form.errors.values()))[0]
        return cls(first, 400, code="invalid", errors=errors)

    @classmethod
    def refused(cls, refusal: OperationRefused, text: Any) -> Self:
        """Return the answer to a refused action.

        Args:
            refusal: of the engine.
            text: the refusal in the language of the user.
        """
        reason = code_of(refusal.told)
        if isinstance(refusal, PermissionMissing):
            return cls(text, 403, code="forbidden", reason=reason)
        stale = isinstance(refusal, StaleRevision)
        return cls(text, 409, code="stale" if stale else "refused", reason=reason)

    @property
    def done(self) -> bool:
        return self.status == 200
