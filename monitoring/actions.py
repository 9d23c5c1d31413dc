"""What an operator's form says, made into a request to the engine."""

from dataclasses import dataclass
from typing import Any

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from orchestrator.definition.codec import MAX_BYTES
from orchestrator.engine.operations import ActionRequest
from orchestrator.exceptions import InvalidMessage
from orchestrator.strict_json import parse


class ActionForm(forms.Form):
    """Key (one for each opened dialog, so that pressing twice acts once), revision seen, reason."""

    key = forms.UUIDField(widget=forms.HiddenInput)
    revision = forms.IntegerField(min_value=0, required=False, widget=forms.HiddenInput)
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        error_messages={"required": _("Say why: the reason is kept with the action.")},
        widget=forms.Textarea,
    )

    def clean_reason(self) -> str:
        return str(self.cleaned_data["reason"]).replace("\0", "")

    def extra(self) -> tuple[Any, ...]:
        """What the operation wants to know besides."""
        return ()

    def asked(self, request: HttpRequest) -> ActionRequest:
        """The request to the engine; the form must be valid."""
        return ActionRequest(
            actor=request.user,
            key=self.cleaned_data["key"],
            reason=self.cleaned_data["reason"],
            expected_revision=self.cleaned_data["revision"],
            address=request.META.get("REMOTE_ADDR") or None,
        )


class StepForm(ActionForm):
    """An action on one step of the process."""

    node = forms.CharField(max_length=100)

    def extra(self) -> tuple[Any, ...]:
        return (self.cleaned_data["node"],)


class RevisionForm(ActionForm):
    """An action that goes back to a checkpoint."""

    to = forms.IntegerField(min_value=1)

    def extra(self) -> tuple[Any, ...]:
        return (self.cleaned_data["to"],)


class ChoiceForm(ActionForm):
    """A decision."""

    choice = forms.CharField(max_length=200)

    def extra(self) -> tuple[Any, ...]:
        return (self.cleaned_data["choice"],)


class JsonForm(ActionForm):
    """An action with a value that the operator writes as JSON."""

    json = forms.CharField(max_length=MAX_BYTES, strip=False)

    def clean_json(self) -> Any:
        """The value; the refusal names the place of the mistake.

        Raises:
            ValidationError: it is not JSON, or too large or deep to be stored.
        """
        try:
            return parse(self.cleaned_data["json"].encode())
        except InvalidMessage as mistake:
            raise forms.ValidationError(
                _("This is not JSON: %(why)s") % {"why": mistake}
            ) from None

    def extra(self) -> tuple[Any, ...]:
        return (self.cleaned_data["json"],)


@dataclass(frozen=True)
class Answer:
    """What became of an action: the sentence to show, the HTTP status that goes with it, where it leads."""

    text: Any
    status: int = 200
    leads_to: str = ""

    @property
    def done(self) -> bool:
        return self.status == 200
