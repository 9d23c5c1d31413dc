"""Actions on pages: buttons, and the dialogs that they open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from monitoring.base.addresses import url_for
from monitoring.base.keys import OF_ACTIONS
from monitoring.base.masking import names_of, sees_data
from orchestrator.definition.secrets import mask_fields
from orchestrator.engine.operations import (
    Circumstances,
    Given,
    Operation,
    ProcessOperation,
    on_events,
    on_processes,
)
from orchestrator.models import InboxEvent, ProcessInstance


@dataclass(frozen=True)
class Button:
    """One action on one thing.

    Args:
        operation: the action.
        id: of its element.
        url: the address that its form is sent to.
        why: the reason why it cannot be done now; "" if it can.
        subject: its target, in words.
        given: the argument that the button itself gives the action.
        revision: of its row; without it the revision of the page counts.
        word: its label, where that is not the action's.
        tone: its look, where that is not the action's.
        warning: a text for its dialog: what the action would do again.
        about: a text for its dialog: what the action is about, a line each.
        help: a text for its dialog: what the action leads to.
        needs_reason: whether its dialog insists on a reason.
    """

    operation: Operation
    id: str
    url: str
    why: str = ""
    subject: str = ""
    given: Any = ""
    revision: int | None = None
    word: str = ""
    tone: str = ""
    warning: str = ""
    about: str = ""
    help: str = ""
    needs_reason: bool = True

    @property
    def label(self) -> Any:
        return self.word or self.operation.label

    @property
    def key(self) -> str:
        """The keyboard key of the button; "" for most."""
        return OF_ACTIONS.get(self.operation.name, "")

    @property
    def look(self) -> str:
        """The CSS class; "" for a button that cannot be pressed."""
        return "" if self.why else self.tone or _calm_tone(self.operation.tone)


def _calm_tone(tone: str) -> str:
    """Return the tone without danger, which only dialogs show."""
    return "" if tone == "danger" else tone


@dataclass(frozen=True)
class Dialog:
    """A dialog that asks for the reason and the arguments of an action."""

    operation: Operation
    fields: list[tuple[Given, Any]] = field(default_factory=list)
    """The arguments to fill in, each with its first value."""

    @property
    def given_by_buttons(self) -> list[Given]:
        """The arguments that its buttons give."""
        return [given for given in self.operation.given if not given.label]


def form_url(operation: ProcessOperation, instance: ProcessInstance, run: Any) -> str:
    """Return the address for the form of an action on a process, or on one of its visits."""
    if operation.on_step:
        return url_for("monitoring:act-on-step", instance.pk, run.pk, operation.name)
    return url_for("monitoring:act", instance.pk, operation.name)


def header_buttons(
    instance: ProcessInstance,
    actions: Mapping[ProcessOperation, str],
    refusals: Mapping[str, str],
    primary: str = "",
) -> list[Button]:
    """Return the buttons of a whole process: the actions that need no more than their dialog.

    Args:
        instance: the process.
        actions: each with a warning for its dialog; "" for none.
        refusals: the reason why each action cannot be done now.
        primary: the name of the action that is most useful now.
    """
    return [
        Button(
            operation,
            f"{operation.name}-button",
            form_url(operation, instance, None),
            refusals[operation.name],
            str(instance),
            tone="primary" if operation.name == primary else "",
            warning=warning,
        )
        for operation, warning in actions.items()
    ]


def dialog_of(
    operation: Operation,
    user: Any,
    first: Callable[[Given], Any] = lambda given: "",
    wanted: Callable[[Given], bool] = lambda given: True,
) -> Dialog:
    """Return the dialog of an action.

    Args:
        operation: the action.
        user: of the page; their name is the first value where a person is wanted.
        first: the first value of another field.
        wanted: whether a field is shown.
    """
    own = user.get_username()
    fields = [given for given in operation.given if given.label and wanted(given)]
    return Dialog(
        operation,
        [(one, own if one.form == "person" else first(one)) for one in fields],
    )


def dialogs_of(process: Circumstances, user: Any) -> list[Dialog]:
    """Return the dialogs of all actions that can be done on a process's page."""
    return [
        dialog_of(
            operation,
            user,
            lambda given: _first_value(given, process.instance, user),
            lambda given: bool(process.workflow) or not given.of_workflows,
        )
        for operation in on_processes().values()
        if not operation.on_own_page
        and (process.workflow or not operation.of_workflows)
    ]


def _first_value(given: Given, instance: ProcessInstance, user: Any) -> Any:
    """Return the first value of a field; JSON without secrets, and only for users who may see data."""
    first = given.initial(instance)
    if given.form != "json":
        return first
    return mask_fields(first, names_of(instance.definition)) if sees_data(user) else {}


def list_dialogs(names: Iterable[str], user: Any) -> list[Dialog]:
    """Return the dialogs of some actions that can be done to the processes of a list."""
    known, nobody = on_processes(), ProcessInstance()
    return [
        dialog_of(known[name], user, lambda given: given.initial(nobody))
        for name in names
    ]


def event_dialogs() -> list[Dialog]:
    """Return the dialogs of the actions on events."""
    return [Dialog(operation) for operation in on_events().values()]


def event_buttons(event: InboxEvent, user: Any) -> list[Button]:
    return [
        Button(
            operation,
            f"{operation.name}-{event.pk}",
            url_for("monitoring:act-on-event", event.pk, operation.name),
            operation.refusal(user, event),
            f"{event.type} {event.event_id}",
            tone=operation.tone,
        )
        for operation in on_events().values()
        if not operation.given
    ]


def deliver_button(
    event: InboxEvent, process: ProcessInstance, user: Any, place: str = ""
) -> Button:
    """Return the button that delivers an event to a process that a person has chosen.

    `place` tells it from another such button on the page.
    """
    operation = on_events()["deliver"]
    return Button(
        operation,
        f"deliver-{place}{event.pk}-{process.pk.hex}",
        url_for("monitoring:act-on-event", event.pk, operation.name),
        operation.refusal(user, event, process),
        f"{event.type} {event.event_id} → {process}",
        given=str(process.pk),
        revision=process.revision,
    )
