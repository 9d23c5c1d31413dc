"""The buttons of operators' actions beside what they are done to."""

from typing import Any

from django import template
from django.template import Context

from monitoring.buttons import Button, address, deliver_button, event_buttons
from monitoring.curl import call, values_of
from monitoring.places import below_api
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
def forbidden(name: str, user: Any, definition: str) -> str:
    """Why a reader may not do something with what is of a definition; "" if they may."""
    return OPERATIONS[name].forbidden(user, definition)


@register.simple_tag(takes_context=True)
def as_call(context: Context, address: str, *fields: Any, **values: Any) -> str:
    """What a form does, as a call of curl.

    Args:
        context: of the page.
        address: where the form is posted to; "" for where the page is.
        fields: some of a form, in lists or one by one.
        values: others, by name; None for one that is not sent.
    """
    request = context["request"]
    path = below_api(address or request.get_full_path())
    bound = [
        one for some in fields for one in ([some] if hasattr(some, "field") else some)
    ]
    given = values_of(bound)
    given |= {name: str(one) for name, one in values.items() if one is not None}
    return call(request.build_absolute_uri(path), given)
