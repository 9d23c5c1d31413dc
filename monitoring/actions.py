"""What an operator's form says, made into a request to the engine."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from orchestrator.definition.codec import MAX_BYTES
from orchestrator.engine.operations import ActionRequest, Operation
from orchestrator.exceptions import InvalidMessage
from orchestrator.strict_json import parse


class JsonField(forms.CharField):
    """A value that the operator writes as JSON."""

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

FIELDS: dict[str, Any] = {
    "text": lambda: forms.CharField(max_length=200),
    "number": lambda: forms.IntegerField(min_value=1),
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
            address=request.META.get("REMOTE_ADDR") or None,
        )


@dataclass(frozen=True)
class ActionAnswer:
    """What became of an action: the sentence to show, the HTTP status that goes with it, where it leads."""

    text: Any
    status: int = 200
    leads_to: str = ""

    @property
    def done(self) -> bool:
        return self.status == 200
