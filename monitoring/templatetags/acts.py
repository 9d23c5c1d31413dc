"""The buttons of operators' actions beside what they are done to."""

import html
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from monitoring.buttons import Button, address, deliver_button, event_buttons
from monitoring.curl import call, values_of
from monitoring.places import below_api
from monitoring.queries.texts import translated
from monitoring.templatetags.console import icon
from orchestrator.engine.operations import OPERATIONS, on_processes
from orchestrator.models import InboxEvent, ProcessInstance, StepRun

register = template.Library()


@register.simple_tag
def button_of(button: Button, *, with_icon: bool = False) -> SafeString:
    """A button that opens the dialog of its action; one that cannot be pressed says why beside it."""
    why = f"{button.id}-why" if button.why else None
    attributes = {
        "id": button.id,
        "data-opens": f"{button.operation.name}-dialog",
        "data-url": button.url,
        "data-subject": button.subject,
        "data-key": button.key or None,
        "aria-keyshortcuts": button.key or None,
        "data-warning": button.warning or None,
        "data-given": button.given or None,
        "data-revision": button.revision,
        "class": button.look or None,
        "aria-disabled": "true" if why else None,
        "aria-describedby": why,
    }
    # By hand: a list has hundreds, and a template for each is most of what its page costs.
    before = icon(button.operation.icon) if with_icon else ""
    label = html.escape(str(button.label))
    after = _why(why, button.why) if why else ""
    return SafeString(
        f'<span class="act"><button type="button"{_written(attributes)}>{before}{label}</button>{after}</span>'
    )


def _written(attributes: Mapping[str, Any]) -> str:
    """Those of the attributes that have a value; at once, for a list has thousands."""
    given = ((name, value) for name, value in attributes.items() if value is not None)
    return "".join(f' {name}="{html.escape(str(value))}"' for name, value in given)


def _why(name: str, why: str) -> SafeString:
    return format_html(
        '<span class="why" id="{}" role="tooltip">{}</span>', name, translated(why)
    )


def buttons_of(buttons: Iterable[Button]) -> SafeString:
    """The buttons of one row, one after the other."""
    return SafeString(" ".join(button_of(one) for one in buttons))


@register.simple_tag
def act(
    name: str,
    instance: ProcessInstance,
    why: str,
    *,
    place: str,
    run: Any = None,
    **shown: Any,
) -> SafeString:
    """The button of an action on one step, visit or checkpoint of a process.

    Args:
        name: the action's.
        instance: the process.
        why: why it cannot be done now; "" if it can.
        place: what tells the button from others of the same action.
        run: the visit that it is done to.
        shown: what else is said of a `Button`.
    """
    operation = on_processes()[name]
    url = address(operation, instance, run)
    return button_of(Button(operation, f"{name}-{place}", url, why, **shown))


@register.simple_tag
def decide_buttons(
    choices: Sequence[str],
    run: StepRun,
    instance: ProcessInstance,
    label: str,
    *,
    why: str,
    tone: str = "",
    revision: int | None = None,
) -> SafeString:
    """A button for each of the choices of a question.

    Args:
        choices: what can be decided.
        run: the visit that asks.
        instance: its process.
        label: of the step.
        why: why it cannot be decided now; "" if it can.
        tone: how the buttons look.
        revision: that the row shows; without it that of the page counts.
    """
    operation = on_processes()["decide"]
    url = address(operation, instance, run)
    return buttons_of(
        Button(
            operation,
            f"decide-{run.pk}-{number}",
            url,
            why,
            subject=f"{label}: {choice}",
            given=choice,
            revision=revision,
            word=choice,
            tone=tone,
        )
        for number, choice in enumerate(choices, start=1)
    )


@register.simple_tag
def acts_on_event(event: InboxEvent, user: Any) -> SafeString:
    """The buttons of one event."""
    return buttons_of(event_buttons(event, user))


@register.simple_tag
def deliver_to(event: InboxEvent, process: ProcessInstance, user: Any) -> SafeString:
    """The button that gives an event to a process."""
    return button_of(deliver_button(event, process, user))


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
