"""The form that begins an operation on many, and its request to the engine."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from monitoring.base.days import parse_moment
from monitoring.forms.action_forms import ActionForm, ProgramData
from orchestrator.engine.operations import Operation, Pace, Wanted

USUAL = Pace()


class MomentField(forms.CharField):
    """A moment with its zone, as the page writes it."""

    def clean(self, value: Any) -> Any:
        """Return the moment.

        Raises:
            ValidationError: the text is none.
        """
        found = parse_moment(super().clean(value))
        if found is None:
            raise forms.ValidationError(_("Load this page again."))
        return found


class SamplesField(forms.CharField):
    """Sizes of samples, with commas between them."""

    def clean(self, value: Any) -> Any:
        """Return the sizes.

        Raises:
            ValidationError: a part is no number.
        """
        parts = str(super().clean(value)).split(",")
        try:
            return tuple(int(part.strip()[:9]) for part in parts if part.strip())
        except ValueError:
            raise forms.ValidationError(
                _("Write numbers with commas between them, or nothing.")
            ) from None


PACE = ("samples", "batch", "rate", "per_key", "stop_above")


def _add_pace(data: Any) -> Any:
    """Return the data of a program, with the usual pace for absent fields. An empty field means no bound."""
    if not isinstance(data, ProgramData):
        return data
    usual = {name: BulkForm.base_fields[name].initial for name in PACE}
    return ProgramData({**usual, **data}, as_json=data.as_json)


class BulkForm(ActionForm):
    """The form of an action, with what the page has shown, and the pace."""

    shown = forms.IntegerField(
        min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput
    )
    shown_at = MomentField(max_length=40, widget=forms.HiddenInput)
    exact = forms.BooleanField(required=False, widget=forms.HiddenInput)
    limits = forms.CharField(
        required=False, max_length=20_000, widget=forms.HiddenInput
    )
    samples = SamplesField(
        label=_("Samples first"),
        required=False,
        max_length=50,
        initial=", ".join(map(str, USUAL.samples)),
    )
    batch = forms.IntegerField(
        label=_("Most under way at once"), initial=USUAL.batch, min_value=1
    )
    rate = forms.FloatField(label=_("Most a second"), required=False)
    per_key = forms.IntegerField(
        label=_("Most at once with one business key"), required=False, min_value=1
    )
    stop_above = forms.FloatField(
        label=_("Stop above this percentage of failures"),
        required=False,
        initial=USUAL.stop_above,
    )

    def __init__(self, operation: Operation, data: Any, *, user: Any) -> None:
        super().__init__(operation, _add_pace(data))
        for given in operation.given:
            self.fields[given.name].label = str(given.label)
            if given.form == "person":
                self.fields[given.name].initial = user.get_username()

    @property
    def pace_fields(self) -> list[Any]:
        """The fields of the pace."""
        return [self[name] for name in PACE]

    @property
    def argument_fields(self) -> list[Any]:
        """The fields of the action's arguments."""
        return [self[given.name] for given in self.operation.given]

    @property
    def filled_fields(self) -> list[Any]:
        """All fields that a person fills in."""
        return [*self.argument_fields, self["reason"], *self.pace_fields]

    @property
    def first_mistake(self) -> str:
        """The first error with the label of its field; the form must be invalid."""
        name, errors = next(iter(self.errors.items()))
        label = self.fields[name].label if name in self.fields else ""
        return f"{label}: {errors[0]}" if label else str(errors[0])

    def wanted(self, selection: str, about: Mapping[str, Any]) -> Wanted:
        """Return the operation that the form asks for; the form must be valid."""
        said = self.cleaned_data
        return Wanted(
            self.operation.name,
            selection,
            about,
            said["shown"],
            said["shown_at"],
            said["exact"],
            self.given(),
            Pace(**{name: said[name] for name in PACE}),
            said["limits"],
        )
