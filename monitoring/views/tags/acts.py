"""The buttons of operators' actions beside their targets."""

import html
from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.template import Context
from django.utils.html import format_html
from django.utils.safestring import SafeString

from monitoring.base.row_addresses import api_address
from monitoring.base.translation import translate
from monitoring.forms.buttons import Button, deliver_button, event_buttons, form_url
from monitoring.forms.curl import curl_call, form_values
from monitoring.process.steps.question import AskedQuestion
from monitoring.views.tags.console import icon
from orchestrator.engine.operations import OPERATIONS, on_processes
from orchestrator.models import InboxEvent, ProcessInstance, StepRun

register = template.Library()


@register.simple_tag
def button_of(button: Button, *, with_icon: bool = False) -> SafeString:
    """Return a button that opens the dialog of its action; a disabled one shows the reason beside it."""
    why = f"{button.id}-why" if button.why else None
    attributes = {
        "id": button.id,
        "data-opens": f"{button.operation.name}-dialog",
        "data-url": button.url,
        "data-subject": button.subject,
        "data-key": button.key or None,
        "aria-keyshortcuts": button.key or None,
        "data-warning": button.warning or None,
        "data-word": button.word or None,
        "data-about": button.about or None,
        "data-help": button.help or None,
        "data-reason": None if button.needs_reason else "optional",
        "data-given": button.given or None,
        "data-revision": button.revision,
        "class": button.look or None,
        "aria-disabled": "true" if why else None,
        "aria-describedby": why,
    }
    # Without a template, since a list has hundreds of buttons.
    before = icon(button.operation.icon) if with_icon else ""
    label = html.escape(str(button.label))
    after = _why(why, button.why) if why else ""
    return SafeString(
        f'<span class="act"><button type="button"{_attributes(attributes)}>{before}{label}</button>{after}</span>'
    )


def _attributes(attributes: Mapping[str, Any]) -> str:
    """Return the attributes with a value, in HTML; a list has thousands."""
    given = ((name, value) for name, value in attributes.items() if value is not None)
    return "".join(f' {name}="{html.escape(str(value))}"' for name, value in given)


def _why(name: str, why: str) -> SafeString:
    return format_html(
        '<span class="why" id="{}" role="tooltip">{}</span>', name, translate(why)
    )


def buttons_of(buttons: Iterable[Button]) -> SafeString:
    """Return the buttons of one row, one after the other."""
    return SafeString(" ".join(button_of(one) for one in buttons))


@register.simple_tag(name="act")
def step_button(
    name: str,
    instance: ProcessInstance,
    why: str,
    *,
    place: str,
    run: Any = None,
    **shown: Any,
) -> SafeString:
    """Return the button of an action on one step, visit or checkpoint of a process.

    Args:
        name: the action's.
        instance: the process.
        why: the reason why it cannot be done now; "" if it can.
        place: the rest of the button's id, unique for the action.
        run: the visit, for an action on one.
        shown: further fields of a `Button`.
    """
    operation = on_processes()[name]
    url = form_url(operation, instance, run)
    return button_of(Button(operation, f"{name}-{place}", url, why, **shown))


@register.simple_tag(takes_context=True)
def decide_buttons(
    context: Context,
    question: AskedQuestion,
    run: StepRun,
    instance: ProcessInstance,
    label: str,
    *,
    why: str,
    tone: str = "",
    revision: int | None = None,
) -> SafeString:
    """Return a button for each of the answers to a question.

    Args:
        context: of the page, for whether the reader may see data.
        question: the question with its possible answers.
        run: the visit that asks.
        instance: its process.
        label: of the step.
        why: the reason why it cannot be decided now; "" if it can.
        tone: the look of the buttons.
        revision: of the row; without it the revision of the page counts.
    """
    operation = on_processes()["decide"]
    url = form_url(operation, instance, run)
    process = " · ".join(filter(None, [str(instance), instance.summary]))
    about = question.about if context["sees_data"]() else ()
    return buttons_of(
        Button(
            operation,
            f"decide-{run.pk}-{number}",
            url,
            why,
            subject=f"{label}: {answer.label} · {process}",
            given=answer.value,
            revision=revision,
            word=answer.label,
            tone=tone,
            about="\n".join(f"{name}: {value}" for name, value in about),
            help=answer.help,
            needs_reason=question.needs_reason,
        )
        for number, answer in enumerate(question.answers, start=1)
    )


@register.simple_tag
def acts_on_event(event: InboxEvent, user: Any) -> SafeString:
    """Return the buttons of one event."""
    return buttons_of(event_buttons(event, user))


@register.simple_tag
def deliver_to(
    event: InboxEvent, process: ProcessInstance, user: Any, place: str = ""
) -> SafeString:
    """Return the button that gives an event to a process; `place` tells it from another one on the page."""
    return button_of(deliver_button(event, process, user, place))


@register.simple_tag
def forbidden(name: str, user: Any, definition: str) -> str:
    """Return the reason why a reader may not do an action in a definition; "" if they may."""
    return OPERATIONS[name].forbidden(user, definition)


@register.simple_tag(takes_context=True)
def as_call(context: Context, address: str, *fields: Any, **values: Any) -> str:
    """Return a form as a call of curl.

    Args:
        context: of the page.
        address: the target of the form; "" for the address of the page.
        fields: fields of a form, in lists or one by one.
        values: further values by name; None for a value that is not sent.
    """
    request = context["request"]
    path = api_address(address or request.get_full_path())
    bound = [
        one for some in fields for one in ([some] if hasattr(some, "field") else some)
    ]
    given = form_values(bound)
    given |= {name: str(one) for name, one in values.items() if one is not None}
    return curl_call(request.build_absolute_uri(path), given)
