"""Sending an event: its form, with a preview of its effect."""

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import urlencode

from monitoring.base.access import EVENTS, form_for
from monitoring.base.masking import sees_data
from monitoring.base.requests import parse_uuid
from monitoring.base.translation import translate
from monitoring.forms.action_forms import ActionAnswer
from monitoring.forms.send_form import SendForm
from monitoring.lists.events.event_preview import EventPreview, preview_sending
from monitoring.queries.lists import parse_number
from monitoring.views.actions.operations import answer_of
from monitoring.views.page import page
from orchestrator import registry
from orchestrator.definition import Event
from orchestrator.engine.operations import send
from orchestrator.exceptions import UnknownEventType
from orchestrator.models import InboxEvent, OperatorAction


@form_for(EVENTS)
def index(request: HttpRequest) -> HttpResponse:
    """Show the form for an event of the type in the address; preview its effect, or send it."""
    kind = request.GET.get("type", "")
    try:
        event = registry.event_class(kind)
    except UnknownEventType:
        return _type_page(request, kind)
    if request.method != "POST":
        given = {name: request.GET.get(name, "") for name in ("definition", "process")}
        form = SendForm(event, None, initial=given)
        if (copied := _copied(request, kind)) is not None:
            form.fill_in(copied)
        return _form_page(request, form)
    return _answer_post(request, event)


def _copied(request: HttpRequest, kind: str) -> InboxEvent | None:
    """Return the event of this type whose fields the form is to begin with, if the reader may see its data."""
    number = parse_number(request.GET.get("copy", ""), 18)
    if number is None or not sees_data(request.user):
        return None
    return InboxEvent.objects.filter(pk=number, type=kind).first()


def _type_page(request: HttpRequest, kind: str) -> HttpResponse:
    """Return the page that asks for the type, for a missing or unknown one."""
    status = 404 if kind or request.method == "POST" else 200
    known = {"types": registry.event_types(), "kind": kind, "operation": send}
    return page(request, "send_event", status=status, **known)


def _answer_post(request: HttpRequest, event: type[Event]) -> HttpResponse:
    sends = "preview" not in request.POST
    form = SendForm(event, request.POST, sends=sends)
    if not form.is_valid():
        return _form_page(request, form, status=400)
    if not sends:
        return _form_page(request, form, preview_sending(form.wanted(), request.user))
    answer = send_from_form(request, form)
    if not answer.done:
        form.new_key = uuid4().hex  # this one was answered
        shown = preview_sending(form.wanted(), request.user)
        return _form_page(request, form, shown, str(answer.text), answer.status)
    messages.success(request, str(answer.text), fail_silently=True)
    return redirect(answer.leads_to)


def send_from_form(request: HttpRequest, form: SendForm) -> ActionAnswer:
    """Send the event of a form."""

    def then(done: OperatorAction) -> dict[str, Any]:
        said = translate(done.said) if done.detail else str(send.done)
        place = urlencode({"q": form.cleaned_data["event_id"]})
        address = f"{reverse('monitoring:events')}?{place}"
        return {"text": said, "leads_to": address, "about": _receipt(done)}

    return answer_of(
        form, lambda: send(form.wanted(), request=form.asked(request)), then
    )


def _receipt(done: OperatorAction) -> dict[str, Any]:
    """Return the receipt of an event that was sent, its verdict so far, and its process if it has one."""
    event = InboxEvent.objects.defer("body").filter(pk=done.event_id).first()
    if event is None:  # it was sent long ago, and its row is removed
        return {}
    return {"receipt": event.pk, "verdict": event.verdict, "process": event.process_id}


def _forbidden(request: HttpRequest, form: SendForm) -> str:
    """Return the reason why the user may not send the event to its target, or to any target yet; "" if they may."""
    process, definition = form["process"].value(), form["definition"].value()
    kind = form.event.__name__
    if key := parse_uuid(process):  # else none, or a business key
        return send.forbidden_to(request.user, kind, process=key)
    if definition or form.is_bound:
        return send.forbidden_to(request.user, kind, definition or "")
    return send.forbidden_everywhere(request.user)


def _form_page(
    request: HttpRequest,
    form: SendForm,
    shown: EventPreview | None = None,
    refusal: str = "",
    status: int = 200,
) -> HttpResponse:
    return page(
        request,
        "send_event",
        status=status,
        types=registry.event_types(),
        kind=form.event.__name__,
        operation=send,
        form=form,
        preview=shown,
        refusal=refusal,
        why=_forbidden(request, form),
    )
