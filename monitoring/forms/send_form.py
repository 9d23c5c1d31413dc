"""The form that sends an event, made from the event's class."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.utils.translation import gettext_lazy as _

from monitoring.base.masking import event_body
from monitoring.forms.action_forms import ActionForm
from monitoring.forms.message_fields import OMITTED, MessageField, event_fields
from orchestrator import registry
from orchestrator.definition import Event
from orchestrator.definition.codec import json_mistakes
from orchestrator.definition.secrets import MASK
from orchestrator.engine.operations import EventToSend, send
from orchestrator.models import InboxEvent

PREFIX = "field-"
"""The prefix of an event's fields, which keeps them apart from the form's own."""


class SendForm(ActionForm):
    """The form of an event: its target, its id and its fields."""

    seen = forms.UUIDField(required=False, widget=forms.HiddenInput)
    event_id = forms.CharField(label=_("Event id"), max_length=200)
    definition = forms.ChoiceField(label=_("For"), required=False)
    process = forms.CharField(
        label=_("Process id or key"),
        help_text=_("Empty: the key that stands in the event."),
        required=False,
        max_length=200,
    )

    def __init__(
        self,
        event: type[Event],
        data: Any,
        *,
        sends: bool = True,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        """Make the fields.

        Args:
            event: the class.
            data: of the request; None for a new form.
            sends: whether the event is sent, and not only previewed; then it needs a reason.
            initial: the first values of `definition` and `process`.
        """
        super().__init__(send, data)
        self.event, self.parts = event, event_fields(event)
        for part in self.parts:
            self.fields[PREFIX + part.name] = part.form_field()
        names = [one.name for one in registry.receivers(event.__name__)]
        self.fields["definition"].choices = [  # type: ignore[attr-defined]
            *([("", _("all that know it"))] if len(names) != 1 else []),
            *((name, name) for name in names),
        ]
        self.fields["reason"].required = sends
        self.fields["event_id"].initial = f"test-{uuid4()}"
        self.initial = {**self.initial, **(initial or {})}

    def fill_in(self, stored: InboxEvent) -> None:
        """Begin with the fields of a stored event as a copy that is to be corrected; what has a secret stays empty."""
        shown = event_body(stored)
        body = shown if isinstance(shown, dict) else {}
        for part in self.parts:
            value = body.get(part.name)
            if value is not None and MASK not in json.dumps(value, ensure_ascii=False):
                self.initial[PREFIX + part.name] = part.written(value)
        self.initial["event_id"] = f"{stored.event_id[:180]}-copy-{uuid4().hex[:6]}"

    @property
    def event_fields(self) -> list[Any]:
        """The event's own fields."""
        return [self[PREFIX + part.name] for part in self.parts]

    @property
    def target_fields(self) -> list[Any]:
        """The fields of the target and of the event's id."""
        return [self[name] for name in ("definition", "process", "event_id")]

    def clean_process(self) -> str:
        return str(self.cleaned_data["process"]).strip()

    def clean(self) -> dict[str, Any]:
        """Read the event's fields, and add mistakes to them."""
        body: dict[str, Any] = {}
        for part in self.parts:
            name = PREFIX + part.name
            if name in self.cleaned_data:
                self._take(body, part, self.cleaned_data[name])
        if not any(name.startswith(PREFIX) for name in self.errors):
            self._check(body)
        self.cleaned_data["body"] = body
        return self.cleaned_data

    def _take(self, body: dict[str, Any], part: MessageField, given: Any) -> None:
        try:
            value = part.value(given)
        except forms.ValidationError as mistake:
            self.add_error(PREFIX + part.name, mistake)
        else:
            if value is not OMITTED:
                body[part.name] = value

    def _check(self, body: dict[str, Any]) -> None:
        """Let the class parse the body, as at delivery, and add its mistakes."""
        try:
            found = json_mistakes(self.event, body)
        except Exception as error:  # noqa: BLE001  # the class may raise anything
            found = [((), f"{type(error).__name__}: {error}")]
        for path, said in found:
            first, *others = path or ("",)
            name = PREFIX + first if PREFIX + first in self.fields else None
            self.add_error(name, ": ".join(filter(None, [".".join(others), said])))

    def wanted(self) -> EventToSend:
        """Return the event; the form must be valid."""
        said = self.cleaned_data
        process = self.process_id
        return EventToSend(
            self.event.__name__,
            said["body"],
            said["event_id"],
            process,
            "" if process else said["definition"],
            "" if process else said["process"],
            said["seen"],
        )

    @property
    def process_id(self) -> UUID | None:
        """The process that is named by its id; the form must be valid."""
        try:
            return UUID(self.cleaned_data["process"])
        except ValueError:
            return None
