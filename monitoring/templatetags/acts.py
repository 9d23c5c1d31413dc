"""The buttons of operators' actions beside what they are done to."""

from typing import Any

from django import template

from monitoring.buttons import Button, address, deliver_button, event_buttons
from orchestrator.engine.operations import OPERATIONS, ProcessOperation
from orchestrator.models import InboxEvent, ProcessInstance

register = template.Library()


@register.inclusion_tag("monitoring/parts/act.html")
def act(
    name: str,
    instance: ProcessInstance,
    why: str,
    *,
    place: str,
    run: Any = None,
    **shown: Any,
) -> dict[str, Any]:
    """The button of an action on one step, visit or checkpoint of a process.

    Args:
        name: the action's.
        instance: the process.
        why: why it cannot be done now; "" if it can.
        place: what tells the button from others of the same action.
        run: the visit that it is done to.
        shown: what else is said of a `Button`.
    """
    operation = OPERATIONS[name]
    assert isinstance(operation, ProcessOperation)  # noqa: S101  the template's mistake
    url = address(operation, instance, run)
    return {"button": Button(operation, f"{name}-{place}", url, why, **shown)}


@register.inclusion_tag("monitoring/parts/acts.html")
def acts_on_event(event: InboxEvent, user: Any) -> dict[str, Any]:
    """The buttons of one event."""
    return {"buttons": event_buttons(event, user)}


@register.inclusion_tag("monitoring/parts/act.html")
def deliver_to(
    event: InboxEvent, process: ProcessInstance, user: Any
) -> dict[str, Any]:
    """The button that gives an event to a process."""
    return {"button": deliver_button(event, process, user)}


@register.simple_tag
def forbidden(name: str, user: Any) -> str:
    """Why a reader may not do something at all; "" if they may."""
    return OPERATIONS[name].forbidden(user)
